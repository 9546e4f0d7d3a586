//! TRL's side: its script, started in a process of its own.

use std::{fs, path::Path, process::Command};

use record::TokenId;
use serde::Deserialize;
use serde_json::json;

use crate::job::{self, Arguments, COMPARED, Size, StepSeconds, WARM_UP};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers");

/// What the script answers.
#[derive(Deserialize)]
pub(crate) struct Answer {
    pub(crate) versions: std::collections::BTreeMap<String, String>,
    pub(crate) steps: Vec<StepSeconds>,
    /// The first steps.
    pub(crate) compare: Vec<Step>,
}

/// An update of the peer.
#[derive(Deserialize)]
pub(crate) struct Step {
    pub(crate) loss: f64,
    /// Before clipping.
    pub(crate) grad_norm: f64,
    /// In an order of the peer's own.
    pub(crate) rows: Vec<Row>,
}

#[derive(Deserialize)]
pub(crate) struct Row {
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) response: Vec<TokenId>,
    pub(crate) advantage: f32,
    /// Log-probs of the response under the reference.
    pub(crate) reference: Vec<f32>,
    /// Log-probs of the response under the weights before the update.
    pub(crate) logprobs: Vec<f32>,
}

pub(crate) fn is_installed(python: &str) -> bool {
    let found = "import importlib.util as u, sys; sys.exit(u.find_spec('trl') is None)";
    let status = Command::new(python).args(["-c", found]).output();
    status.is_ok_and(|output| output.status.success())
}

pub(crate) fn how_to_install(python: &str) -> String {
    let requirements = Path::new(FOLDER).join("requirements.txt");
    let requirements = fs::canonicalize(&requirements).unwrap_or(requirements);
    format!(
        "TRL is not installed for `{python}`, so Etude runs alone. To compare:\n  \
         python3 -m venv peers && peers/bin/pip install -r {}\n  \
         cargo bench -p train --bench grpo -- --python peers/bin/python",
        requirements.display()
    )
}

/// Trains from the checkpoint; what went wrong is printed.
pub(crate) fn run(
    arguments: &Arguments,
    size: &Size,
    checkpoint: &Path,
    prompts: &[String],
    folder: &Path,
) -> Option<Answer> {
    let (asked, answered) = (folder.join("job.json"), folder.join("answer.json"));
    let algorithm = job::algorithm();
    let job = json!({
        "model": checkpoint,
        "scratch": folder.join("trl"),
        "prompts": prompts,
        "groups": size.groups,
        "group_size": size.group_size,
        "response_tokens": size.response_tokens,
        "steps": WARM_UP + arguments.steps,
        "compare_steps": COMPARED,
        "micro_batch_rows": arguments.micro_batch(size),
        "threads": arguments.threads,
        "seed": 0,
        "kl_coefficient": algorithm.kl.coefficient,
        "clip": algorithm.clip_high,
        "optimizer": job::optimizer(),
    });
    fs::write(&asked, job.to_string()).unwrap();
    let threads = arguments.threads.to_string();
    let output = Command::new(&arguments.python)
        .arg(Path::new(FOLDER).join("trl_grpo.py"))
        .args([&asked, &answered])
        // Read when the libraries are loaded, before the script can say anything.
        .envs(["OMP_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, &threads)))
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let text = fs::read_to_string(&answered)
                .unwrap()
                .replace("NaN", "null");
            Some(serde_json::from_str(&text).unwrap())
        }
        Ok(output) => {
            println!("TRL failed:\n{}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("TRL cannot be started: {}: {error}", arguments.python);
            None
        }
    }
}
