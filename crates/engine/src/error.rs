//! What can go wrong, with the facts in fields.

use std::{io, path::PathBuf};

/// A model directory or configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not valid JSON: {source}", path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// Of a `config.json`.
    #[error("{}: {source}", path.display())]
    Config {
        path: PathBuf,
        source: Box<ModelError>,
    },
    #[error("`{key}` is missing")]
    MissingKey { key: &'static str },
    #[error("`{key}` is {found}, but {expected} was expected")]
    BadValue {
        key: String,
        expected: String,
        found: String,
    },
    #[error(
        "{feature} is not supported by this engine; convert the checkpoint or choose another model"
    )]
    Unsupported { feature: String },
    #[error("{}: not a readable safetensors file: {reason}", path.display())]
    Safetensors { path: PathBuf, reason: String },
    #[error("{}: missing, but {} says that it holds tensors", path.display(), index.display())]
    MissingShard { path: PathBuf, index: PathBuf },
    #[error(
        "{}: tensor `lm_head.weight` is not `model.embed_tokens.weight`, though config.json ties the two; set tie_word_embeddings to false, or take the tensor out",
        path.display()
    )]
    TwoHeads { path: PathBuf },
    #[error(
        "{}: weights as pickled Python objects, which are programs, are not read; load the model with transformers and write it with save_pretrained",
        path.display()
    )]
    Pickled { path: PathBuf },
    #[error("{}: tensor `{tensor}` is missing", path.display())]
    MissingTensor { path: PathBuf, tensor: String },
    #[error("{}: tensor `{tensor}` is not part of a model with this config.json", path.display())]
    UnknownTensor { path: PathBuf, tensor: String },
    #[error("{}: tensor `{tensor}` is in another file of this model already", path.display())]
    TensorTwice { path: PathBuf, tensor: String },
    #[error(
        "{}: tensor `{tensor}` holds {value} at element {index}, which {dtype} has no number for; choose bfloat16 or float32",
        path.display()
    )]
    DoesNotFit {
        path: PathBuf,
        tensor: String,
        index: usize,
        value: f32,
        dtype: &'static str,
    },
    #[error("{}: tensor `{tensor}` has shape {found:?}, but {expected:?} was expected", path.display())]
    WrongShape {
        path: PathBuf,
        tensor: String,
        expected: Vec<usize>,
        found: Vec<usize>,
    },
    #[error("{}: tensor `{tensor}` has dtype {found}, but F32, BF16 or F16 was expected", path.display())]
    WrongDtype {
        path: PathBuf,
        tensor: String,
        found: String,
    },
    #[error("{}: tensor `{tensor}` holds {value} at element {index}; weights must be finite", path.display())]
    NotFinite {
        path: PathBuf,
        tensor: String,
        index: usize,
        value: f32,
    },
    #[error("{}: `{key}` is {found}, but the name of a shard beside this index was expected", path.display())]
    BadIndex {
        path: PathBuf,
        key: String,
        found: String,
    },
    #[error("lora.{key} is {value}, but it must be {must}")]
    BadLora {
        key: &'static str,
        value: String,
        must: &'static str,
    },
    #[error("{}: `{key}` is {found}, but {expected} was expected", path.display())]
    BadAdapterConfig {
        path: PathBuf,
        key: String,
        expected: String,
        found: String,
    },
    #[error(
        "{}: `{key}` = {found} is not supported by this engine; merge the adapter with peft and use the merged model",
        path.display()
    )]
    UnsupportedAdapter {
        path: PathBuf,
        key: String,
        found: String,
    },
    #[error("the adapter is for another base model: {reason}")]
    AdapterOfAnotherBase { reason: String },
    #[error(
        "{}: no model at `{base}`, neither beside the adapter nor from the working directory; put the base there or change base_model_name_or_path",
        path.display()
    )]
    NoBase { path: PathBuf, base: String },
    #[error("{}: metadata `{key}` is missing or not a number", path.display())]
    BadMetadata { path: PathBuf, key: &'static str },
}

/// A row that the model cannot be run on. Rows are counted from 0 in the batch given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    #[error("row {row} has {tokens} tokens but a mask of {mask}")]
    MaskLength {
        row: usize,
        tokens: usize,
        mask: usize,
    },
    #[error("row {row}: mask[0] is true, but the first token is predicted from nothing")]
    FirstTokenMasked { row: usize },
    #[error(
        "row {row}: token {token} at position {position} is outside the vocabulary of {vocab_size}"
    )]
    UnknownToken {
        row: usize,
        position: usize,
        token: u32,
        vocab_size: usize,
    },
    #[error("row {row} has {tokens} tokens, more than the context of {context}")]
    TooLong {
        row: usize,
        tokens: usize,
        context: usize,
    },
}

/// Threads could not be started.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("cannot start {threads} engine threads: {source}")]
    Pool {
        threads: usize,
        source: rayon::ThreadPoolBuildError,
    },
    #[error("cannot start the sampler's thread: {source}")]
    Sampler { source: io::Error },
}

/// Why a sampling request has no completion.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    #[error("no weights were published under `{model}`")]
    UnknownModel { model: String },
    #[error("the prompt is empty; give at least one token")]
    EmptyPrompt,
    #[error("the prompt has {tokens} tokens and the context is {context}: no room for a response")]
    PromptTooLong { tokens: usize, context: usize },
    #[error(
        "prompt token {token} at position {position} is outside the vocabulary of {vocab_size}"
    )]
    UnknownToken {
        position: usize,
        token: u32,
        vocab_size: usize,
    },
    #[error("sampling parameter `{parameter}` is {value}; {expected}")]
    BadSampling {
        parameter: &'static str,
        value: f32,
        expected: &'static str,
    },
    #[error(
        "the request needs {needed} bytes of key-value cache and the sampler was given {budget}"
    )]
    NoRoom { needed: usize, budget: usize },
    #[error("the model gave logits that are not finite at response position {position}")]
    NotFinite { position: usize },
    #[error("logit bias for token {token}, which is outside the vocabulary of {vocab_size}")]
    UnknownBias { token: u32, vocab_size: usize },
    #[error("stop strings need a watch that reads the text; ask through a policy, which has one")]
    StopStringsUnwatched,
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the sampler was shut down before the request was answered")]
    Stopped,
}
