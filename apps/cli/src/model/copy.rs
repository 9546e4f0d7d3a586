//! A checkpoint written anew: in one file or in shards, in another precision, its adapter folded in or
//! beside its base. The new directory appears whole or not at all.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use engine::{Dtype, Model, WeightFiles, WeightType};
use serde::Serialize;

use super::{
    AdapterForm, ComputeArg, CopyArgs, StoreArg,
    findings::{Findings, dtype_name, tokenizer_directory},
    text::size,
};
use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
};

/// What belongs to the tokenizer and to generation; taken over byte for byte.
const TAKEN: [&str; 9] = [
    "added_tokens.json",
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
];

/// Where the base of a separate adapter is written, below the adapter.
const BASE: &str = "base";

/// What was written.
#[derive(Debug, Serialize)]
struct Copied {
    from: PathBuf,
    to: PathBuf,
    /// Numbers of the weights, without those of a separate adapter.
    parameters: usize,
    adapter: Option<&'static str>,
    /// What weights are stored as.
    stored: &'static str,
    /// What products are computed in when Etude loads it.
    computed: &'static str,
    files: Vec<String>,
    bytes: u64,
    /// Files of the source that were left behind.
    left: Vec<String>,
    /// As of the source: see [`Findings`].
    notes: Vec<String>,
}

/// How the weights are to be.
struct Wish {
    /// As they are now, unless said.
    stored: Option<WeightType>,
    computed: Dtype,
}

pub(super) fn import(args: &CopyArgs, dtype: Option<ComputeArg>) -> Outcome<()> {
    copy(args, |source| match dtype {
        Some(ComputeArg::Bf16) => Wish {
            stored: Some(WeightType::Bf16),
            computed: Dtype::Bf16,
        },
        Some(ComputeArg::F32) => Wish {
            stored: None,
            computed: Dtype::F32,
        },
        None => Wish {
            stored: None,
            computed: source.config().dtype,
        },
    })
}

pub(super) fn export(args: &CopyArgs, dtype: Option<StoreArg>) -> Outcome<()> {
    copy(args, |_| Wish {
        stored: dtype.map(|dtype| match dtype {
            StoreArg::F32 => WeightType::F32,
            StoreArg::Bf16 => WeightType::Bf16,
            StoreArg::F16 => WeightType::F16,
        }),
        // What Etude computes in is nothing to other programs.
        computed: Dtype::F32,
    })
}

fn copy(args: &CopyArgs, wish: impl FnOnce(&Model) -> Wish) -> Outcome<()> {
    let partial = partial(&args.to)?;
    let findings = Findings::of(&args.model).asked()?;
    findings.check().asked()?;
    let source = Model::load(&args.model).asked()?;
    let wish = wish(&source);
    let kept = stored(&findings);
    let stored = wish.stored.unwrap_or(kept);
    let job = Job {
        args,
        form: form(args, &source, stored == kept || stored == WeightType::F32)?,
        findings,
        source,
        files: WeightFiles {
            dtype: stored,
            shard_bytes: args.shard_size.map_or(u64::MAX, |mib| mib << 20),
        },
        computed: wish.computed,
    };
    fs::create_dir(&partial)
        .with_context(|| partial.display().to_string())
        .asked()?;
    let done = job.write(&partial).and_then(|()| {
        let copied = job.describe(&partial)?;
        fs::rename(&partial, &args.to)
            .with_context(|| args.to.display().to_string())
            .failed()?;
        Ok(copied)
    });
    if done.is_err() {
        // The error that led here is the one to tell.
        let _ = fs::remove_dir_all(&partial);
    }
    let copied = done?;
    if args.json {
        print_json(&copied)
    } else {
        print_text(&copied.text())
    }
}

/// The directory that becomes `to` when it is whole.
fn partial(to: &Path) -> Outcome<PathBuf> {
    let refuse = |reason: String| Err(Failure::Asked(anyhow!("{}: {reason}", to.display())));
    if to.symlink_metadata().is_ok() {
        return refuse("exists already; name a directory that does not".to_owned());
    }
    let Some(name) = to.file_name() else {
        return refuse("names no directory".to_owned());
    };
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        return refuse(format!("there is no directory {}", parent.display()));
    }
    let partial = to.with_file_name(name).with_added_extension("partial");
    if partial.exists() {
        return refuse(format!(
            "{} is left from a copy that was cut short; remove it",
            partial.display()
        ));
    }
    Ok(partial)
}

/// The type of all numbers of the source; f32 holds any mixture.
fn stored(findings: &Findings) -> WeightType {
    let files = findings.weights.iter();
    let types: BTreeSet<&str> = files
        .flat_map(|file| file.numbers.keys().map(String::as_str))
        .collect();
    match types.into_iter().collect::<Vec<_>>()[..] {
        ["BF16"] => WeightType::Bf16,
        ["F16"] => WeightType::F16,
        _ => WeightType::F32,
    }
}

/// What becomes of the adapter, if there is one. `exact` when the base keeps every number.
fn form(args: &CopyArgs, source: &Model, exact: bool) -> Outcome<Option<AdapterForm>> {
    let refuse = |reason: &str| {
        let shown = args.model.display();
        Err(Failure::Asked(anyhow!("{shown}: {reason}")))
    };
    let form = match (source.adapter(), args.adapter) {
        (None, Some(_)) => return refuse("has no adapter; leave --adapter out"),
        (None, None) => None,
        (Some(_), form) => Some(form.unwrap_or(AdapterForm::Merged)),
    };
    if args.base.is_some() && form != Some(AdapterForm::Separate) {
        return refuse("--base names the base of an adapter that is kept: add --adapter separate");
    }
    if form == Some(AdapterForm::Separate) && !exact {
        return refuse(
            "this --dtype rounds the base that the adapter was trained over; leave it out, or fold the \
             adapter in with --adapter merged",
        );
    }
    Ok(form)
}

/// One copy, all of it decided.
struct Job<'a> {
    args: &'a CopyArgs,
    findings: Findings,
    source: Model,
    form: Option<AdapterForm>,
    files: WeightFiles,
    computed: Dtype,
}

impl Job<'_> {
    /// Every file of the copy.
    fn write(&self, to: &Path) -> Outcome<()> {
        let dense = match (self.form, self.source.adapter()) {
            (Some(AdapterForm::Separate), Some(adapter)) => {
                let name = self.args.base.as_deref();
                let adapter = adapter.as_ref().clone();
                let named = adapter.named_base(name.unwrap_or(BASE));
                named.save(to).failed()?;
                self.take_tokenizer(to)?;
                name.is_none().then(|| to.join(BASE))
            }
            _ => Some(to.to_owned()),
        };
        if let Some(dense) = dense {
            let weights = self.weights()?;
            weights.save_as(&dense, self.files).failed()?;
            self.take_tokenizer(&dense)?;
        }
        Ok(())
    }

    /// The dense weights, with the adapter folded in where that is asked.
    fn weights(&self) -> Outcome<Model> {
        // In full precision, so that rounding happens once.
        let mut weights = match self.source.config().dtype {
            Dtype::F32 => self.source.without_adapter(),
            Dtype::Bf16 => self.source.with_dtype(Dtype::F32),
        };
        if let (Some(AdapterForm::Merged), Some(adapter)) = (self.form, self.source.adapter()) {
            let adapted = weights.with_adapter(adapter.clone()).failed()?;
            weights = adapted.merged();
        }
        Ok(match self.computed {
            Dtype::F32 => weights,
            Dtype::Bf16 => weights.with_dtype(Dtype::Bf16),
        })
    }

    fn tokenizer(&self) -> &Path {
        let adapter = self.findings.adapter.as_ref();
        tokenizer_directory(
            &self.args.model,
            adapter.map(|adapter| adapter.base.as_path()),
        )
    }

    fn take_tokenizer(&self, to: &Path) -> Outcome<()> {
        for name in TAKEN {
            let file = self.tokenizer().join(name);
            if file.is_file() {
                fs::copy(&file, to.join(name))
                    .with_context(|| file.display().to_string())
                    .failed()?;
            }
        }
        Ok(())
    }

    fn describe(&self, written: &Path) -> Outcome<Copied> {
        let mut files = Vec::new();
        let mut bytes = 0;
        for directory in [written.to_owned(), written.join(BASE)] {
            let place = directory.strip_prefix(written).unwrap_or(&directory);
            for (name, size) in listed(&directory)? {
                files.push(place.join(name).display().to_string());
                bytes += size;
            }
        }
        let own = |name: &str| {
            TAKEN.contains(&name)
                || name.starts_with("adapter_")
                || name == "config.json"
                || name == "model.safetensors.index.json"
                || self.findings.weights.iter().any(|file| file.file == name)
        };
        let left = listed(&self.args.model)?.into_iter().map(|(name, _)| name);
        Ok(Copied {
            from: self.args.model.clone(),
            to: self.args.to.clone(),
            parameters: self.source.n_parameters(),
            adapter: self.form.map(|form| match form {
                AdapterForm::Merged => "merged",
                AdapterForm::Separate => "separate",
            }),
            stored: match self.files.dtype {
                WeightType::F32 => "f32",
                WeightType::Bf16 => "bf16",
                WeightType::F16 => "f16",
            },
            computed: dtype_name(self.computed),
            files,
            bytes,
            left: left.filter(|name| !own(name)).collect(),
            notes: self.findings.notes.clone(),
        })
    }
}

/// Names and sizes of the files in a directory, by name; none when it is not there.
fn listed(directory: &Path) -> Outcome<Vec<(String, u64)>> {
    let mut files = Vec::new();
    if !directory.is_dir() {
        return Ok(files);
    }
    let shown = || directory.display().to_string();
    for entry in fs::read_dir(directory).with_context(shown).failed()? {
        let path = entry.with_context(shown).failed()?.path();
        let metadata = fs::metadata(&path).with_context(shown).failed()?;
        if metadata.is_file() {
            let name = path.file_name().unwrap_or_default();
            files.push((name.to_string_lossy().into_owned(), metadata.len()));
        }
    }
    files.sort();
    Ok(files)
}

impl Copied {
    fn text(&self) -> String {
        let adapter = match self.adapter {
            Some("merged") => ", the adapter folded in",
            Some(_) => " of the base, the adapter beside it",
            None => "",
        };
        let mut text = format!(
            "{}: {} parameters in {}{adapter}; {} files, {}\n",
            self.to.display(),
            self.parameters,
            self.stored,
            self.files.len(),
            size(self.bytes)
        );
        if !self.left.is_empty() {
            text += &format!("left behind: {}\n", self.left.join(", "));
        }
        text.extend(self.notes.iter().map(|note| format!("note: {note}\n")));
        text
    }
}
