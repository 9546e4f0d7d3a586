//! What requests are served with.

use std::{collections::BTreeMap, sync::Arc};

use judge::{Judge, JudgeConfig, JudgeParts, VerdictStore};
use sandbox::{Language, Limits, Sandbox, Toolchains};

use crate::{Dataset, fault::Fault, metrics::Metrics};

/// The sandbox, what runs in it, and the data that requests may name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    sandbox: Sandbox,
    toolchains: Toolchains,
    judge: Judge,
    /// Of runs whose requests say nothing about it; bytes.
    memory: u64,
    datasets: BTreeMap<String, Dataset>,
    metrics: Metrics,
}

/// Languages that SandboxFusion knows and this server has no way to run.
const ELSEWHERE: [&str; 24] = [
    "python2",
    "go_test",
    "php",
    "csharp",
    "sql",
    "cuda",
    "lua",
    "R",
    "perl",
    "D_ut",
    "ruby",
    "scala",
    "julia",
    "junit",
    "kotlin_script",
    "jest",
    "verilog",
    "python_gpu",
    "lean",
    "swift",
    "racket",
    "gtest",
    "react",
    "kotlin",
];

impl Service {
    /// `sandbox` shows the folders of `toolchains`; `memory` are the bytes of runs whose requests do
    /// not say.
    pub fn new(
        sandbox: Sandbox,
        toolchains: Toolchains,
        memory: u64,
        store: Option<VerdictStore>,
        datasets: BTreeMap<String, Dataset>,
    ) -> Self {
        let parts = JudgeParts {
            toolchains: toolchains.clone(),
            store,
        };
        let config = JudgeConfig {
            limits: Limits {
                memory,
                ..Limits::SMALL
            },
            ..JudgeConfig::small()
        };
        let judge = Judge::with(sandbox.clone(), config, parts);
        Self {
            inner: Arc::new(Inner {
                sandbox,
                toolchains,
                judge,
                memory,
                datasets,
                metrics: Metrics::default(),
            }),
        }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.inner.sandbox
    }

    pub(crate) fn toolchains(&self) -> &Toolchains {
        &self.inner.toolchains
    }

    pub(crate) fn judge(&self) -> &Judge {
        &self.inner.judge
    }

    pub(crate) fn memory(&self) -> u64 {
        self.inner.memory
    }

    pub(crate) fn datasets(&self) -> &BTreeMap<String, Dataset> {
        &self.inner.datasets
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The language that the request calls `name` in its field `at`.
    pub(crate) fn language(name: &str, at: &[&str]) -> Result<Language, Fault> {
        let known = || Language::ALL.map(Language::name).join(", ");
        match Language::named(name) {
            Some(language) => Ok(language),
            None if ELSEWHERE.contains(&name) => Err(Fault::Asked(format!(
                "this server does not run {name}; it runs {}",
                known()
            ))),
            None => {
                let msg = format!("unknown language {name:?}; known are {}", known());
                Err(crate::Invalid::at(at, msg).into())
            }
        }
    }
}
