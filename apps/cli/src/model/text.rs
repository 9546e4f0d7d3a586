//! Findings for people.

use super::findings::{
    AdapterFacts, Architecture, FileFacts, Findings, NamedToken, TokenizerFacts,
};

/// Special tokens that are listed by name.
const SHOWN_TOKENS: usize = 8;
/// Files of weights that are listed one by one.
const SHOWN_FILES: usize = 8;

impl Findings {
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.directory.display());
        if let Some(architecture) = &self.architecture {
            text += "\narchitecture\n";
            text += &architecture.text();
        }
        if let Some(adapter) = &self.adapter {
            text += "\nadapter\n";
            text += &adapter.text();
        }
        if !self.weights.is_empty() {
            text += "\nweights\n";
            text += &weights(&self.weights);
        }
        if let Some(tokenizer) = &self.tokenizer {
            text += "\ntokenizer\n";
            text += &tokenizer.text();
            text += &line("stop tokens", &tokens(&self.stop_tokens));
        }
        for (headline, list) in [("notes", &self.notes), ("problems", &self.problems)] {
            if !list.is_empty() {
                text += &format!("\n{headline}\n");
                text.extend(list.iter().map(|one| format!("  {one}\n")));
            }
        }
        text += match self.usable {
            true => "\nusable: every file was read and fits the others\n",
            false => "\nnot usable\n",
        };
        text
    }
}

impl Architecture {
    fn text(&self) -> String {
        let window = match &self.sliding_window {
            None => "none".to_owned(),
            Some(window) => format!("{} tokens in {} layers", window.tokens, window.layers),
        };
        let scaling = match self.rope_scaling.is_null() {
            true => String::new(),
            false => format!(", {}", self.rope_scaling),
        };
        [
            ("family", self.family.to_owned()),
            ("parameters", count(self.parameters as u64)),
            (
                "sizes",
                format!(
                    "{} layers, hidden {}, intermediate {}",
                    self.layers, self.hidden_size, self.intermediate_size
                ),
            ),
            (
                "heads",
                format!(
                    "{} of queries, {} of keys and values, {} wide",
                    self.heads, self.kv_heads, self.head_dim
                ),
            ),
            (
                "vocabulary",
                format!(
                    "{} rows, {}",
                    self.vocabulary,
                    if self.tied_embeddings {
                        "tied"
                    } else {
                        "output apart"
                    }
                ),
            ),
            ("context", format!("{} tokens", self.context)),
            ("rope", format!("base {}{scaling}", self.rope_theta)),
            ("window", window),
            ("computes in", self.dtype.to_owned()),
        ]
        .iter()
        .map(|(name, value)| line(name, value))
        .collect()
    }
}

impl AdapterFacts {
    fn text(&self) -> String {
        let scale = if self.rslora { " (rsLoRA)" } else { "" };
        line("base", &self.base.display().to_string())
            + &line("parameters", &count(self.parameters as u64))
            + &line(
                "rank",
                &format!("{}, alpha {}{scale}", self.rank, self.alpha),
            )
            + &line("targets", &self.targets.join(" "))
    }
}

impl TokenizerFacts {
    fn text(&self) -> String {
        let named = [
            ("bos", &self.bos),
            ("eos", &self.eos),
            ("pad", &self.pad),
            ("unk", &self.unk),
        ];
        let named = named.into_iter().filter_map(|(name, token)| {
            let token = token.as_ref()?;
            Some(format!("{name} {token}"))
        });
        let named: Vec<String> = named.collect();
        let template = self.chat_template.as_deref().unwrap_or("none");
        line("entries", &self.entries.to_string())
            + &line("special", &tokens(&self.special_tokens))
            + &line("named", &named.join(", "))
            + &line("chat template", template)
    }
}

fn line(name: &str, value: &str) -> String {
    format!("  {name:<14} {value}\n")
}

fn weights(files: &[FileFacts]) -> String {
    let mut text = String::new();
    for file in files.iter().take(SHOWN_FILES) {
        let dtypes: Vec<&str> = file.numbers.keys().map(String::as_str).collect();
        text += &format!(
            "  {:<34} {:>10}, {} tensors, {}\n",
            file.file,
            size(file.bytes),
            file.tensors,
            dtypes.join(" and ")
        );
    }
    if files.len() > SHOWN_FILES {
        let bytes = files.iter().map(|file| file.bytes).sum();
        let rest = files.len() - SHOWN_FILES;
        text += &format!("  and {rest} more files, {} in all\n", size(bytes));
    }
    text
}

fn tokens(tokens: &[NamedToken]) -> String {
    let shown = tokens.iter().take(SHOWN_TOKENS).map(|token| {
        let name = token.token.as_deref().unwrap_or("no entry");
        format!("{name} ({})", token.id)
    });
    let mut shown: Vec<String> = shown.collect();
    match tokens.len().saturating_sub(SHOWN_TOKENS) {
        _ if tokens.is_empty() => shown.push("none".to_owned()),
        0 => {}
        rest => shown.push(format!("and {rest} more")),
    }
    shown.join(" ")
}

fn count(numbers: u64) -> String {
    match numbers {
        0..10_000 => numbers.to_string(),
        10_000..1_000_000 => format!("{:.1} thousand", numbers as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} million", numbers as f64 / 1e6),
        _ => format!("{:.2} billion", numbers as f64 / 1e9),
    }
}

pub(super) fn size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let bytes = bytes as f64;
    if bytes < KIB * KIB {
        format!("{:.1} KiB", bytes / KIB)
    } else if bytes < KIB * KIB * KIB {
        format!("{:.1} MiB", bytes / KIB / KIB)
    } else {
        format!("{:.2} GiB", bytes / KIB / KIB / KIB)
    }
}
