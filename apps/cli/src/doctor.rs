//! `etude doctor`: what this machine offers, and how to get what is missing.

use std::collections::BTreeMap;

use sandbox::{Language, Probe, Tier, Toolchains};
use serde::Serialize;

use crate::{
    args::DoctorArgs,
    failure::{Failure, Outcome},
    machine,
    report::{print_json, print_text},
    screen::Screen,
};

#[derive(Debug, Serialize)]
struct Findings {
    machine: BTreeMap<String, String>,
    sandbox: Probe,
    /// What runs the programs of each language, or what is missing.
    languages: BTreeMap<&'static str, Result<String, String>>,
    /// Whether `etude train` can run programs here without opting in to weaker walls.
    ready: bool,
}

/// Exit code 0 when the main job can run here as it is, 1 when something is missing.
pub(crate) fn run(args: &DoctorArgs, _screen: Screen) -> Outcome<()> {
    let probe = sandbox::probe(&machine::sandbox_config(1));
    let ready = probe.python.is_ok() && probe.best() == Some(Tier::Namespaces);
    let findings = Findings {
        machine: machine::facts(),
        sandbox: probe,
        languages: languages(),
        ready,
    };
    if args.json {
        print_json(&findings)?;
    } else {
        print_text(&findings.text())?;
    }
    if findings.ready {
        return Ok(());
    }
    Err(Failure::Failed(anyhow::anyhow!(
        "this machine lacks something that `etude train` needs; see the hints above"
    )))
}

impl Findings {
    fn text(&self) -> String {
        let mut text = String::from("machine\n");
        for (name, value) in &self.machine {
            text += &format!("  {name:<12} {value}\n");
        }
        text += &format!("  {:<12} {}\n", "engine", vector_units());
        text += "\npython\n";
        text += &match &self.sandbox.python {
            Ok(python) => format!("  {} (version {})\n", python.executable, python.version),
            Err(reason) => format!("  none: {reason}\n"),
        };
        text += "\nlanguages\n";
        for (name, found) in &self.languages {
            text += &match found {
                Ok(version) => format!("  {name:<12} {version}\n"),
                Err(reason) => format!("  {name:<12} none: {}\n", reason.replace('\n', "; ")),
            };
        }
        text += "\nsandbox tiers, strongest first\n";
        for tier in &self.sandbox.tiers {
            let verdict = if tier.works {
                "works"
            } else {
                "does not work: "
            };
            text += &format!("  {:<14} {verdict}{}\n", tier.tier.to_string(), tier.detail);
        }
        text += "\nmechanisms\n";
        for (name, said) in &self.sandbox.mechanisms {
            text += &format!("  {name:<28} {said}\n");
        }
        if !self.sandbox.hints.is_empty() {
            text += "\nhints\n";
            for hint in &self.sandbox.hints {
                text += &format!("  {hint}\n");
            }
        }
        text += if self.ready {
            "\nready: untrusted programs run behind namespaces here\n"
        } else {
            "\nnot ready: programs that are not trusted cannot be run here; the recall study runs none\n"
        };
        text
    }
}

fn languages() -> BTreeMap<&'static str, Result<String, String>> {
    let search = machine::search_path();
    let toolchains = Toolchains::probe(&Language::ALL, None, &search);
    let version = |language| {
        let found = toolchains.get(language);
        found
            .map(|toolchain| toolchain.version.clone())
            .map_err(|error| error.to_string())
    };
    let all = Language::ALL.into_iter();
    all.map(|language| (language.name(), version(language)))
        .collect()
}

/// What the engine's kernels will use here.
fn vector_units() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "AVX-512 kernels";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "AVX2 kernels";
        }
    }
    "portable kernels"
}
