//! The Hugging Face layout of a chat: `tokenizer.json`, `tokenizer_config.json` and
//! `generation_config.json`, so that `AutoTokenizer` and `generate` take them as they are.

use std::{fs, io, path::Path};

use record::TokenId;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Chat, ChatError, Template, Tokenizer};

const TOKENIZER: &str = "tokenizer.json";
const CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";
const GENERATION: &str = "generation_config.json";

/// The named tokens of a model, as its templates may print them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpecialTokens {
    #[serde(rename = "bos_token", skip_serializing_if = "Option::is_none")]
    pub bos: Option<String>,
    #[serde(rename = "eos_token", skip_serializing_if = "Option::is_none")]
    pub eos: Option<String>,
    #[serde(rename = "pad_token", skip_serializing_if = "Option::is_none")]
    pub pad: Option<String>,
    #[serde(rename = "unk_token", skip_serializing_if = "Option::is_none")]
    pub unk: Option<String>,
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
        let source = match read_text(&directory.join(TEMPLATE))? {
            Some(source) => source,
            None => template_of(&config).ok_or_else(|| ChatError::NoTemplate {
                directory: directory.to_owned(),
            })?,
        };
        let named = |key: &str| token_of(&config, key);
        let special = SpecialTokens {
            bos: named("bos_token"),
            eos: named("eos_token"),
            pad: named("pad_token"),
            unk: named("unk_token"),
        };

        let generation_path = directory.join(GENERATION);
        let generation = read_object(&generation_path)?.unwrap_or_default();
        let more_stops = stop_ids(&generation, &generation_path)?;
        Self::new(tokenizer, Template::new(&source)?, special, &more_stops)
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
        let mut config = Map::new();
        config.insert(
            "tokenizer_class".to_owned(),
            json!("PreTrainedTokenizerFast"),
        );
        config.insert("clean_up_tokenization_spaces".to_owned(), json!(false));
        let named = [
            ("bos_token", &special.bos),
            ("eos_token", &special.eos),
            ("pad_token", &special.pad),
            ("unk_token", &special.unk),
        ];
        for (key, token) in named {
            config.extend(token.iter().map(|token| (key.to_owned(), json!(token))));
        }
        config.insert("chat_template".to_owned(), json!(self.template().source()));

        let mut generation = Map::new();
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
