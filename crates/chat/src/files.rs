//! The Hugging Face layout of a chat: `tokenizer.json`, `tokenizer_config.json` and
//! `generation_config.json`, so that `AutoTokenizer` and `generate` take them as they are.

use std::{fs, io, path::Path};

use record::TokenId;
use serde_json::{Map, Value, json};

use crate::{Chat, ChatError, Template, Tokenizer};

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

impl Chat {
    /// Reads a model directory in the Hugging Face layout.
    ///
    /// The template is `chat_template.jinja` if there is one, else `chat_template` of
    /// `tokenizer_config.json` (of several, the one named `default`). A turn ends at `eos_token` and
    /// at every `eos_token_id` of `generation_config.json`.
    ///
    /// # Errors
    /// Every variant of [`ChatError`] that names a file, and [`ChatError::MissingToken`] when
    /// `eos_token` is not in the vocabulary.
    pub fn load(directory: &Path) -> Result<Self, ChatError> {
        let tokenizer = Tokenizer::load(&directory.join(TOKENIZER))?;
        let config_path = directory.join(CONFIG);
        let config = read_object(&config_path)?
            .ok_or_else(|| ChatError::malformed(&config_path, "no such file"))?;
        let template_path = directory.join(TEMPLATE);
        let (source, place) = match read_text(&template_path)? {
            Some(source) => (source, &template_path),
            None => match template_of(&config) {
                Some(source) => (source, &config_path),
                None => {
                    return Err(ChatError::NoTemplate {
                        directory: directory.to_owned(),
                    });
                }
            },
        };
        let template =
            Template::new(&source).map_err(|error| ChatError::malformed(place, error))?;
        let older = read_object(&directory.join(NAMED))?.unwrap_or_default();
        let named = |key: &str| token_of(&config, key).or_else(|| token_of(&older, key));
        let special = SpecialTokens {
            bos: named("bos_token"),
            eos: named("eos_token"),
            pad: named("pad_token"),
            unk: named("unk_token"),
        };

        let generation_path = directory.join(GENERATION);
        let generation = read_object(&generation_path)?.unwrap_or_default();
        let more_stops = stop_ids(&generation, &generation_path)?;
        let chat = Self::new(tokenizer, template, special, &more_stops)
            .map_err(|error| ChatError::malformed(&config_path, error))?;
        if let Some(id) = more_stops
            .into_iter()
            .find(|id| *id as usize >= chat.tokenizer().vocabulary())
        {
            let entries = chat.tokenizer().vocabulary();
            return Err(ChatError::malformed(
                &generation_path,
                format!(
                    "`eos_token_id` holds {id}, but tokenizer.json has the ids below {entries}"
                ),
            ));
        }
        Ok(chat.with_extras(Extras { config, generation }))
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

fn read_text(path: &Path) -> Result<Option<String>, ChatError> {
    match fs::read_to_string(path) {
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
