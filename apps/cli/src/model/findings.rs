//! What a checkpoint is, from its files alone, and everything that keeps it from being used.

use std::path::{Path, PathBuf};

use chat::{Chat, ChatError, SpecialTokens, TokenizerFiles};
use engine::{Dtype, Family, ModelConfig, StoredFile, Survey};
use jiff::civil::date;
use record::{Message, TokenId};
use serde::Serialize;
use serde_json::Value;

/// Of one directory.
#[derive(Debug, Serialize)]
pub(crate) struct Findings {
    pub(crate) directory: PathBuf,
    /// Nothing keeps it from being used.
    pub(crate) usable: bool,
    pub(crate) architecture: Option<Architecture>,
    pub(crate) adapter: Option<AdapterFacts>,
    /// Of an adapter, its base's.
    pub(crate) weights: Vec<FileFacts>,
    pub(crate) tokenizer: Option<TokenizerFacts>,
    /// Sampling one of these ends a response.
    pub(crate) stop_tokens: Vec<NamedToken>,
    pub(crate) problems: Vec<String>,
    /// What some commands will miss.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Architecture {
    pub(crate) family: &'static str,
    pub(crate) parameters: usize,
    pub(crate) layers: usize,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    /// Rows of the embedding.
    pub(crate) vocabulary: usize,
    pub(crate) context: usize,
    pub(crate) rope_theta: f64,
    /// As in `config.json`.
    pub(crate) rope_scaling: Value,
    pub(crate) sliding_window: Option<WindowFacts>,
    pub(crate) tied_embeddings: bool,
    /// What products are computed in.
    pub(crate) dtype: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct WindowFacts {
    pub(crate) tokens: usize,
    /// Layers that have it.
    pub(crate) layers: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct AdapterFacts {
    pub(crate) base: PathBuf,
    pub(crate) parameters: usize,
    pub(crate) rank: usize,
    pub(crate) alpha: f64,
    pub(crate) rslora: bool,
    pub(crate) targets: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileFacts {
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) tensors: usize,
    /// Numbers of each type.
    pub(crate) numbers: std::collections::BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TokenizerFacts {
    /// One more than the largest id.
    pub(crate) entries: usize,
    pub(crate) special_tokens: Vec<NamedToken>,
    pub(crate) bos: Option<String>,
    pub(crate) eos: Option<String>,
    pub(crate) pad: Option<String>,
    pub(crate) unk: Option<String>,
    /// The file that it stands in.
    pub(crate) chat_template: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NamedToken {
    pub(crate) id: TokenId,
    pub(crate) token: Option<String>,
}

/// Where Qwen2 cuts a text before merging.
const QWEN_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

impl Findings {
    /// Reads every file of the checkpoint.
    ///
    /// # Errors
    /// A directory that is not there; all else is a finding.
    pub(crate) fn of(directory: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(
            directory.is_dir(),
            "{}: no such directory; give a model in the Hugging Face layout (config.json, model.safetensors, \
             tokenizer.json), such as RUN/checkpoints/critic-rl",
            directory.display()
        );
        let survey = Survey::of(directory);
        let mut findings = Self {
            directory: directory.to_owned(),
            usable: false,
            architecture: survey.config.as_ref().map(architecture),
            adapter: adapter(&survey),
            weights: survey.files.iter().map(file).collect(),
            tokenizer: None,
            stop_tokens: Vec::new(),
            problems: survey.problems.iter().map(ToString::to_string).collect(),
            notes: Vec::new(),
        };
        let place = tokenizer_directory(directory, survey.base.as_deref());
        match TokenizerFiles::load(place) {
            Ok(files) => {
                if survey.config.as_ref().map(|config| config.family) == Some(Family::Qwen2) {
                    findings.compare_with_qwen(place);
                }
                findings.read_tokenizer(files, survey.config.as_ref());
            }
            Err(error) => findings.problems.push(without_tokenizer(place, &error)),
        }
        findings.usable = findings.problems.is_empty();
        Ok(findings)
    }

    /// Refuses to go on with a checkpoint that has problems.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let more = match self.problems.len().saturating_sub(1) {
            0 => String::new(),
            n => format!(
                " (and {n} more: etude model inspect {})",
                self.directory.display()
            ),
        };
        match self.problems.first() {
            None => Ok(()),
            Some(first) => Err(anyhow::anyhow!("{first}{more}")),
        }
    }

    fn read_tokenizer(&mut self, files: TokenizerFiles, config: Option<&ModelConfig>) {
        let tokenizer = files.tokenizer.clone();
        let named = |id: TokenId| NamedToken {
            id,
            token: tokenizer.id_to_token(id),
        };
        let mut stops = files.stop_tokens.clone();
        if let Some(config) = config {
            self.compare(&files, config);
            let known = config.eos_tokens.iter().copied();
            let more: Vec<TokenId> = known.filter(|id| !stops.contains(id)).collect();
            stops.extend(more);
        }
        if stops.is_empty() {
            self.notes.push(
                "nothing ends a response: neither `eos_token` nor `eos_token_id` is given"
                    .to_owned(),
            );
        }
        self.stop_tokens = stops.into_iter().map(named).collect();
        let SpecialTokens { bos, eos, pad, unk } = files.special.clone();
        let mut special: Vec<NamedToken> = tokenizer
            .special_tokens()
            .map(|(_, id)| named(id))
            .collect();
        special.sort_by_key(|token| token.id);
        let template = files.template_file().and_then(Path::file_name);
        self.tokenizer = Some(TokenizerFacts {
            entries: tokenizer.vocabulary(),
            special_tokens: special,
            bos,
            eos,
            pad,
            unk,
            chat_template: template.map(|name| name.to_string_lossy().into_owned()),
        });
        self.try_template(files);
    }

    /// Whether the tokens are those of the model.
    fn compare(&mut self, files: &TokenizerFiles, config: &ModelConfig) {
        let (entries, rows) = (files.tokenizer.vocabulary(), config.vocab_size);
        let directory = self.directory.display();
        if entries > rows {
            self.problems.push(format!(
                "{directory}: tokenizer.json has {entries} tokens, but the model's vocabulary is {rows} \
                 (`vocab_size` of config.json): they do not belong together"
            ));
        }
        if let Some(id) = config.eos_tokens.iter().find(|id| **id as usize >= rows) {
            self.problems.push(format!(
                "{directory}: `eos_token_id` of config.json holds {id}, but the model's vocabulary is {rows}"
            ));
        }
    }

    /// Whether `AutoTokenizer` of `transformers` 5 makes the tokenizer that is stored: to all models of
    /// type qwen2 it gives Qwen's, with the vocabulary alone taken from the file.
    fn compare_with_qwen(&mut self, directory: &Path) {
        let text = std::fs::read(directory.join("tokenizer.json")).unwrap_or_default();
        let json: Value = serde_json::from_slice(&text).unwrap_or_default();
        let words = &json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
        if words != QWEN_WORDS || json["normalizer"]["type"] != "NFC" {
            self.notes.push(
                "AutoTokenizer of transformers 5 cuts the words of every qwen2 model as Qwen does; this \
                 tokenizer cuts them otherwise: load it with PreTrainedTokenizerFast.from_pretrained"
                    .to_owned(),
            );
        }
    }

    /// Whether the template, if there is one, takes the simplest of chats.
    fn try_template(&mut self, files: TokenizerFiles) {
        let file = files.template_file().map(Path::to_owned);
        let chat = match files.chat() {
            Ok(chat) => chat,
            Err(ChatError::NoTemplate { .. }) => {
                self.notes.push(
                    "no chat template: texts can be gone on from, but chats cannot be rendered"
                        .to_owned(),
                );
                return;
            }
            Err(error) => return self.problems.push(error.to_string()),
        };
        let messages = [Message::user("Hello")];
        let Err(error) = chat.render(&messages, true) else {
            return;
        };
        let file = file.unwrap_or_default();
        if dated(&chat).render(&messages, true).is_ok() {
            self.notes.push(format!(
                "{}: asks for the date of today (`strftime_now`), which is not given: {error}",
                file.display()
            ));
        } else {
            self.problems.push(format!(
                "{}: refuses a chat of one user message: {error}",
                file.display()
            ));
        }
    }
}

/// Any day will do.
fn dated(chat: &Chat) -> Chat {
    chat.at(date(2000, 1, 1).at(0, 0, 0, 0))
}

/// Adapters of other programs often leave the tokenizer with their base.
pub(super) fn tokenizer_directory<'a>(directory: &'a Path, base: Option<&'a Path>) -> &'a Path {
    match base {
        Some(base) if !directory.join("tokenizer.json").exists() => base,
        _ => directory,
    }
}

fn without_tokenizer(directory: &Path, error: &ChatError) -> String {
    let older = ["tokenizer.model", "vocab.json", "vocab.txt"];
    let older = older.iter().find(|name| directory.join(name).exists());
    match older {
        Some(name) if !directory.join("tokenizer.json").exists() => format!(
            "{error}; {name} alone is not read: load the tokenizer with transformers' AutoTokenizer and write \
             it with save_pretrained"
        ),
        _ => error.to_string(),
    }
}

fn architecture(config: &ModelConfig) -> Architecture {
    let window = config.sliding_window.as_ref();
    let mut json = config.to_json();
    Architecture {
        family: match config.family {
            Family::Qwen2 => "qwen2",
            Family::Qwen3 => "qwen3",
            Family::Llama => "llama",
            Family::Mistral => "mistral",
        },
        parameters: config.n_parameters(),
        layers: config.n_layers,
        hidden_size: config.hidden_size,
        intermediate_size: config.intermediate_size,
        heads: config.n_heads,
        kv_heads: config.n_kv_heads,
        head_dim: config.head_dim,
        vocabulary: config.vocab_size,
        context: config.context,
        rope_theta: config.rope_theta,
        rope_scaling: json["rope_scaling"].take(),
        sliding_window: window.map(|window| WindowFacts {
            tokens: window.tokens,
            layers: window.layers.iter().filter(|sliding| **sliding).count(),
        }),
        tied_embeddings: config.tied_embeddings,
        dtype: dtype_name(config.dtype),
    }
}

pub(super) fn dtype_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "f32",
        Dtype::Bf16 => "bf16",
    }
}

fn adapter(survey: &Survey) -> Option<AdapterFacts> {
    let adapter = survey.adapter.as_ref()?;
    let targets = adapter.config.targets.iter();
    Some(AdapterFacts {
        base: survey.base.clone()?,
        parameters: adapter.parameters,
        rank: adapter.config.rank,
        alpha: adapter.config.alpha,
        rslora: adapter.config.rslora,
        targets: targets.map(|target| target.name()).collect(),
    })
}

fn file(file: &StoredFile) -> FileFacts {
    let name = file.path.file_name().unwrap_or_default();
    FileFacts {
        file: name.to_string_lossy().into_owned(),
        bytes: file.bytes,
        tensors: file.tensors,
        numbers: file.numbers.clone(),
    }
}
