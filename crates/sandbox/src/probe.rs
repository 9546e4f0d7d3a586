//! What this machine offers, found by trying.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::{
    Config, Enforced, Job, Limits, Mechanism, Sandbox, Tier, TierChoice, python::find_python,
};

/// What this machine offers to a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The interpreter and its version, or why there is none.
    pub python: Result<PythonReport, String>,
    /// Every tier, from the strongest, each tried with a real run.
    pub tiers: Vec<TierReport>,
    /// Mechanisms and what each said; for people.
    pub mechanisms: Vec<(String, String)>,
    /// What to do to get what is missing.
    pub hints: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonReport {
    /// The real binary, behind any shim.
    pub executable: String,
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierReport {
    pub tier: Tier,
    pub works: bool,
    /// What went wrong; empty when it works.
    pub detail: String,
    /// What held the limits of the run that was tried; absent when it does not work.
    pub enforced: Option<Enforced>,
}

/// Tries everything once. Takes a few hundred milliseconds and may be called within a runtime.
pub fn probe(config: &Config) -> Probe {
    let python = find_python(config.python.as_deref(), &config.search)
        .map(|python| PythonReport {
            executable: python.executable.display().to_string(),
            version: python.version,
        })
        .map_err(|error| error.to_string());
    let tiers: Vec<TierReport> = Tier::ALL.map(|tier| try_tier(config, tier)).into();
    let hints = hints(&tiers, python.is_err());
    Probe {
        python,
        mechanisms: mechanisms(&tiers),
        tiers,
        hints,
    }
}

impl Probe {
    /// The strongest tier that works.
    pub fn best(&self) -> Option<Tier> {
        self.tiers
            .iter()
            .find(|report| report.works)
            .map(|report| report.tier)
    }
}

fn try_tier(config: &Config, tier: Tier) -> TierReport {
    let config = Config {
        slots: 1,
        tier: TierChoice::Exactly(tier),
        allow_weak_tier: true,
        preload: Vec::new(),
        ..config.clone()
    };
    let tried = Sandbox::start(config).and_then(|sandbox| {
        // Waiting is not allowed on the threads of a runtime, so not done on the caller's.
        let run = std::thread::spawn(move || {
            sandbox.run_blocking(Job::script("print('ok')", Limits::SMALL))
        });
        run.join().unwrap_or(Err(crate::SandboxError::Closed))
    });
    let (detail, enforced) = match tried {
        Ok(outcome) if outcome.stdout.head == b"ok\n" => (String::new(), Some(outcome.enforced)),
        Ok(outcome) => {
            let detail = format!("{:?}: {}", outcome.status, outcome.stderr.text());
            (detail, None)
        }
        Err(error) => (error.to_string(), None),
    };
    TierReport {
        tier,
        works: enforced.is_some(),
        detail,
        enforced,
    }
}

fn mechanisms(tiers: &[TierReport]) -> Vec<(String, String)> {
    let file = |path: &str| match fs::read_to_string(path) {
        Ok(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "not told".to_owned(),
        Err(error) => error.kind().to_string(),
    };
    let enforced = tiers.iter().find_map(|report| report.enforced.as_ref());
    let counted = |limit: fn(&Enforced) -> &Vec<Mechanism>| {
        let used = enforced.is_some_and(|by| limit(by).contains(&Mechanism::Cgroup));
        if used {
            "used"
        } else {
            "none that may be used"
        }
        .to_owned()
    };
    let (user, _) = crate::sys::effective_ids();
    [
        ("kernel", file("/proc/sys/kernel/osrelease")),
        (
            "user",
            if user == 0 {
                "root".to_owned()
            } else {
                format!("ordinary ({user})")
            },
        ),
        (
            "user namespaces allowed",
            file("/proc/sys/user/max_user_namespaces"),
        ),
        (
            "AppArmor limits namespaces",
            file("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        ),
        ("security modules", file("/sys/kernel/security/lsm")),
        (
            "seccomp actions",
            file("/proc/sys/kernel/seccomp/actions_avail"),
        ),
        ("control group for memory", counted(|by| &by.memory)),
        ("control group for processes", counted(|by| &by.processes)),
        ("control group for CPU time", counted(|by| &by.cpu)),
    ]
    .map(|(name, said)| (name.to_owned(), said))
    .into()
}

fn hints(tiers: &[TierReport], no_python: bool) -> Vec<String> {
    let mut hints = Vec::new();
    if no_python {
        hints.push("install Python 3.8 or newer, or set the sandbox's `python` to its path".into());
    }
    let works = |wanted: Tier| {
        tiers
            .iter()
            .any(|report| report.tier == wanted && report.works)
    };
    if !no_python && !works(Tier::Namespaces) {
        hints.push(
            "for T1, allow user namespaces: on Ubuntu `sysctl \
             kernel.apparmor_restrict_unprivileged_userns=0` or an AppArmor profile for this \
             program; in Docker `--security-opt seccomp=unconfined --security-opt \
             systempaths=unconfined`; elsewhere `sysctl user.max_user_namespaces=10000`"
                .into(),
        );
    }
    if !no_python && !works(Tier::Landlock) {
        hints.push(
            "for T2, use a kernel of 5.13 or newer with `landlock` in its `lsm=` list".into(),
        );
    }
    hints
}
