//! The Hugging Face layout of a chat: `tokenizer.json`, `tokenizer_config.json` and
//! `generation_config.json`, so that `AutoTokenizer` and `generate` take them as they are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use record::TokenId;
use serde_json::{Map, Value, json};

use crate::{Chat, ChatError, Template, Tokenizer, chat::end_of_turn};

const TOKENIZER: &str = "tokenizer.json";
const CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";
const GENERATION: &str = "generation_config.json";
/// Where older programs wrote the named tokens.
const NAMED: &str = "special_tokens_map.json";

/// Contents of `tokenizer_config.json` and `generation_config.json` that mean nothing here, kept so that
/// a chat that is saved again says them still.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    config: Map<String, Value>,
    generation: Map<String, Value>,
}

/// The named tokens of a model, as its templates may print them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    pub bos: Option<String>,
    pub eos: Option<String>,
    pub pad: Option<String>,
    pub unk: Option<String>,
}

impl SpecialTokens {
    /// By the names that templates know.
    fn named(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("bos_token", &self.bos),
            ("eos_token", &self.eos),
            ("pad_token", &self.pad),
            ("unk_token", &self.unk),
        ]
    }

    /// Those that there are, under their names.
    pub(crate) fn to_variables(&self) -> Map<String, Value> {
        let there = self.named().into_iter();
        there
            .filter_map(|(name, token)| Some((name.to_owned(), json!(token.as_ref()?))))
            .collect()
    }
}

/// What a model directory says about its tokenizer, with or without a template.
#[derive(Clone, Debug)]
pub struct TokenizerFiles {
    pub tokenizer: Tokenizer,
    pub special: SpecialTokens,
    /// Sampling one of these ends a turn: `eos_token`, then each `eos_token_id` of
    /// `generation_config.json`.
    pub stop_tokens: Vec<TokenId>,
    directory: PathBuf,
    /// The template and the file that it stands in.
    template: Option<(String, PathBuf)>,
    extras: Extras,
}

impl TokenizerFiles {
    /// Reads `tokenizer.json`, and what there is of `tokenizer_config.json`, `chat_template.jinja`,
    /// `special_tokens_map.json` and `generation_config.json`.
    ///
    /// The template is `chat_template.jinja` if there is one, else `chat_template` of
    /// `tokenizer_config.json` (of several, the one named `default`).
    ///
    /// # Errors
    /// Every variant of [`ChatError`] that names a file.
    pub fn load(directory: &Path) -> Result<Self, ChatError> {
        let tokenizer = Tokenizer::load(&directory.join(TOKENIZER))?;
        let config_path = directory.join(CONFIG);
        let config = read_object(&config_path)?.unwrap_or_default();
        let template_path = directory.join(TEMPLATE);
        let template = match read_text(&template_path)? {
            Some(source) => Some((source, template_path)),
            None => template_of(&config).map(|source| (source, config_path.clone())),
        };
        let older = read_object(&directory.join(NAMED))?.unwrap_or_default();
        let named = |key: &str| token_of(&config, key).or_else(|| token_of(&older, key));
        let special = SpecialTokens {
            bos: named("bos_token"),
            eos: named("eos_token"),
            pad: named("pad_token"),
            unk: named("unk_token"),
        };
        let mut stop_tokens = Vec::new();
        if let Some(eos) = &special.eos {
            let id = end_of_turn(&tokenizer, eos);
            stop_tokens.push(id.map_err(|error| ChatError::malformed(&config_path, error))?);
        }
        let generation_path = directory.join(GENERATION);
        let generation = read_object(&generation_path)?.unwrap_or_default();
        for id in stop_ids(&generation, &generation_path)? {
            let entries = tokenizer.vocabulary();
            if id as usize >= entries {
                return Err(ChatError::malformed(
                    &generation_path,
                    format!(
                        "`eos_token_id` holds {id}, but tokenizer.json has the ids below {entries}"
                    ),
                ));
            }
            if !stop_tokens.contains(&id) {
                stop_tokens.push(id);
            }
        }
        Ok(Self {
            tokenizer,
            special,
            stop_tokens,
            directory: directory.to_owned(),
            template,
            extras: Extras { config, generation },
        })
    }

    /// The file that the template stands in, if there is one.
    pub fn template_file(&self) -> Option<&Path> {
        self.template.as_ref().map(|(_, file)| file.as_path())
    }

    /// The tokenizer with its template.
    ///
    /// # Errors
    /// [`ChatError::NoTemplate`], or [`ChatError::Malformed`] for one that does not compile.
    pub fn chat(self) -> Result<Chat, ChatError> {
        let Some((source, file)) = self.template else {
            return Err(ChatError::NoTemplate {
                directory: self.directory,
            });
        };
        let template =
            Template::new(&source).map_err(|error| ChatError::malformed(&file, error))?;
        let chat = Chat::new(self.tokenizer, template, self.special, &self.stop_tokens)?;
        Ok(chat.with_extras(self.extras))
    }
}

impl Chat {
    /// Reads a model directory in the Hugging Face layout: see [`TokenizerFiles::load`].
    ///
    /// # Errors
    /// Every variant of [`ChatError`] that names a file, and [`ChatError::NoTemplate`].
    pub fn load(directory: &Path) -> Result<Self, ChatError> {
        TokenizerFiles::load(directory)?.chat()
    }

    /// Writes the files of this chat into `directory`, which must exist.
    ///
    /// # Errors
    /// [`ChatError::Write`], naming the file.
    pub fn save(&self, directory: &Path) -> Result<(), ChatError> {
        for (name, content) in self.to_files()? {
            let path = directory.join(name);
            fs::write(&path, content).map_err(|source| ChatError::Write { path, source })?;
        }
        Ok(())
    }

    /// Names and contents of the files that [`Chat::save`] writes; the same chat gives the same
    /// bytes.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`] when a loaded tokenizer cannot be written as JSON.
    pub fn to_files(&self) -> Result<[(&'static str, String); 3], ChatError> {
        let special = self.special_tokens();
        let extras = self.extras();
        let mut config = extras.config.clone();
        config
            .entry("tokenizer_class")
            .or_insert_with(|| json!("PreTrainedTokenizerFast"));
        config
            .entry("clean_up_tokenization_spaces")
            .or_insert(json!(false));
        config.extend(special.to_variables());
        config.insert("chat_template".to_owned(), json!(self.template().source()));

        let mut generation = extras.generation.clone();
        generation.insert("eos_token_id".to_owned(), json!(self.stop_tokens()));
        let pad = special
            .pad
            .as_ref()
            .and_then(|pad| self.tokenizer().token_to_id(pad));
        generation.extend(pad.map(|pad| ("pad_token_id".to_owned(), json!(pad))));

        Ok([
            (TOKENIZER, self.tokenizer().to_json()?),
            (CONFIG, pretty(config)),
            (GENERATION, pretty(generation)),
        ])
    }
}

fn pretty(object: Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(object))
}

/// All of a file; pipes and devices may have no end.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::metadata(path)?.is_file() {
        true => fs::read(path),
        false => Err(io::Error::other("it is no regular file")),
    }
}

fn read_text(path: &Path) -> Result<Option<String>, ChatError> {
    let text = read(path).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ChatError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, ChatError> {
    read_text(path)?
        .map(|text| serde_json::from_str(&text).map_err(|error| ChatError::malformed(path, error)))
        .transpose()
}

fn template_of(config: &Map<String, Value>) -> Option<String> {
    match config.get("chat_template")? {
        Value::String(source) => Some(source.clone()),
        Value::Array(several) => several
            .iter()
            .find(|template| template["name"] == "default")
            .and_then(|template| template["template"].as_str())
            .map(str::to_owned),
        _ => None,
    }
}

/// A token of the config: a string, or an object with the string in `content`.
fn token_of(config: &Map<String, Value>, key: &str) -> Option<String> {
    let token = config.get(key)?;
    token
        .as_str()
        .or_else(|| token.get("content")?.as_str())
        .map(str::to_owned)
}

fn stop_ids(generation: &Map<String, Value>, path: &Path) -> Result<Vec<TokenId>, ChatError> {
    let ids = match generation.get("eos_token_id") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(ids)) => ids,
        Some(id) => std::slice::from_ref(id),
    };
    ids.iter()
        .map(|id| {
            id.as_u64()
                .and_then(|id| TokenId::try_from(id).ok())
                .ok_or_else(|| {
                    ChatError::malformed(path, format!("`eos_token_id` holds {id}, which is no id"))
                })
        })
        .collect()
}
