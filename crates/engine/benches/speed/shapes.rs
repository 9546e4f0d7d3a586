//! The sizes and tasks that are measured, and what they must cost at least.

use engine::ModelConfig;

/// What is done with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// One optimizer step over rows of [`ROW_TOKENS`] tokens, every token trained.
    Train,
    /// Log-probabilities of the same rows.
    Score,
    /// [`RESPONSE`] greedy tokens for 32 different prompts of [`PROMPT`] tokens, prefill included.
    Decode32,
    /// The same for one prompt.
    Decode1,
}

pub(crate) const ROW_TOKENS: usize = 256;
pub(crate) const PROMPT: usize = 64;
pub(crate) const RESPONSE: usize = 128;

impl Task {
    pub(crate) const ALL: [Self; 4] = [Self::Train, Self::Score, Self::Decode32, Self::Decode1];

    fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Score => "score",
            Self::Decode32 => "decode32",
            Self::Decode1 => "decode1",
        }
    }
}

/// Which model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// 0.85 M parameters.
    A,
    /// 27.8 M parameters.
    B,
}

impl Size {
    pub(crate) const ALL: [Self; 2] = [Self::A, Self::B];

    pub(crate) fn config(self) -> Shape {
        match self {
            Self::A => Shape {
                vocab: 512,
                hidden: 128,
                layers: 4,
                heads: 4,
                kv_heads: 2,
                intermediate: 384,
            },
            Self::B => Shape {
                vocab: 8192,
                hidden: 512,
                layers: 8,
                heads: 8,
                kv_heads: 4,
                intermediate: 1408,
            },
        }
    }

    /// Rows of a training batch.
    pub(crate) fn rows(self) -> usize {
        match self {
            Self::A => 16,
            Self::B => 8,
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) task: Task,
    pub(crate) size: Size,
}

impl Job {
    pub(crate) fn name(&self) -> String {
        let size = match self.size {
            Size::A => "a",
            Size::B => "b",
        };
        format!("{}-{size}", self.task.name())
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let sizes = |task| Size::ALL.into_iter().map(move |size| Self { task, size });
        Task::ALL
            .into_iter()
            .flat_map(sizes)
            .find(|job| job.name() == name)
    }
}

/// Numbers of an architecture with tied embeddings and biases on queries, keys and values.
pub(crate) struct Shape {
    pub(crate) vocab: usize,
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) intermediate: usize,
}

impl Shape {
    pub(crate) fn model(&self) -> ModelConfig {
        ModelConfig {
            n_kv_heads: self.kv_heads,
            intermediate_size: self.intermediate,
            ..ModelConfig::qwen2(self.vocab, self.hidden, self.layers, self.heads)
        }
    }

    /// Weights of all layers that every token is multiplied with.
    fn layer_weights(&self) -> f64 {
        let qkv = self.hidden + 2 * self.kv_heads * self.hidden / self.heads;
        let each = self.hidden * (qkv + self.hidden + 3 * self.intermediate);
        (self.layers * each) as f64
    }

    fn head_weights(&self) -> f64 {
        (self.vocab * self.hidden) as f64
    }

    /// Operations (two per multiply-add) of products that one token needs at least: those with
    /// weights, and attention to the keys before it. Of a decoded token, with its share of the prompt,
    /// of which the last token alone needs logits.
    pub(crate) fn operations(&self, task: Task) -> f64 {
        let attention = |keys: f64| 4.0 * keys * (self.layers * self.hidden) as f64;
        let row = ROW_TOKENS as f64;
        let (prompt, response) = (PROMPT as f64, RESPONSE as f64);
        let forward = 2.0 * (self.layer_weights() + self.head_weights()) + attention(row / 2.0);
        match task {
            Task::Train => 3.0 * forward,
            Task::Score => forward,
            Task::Decode32 | Task::Decode1 => {
                let tokens = prompt + response;
                let layers = tokens * (2.0 * self.layer_weights() + attention(tokens / 2.0));
                (layers + response * 2.0 * self.head_weights()) / response
            }
        }
    }

    /// Bytes of f32 weights that one decoded token reads at least.
    pub(crate) fn bytes_read(&self) -> f64 {
        4.0 * (self.layer_weights() + self.head_weights())
    }
}
