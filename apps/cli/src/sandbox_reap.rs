//! `etude sandbox reap`: removes what dead programs left.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use session::{
    docker::{Engine, candidates},
    lease::{Held, Leases, ReapReport, Reclaimer, TIME_TO_LIVE},
};

use sandbox::{Config, remove_abandoned};
use serde::Serialize;

use crate::{
    args::SandboxReapArgs,
    failure::{Classify, Failure, Outcome},
    report::print_json,
    screen::Screen,
};

#[derive(Serialize)]
struct Reaped {
    #[serde(flatten)]
    leases: ReapReport,
    /// Control groups and working folders of sandboxes that were killed.
    abandoned: Vec<PathBuf>,
}

/// Exit code 1 when something could not be removed.
pub(crate) fn run(args: &SandboxReapArgs, screen: Screen) -> Outcome<()> {
    let folder = args.leases.clone().or_else(default_folder);
    let folder = folder
        .ok_or_else(|| anyhow!("neither XDG_STATE_HOME nor HOME is set; name a folder by --leases"))
        .asked()?;
    if args.leases.is_some() && !folder.is_dir() {
        return Err(Failure::Asked(anyhow!("{} is no folder", folder.display())));
    }
    let leases = Leases::open(folder, TIME_TO_LIVE).failed()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .failed()?;
    let report = Reaped {
        leases: runtime.block_on(reap(args, &leases))?,
        abandoned: remove_abandoned(&Config::new(1).scratch),
    };
    if args.json {
        print_json(&report)?;
    } else {
        tell(&report, screen);
    }
    match report.leases.failed.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(anyhow!(
            "{count} things could not be removed; the next reaping tries again"
        ))),
    }
}

/// Where leases are unless another folder is named: `etude/leases` of the user's state folder.
pub(crate) fn default_folder() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).map(PathBuf::from);
    let state = named("XDG_STATE_HOME").filter(|folder| folder.is_absolute());
    let state = state.or_else(|| Some(named("HOME")?.join(".local/state")))?;
    Some(state.join("etude/leases"))
}

async fn reap(args: &SandboxReapArgs, leases: &Leases) -> Outcome<ReapReport> {
    let mut engines = Vec::new();
    if let Some(address) = &args.engine {
        engines.push(Engine::connect(address).await.failed()?);
    } else {
        // Nobody asked for these: one that does not answer holds nothing back.
        for address in addresses(leases)? {
            engines.extend(Engine::connect(&address).await.ok());
        }
    }
    let reclaimers: Vec<&dyn Reclaimer> = engines.iter().map(|engine| engine as _).collect();
    leases.reap(&reclaimers).await.failed()
}

/// Addresses that container engines usually listen at, the likeliest first.
pub(crate) fn usual_engines() -> Vec<String> {
    let said = env::var_os("DOCKER_HOST").and_then(|said| said.into_string().ok());
    let runtime = env::var_os("XDG_RUNTIME_DIR");
    candidates(said.as_deref(), runtime.as_deref().map(Path::new))
}

/// Engines that leases name, and those in the usual places.
fn addresses(leases: &Leases) -> Outcome<Vec<String>> {
    let mut addresses = usual_engines();
    for lease in leases.list().failed()? {
        addresses.extend(lease.held.into_iter().filter_map(|held| match held {
            Held::Container { engine, .. } | Held::ContainerImage { engine, .. } => Some(engine),
            _ => None,
        }));
    }
    addresses.sort();
    addresses.dedup();
    Ok(addresses)
}

fn tell(reaped: &Reaped, screen: Screen) {
    for path in &reaped.abandoned {
        screen.say(format!("removed {}", path.display()));
    }
    let report = &reaped.leases;
    for removed in &report.removed {
        screen.say(format!("removed {:?} of {}", removed.held, removed.lease));
    }
    for failed in &report.failed {
        screen.say(format!(
            "not removed: {:?} of {}: {}",
            failed.held, failed.lease, failed.detail
        ));
    }
    for path in &report.damaged {
        screen.say(format!("not a lease: {}", path.display()));
    }
    screen.say(format!(
        "{} leases ended, {} of living programs, {} of other machines",
        report.ended.len(),
        report.live,
        report.elsewhere
    ));
}
