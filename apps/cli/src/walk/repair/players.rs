//! Who plays: the study with its sandboxes and its patch model, and models bound to their roles.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use code::Patch;
use record::Fault;
use repair::{
    Place, Repair, Task, Testbeds,
    patch_model::{GenerateConfig, GeneratePatcher, PATCHER, PatchModel},
    planner::{PLANNER, PlannerKind},
    repair_loop::RepairLoop,
    search::Search,
    workplace::{PatchedBackend, Testbed},
};
use rollout::Roles;
use session::Image;
use tokio::runtime::Runtime;

use super::{
    instruments::Instruments,
    recipe::{Patcher, Recipe},
};
use crate::{
    failure::{Classify, Failure, Outcome},
    sandboxes::{SandboxSettings, Sandboxes},
    walk::endpoint::api_key,
};

/// The study as the recipe has it.
pub(super) fn study(recipe: &Recipe, instruments: &Instruments) -> Outcome<Arc<Repair>> {
    let repairer = RepairLoop {
        model: patch_model(&recipe.patcher)?,
        settings: recipe.repair,
    };
    let testbeds = testbeds(&recipe.sandbox, &instruments.sandboxes);
    // No policy of a recipe has tokens of its own yet: a quarter of the bytes.
    let count = Arc::new(|text: &str| text.len().div_ceil(4));
    let study = Repair::new(recipe.config(), testbeds, Arc::new(repairer), count);
    let graded_in = bare_testbeds(&recipe.sandbox, &instruments.sandboxes);
    Ok(Arc::new(study.graded_in(graded_in)))
}

/// Who turns plans into patches.
pub(crate) fn patch_model(patcher: &Patcher) -> Outcome<Arc<dyn PatchModel>> {
    Ok(match patcher {
        Patcher::Search(settings) => {
            let search = Search::new(settings.clone());
            Arc::new(search.map_err(|error| Failure::Asked(anyhow!("patcher: {error}")))?)
        }
        Patcher::Model(settings) => Arc::new(*settings),
        Patcher::Generate(service) => {
            let config = GenerateConfig {
                api_key: api_key(service.api_key_env.as_deref(), &service.url)?,
                timeout: Duration::from_secs_f64(service.timeout_s),
                ..GenerateConfig::new(&service.url, &service.model)
            };
            Arc::new(GeneratePatcher::new(config).failed()?)
        }
    })
}

/// Opens the testbeds of tasks, with their checkouts as the tasks say.
pub(crate) fn testbeds(settings: &SandboxSettings, sandboxes: &Sandboxes) -> Testbeds {
    let (settings, sandboxes) = (settings.clone(), sandboxes.clone());
    Arc::new(move |task: &Task| {
        let bare = bare_testbed(task, &settings, &sandboxes)?;
        let (Place::Patched { patch, .. } | Place::PatchedImage { patch, .. }) = &task.place else {
            return Ok(bare);
        };
        let patch = Patch::parse(patch.as_bytes());
        let patch = patch.map_err(|error| Fault::grader(format!("task {}: {error}", task.id)))?;
        Ok(Testbed {
            backend: Arc::new(PatchedBackend::new(bare.backend.clone(), patch)),
            ..bare
        })
    })
}

/// Opens the testbeds that patches are graded in: what is graded brings the checkout's own patch with it.
fn bare_testbeds(settings: &SandboxSettings, sandboxes: &Sandboxes) -> Testbeds {
    let (settings, sandboxes) = (settings.clone(), sandboxes.clone());
    Arc::new(move |task: &Task| bare_testbed(task, &settings, &sandboxes))
}

fn bare_testbed(
    task: &Task,
    settings: &SandboxSettings,
    sandboxes: &Sandboxes,
) -> Result<Testbed, Fault> {
    let unsound =
        |error: &dyn std::fmt::Display| Fault::grader(format!("task {}: {error}", task.id));
    let framework = task.public.framework;
    let python = sandboxes.python(framework);
    let image = match &task.place {
        Place::Image { name, work_tree }
        | Place::PatchedImage {
            name, work_tree, ..
        } => Image {
            work_tree: Some(work_tree.clone()),
            ..Image::container(name)
        },
        Place::Folder(folder) | Place::Patched { folder, .. } => Image::checkout(folder),
    };
    Ok(Testbed {
        backend: sandboxes.backend.clone(),
        image,
        framework,
        python: python.map_err(|error| unsound(&error))?,
        limits: settings.limits(),
        slots: settings.slots,
    })
}

/// Every role bound to its policy.
pub(super) fn cast(recipe: &Recipe, runtime: &Runtime) -> Outcome<Roles> {
    let mut roles = Roles::default();
    for policy in recipe.policies.values() {
        let endpoint = runtime.block_on(policy.endpoint().open())?;
        for (role, sampling) in &policy.roles {
            roles = roles.bind_messages(role, endpoint.clone(), sampling.sampling());
        }
    }
    Ok(roles)
}

/// Who plans and who patches, for people.
pub(super) fn who(recipe: &Recipe) -> String {
    let model = |role: &str| {
        let found = recipe
            .policies
            .values()
            .find(|policy| policy.roles.contains_key(role));
        found.map_or_else(|| role.to_owned(), |policy| policy.model.clone())
    };
    let planner = match recipe.planner.kind {
        PlannerKind::Rules => "rules".to_owned(),
        PlannerKind::Model => model(PLANNER),
    };
    let patcher = match &recipe.patcher {
        Patcher::Search(settings) => format!("a search among {} candidates", settings.budget),
        Patcher::Model(_) => model(PATCHER),
        Patcher::Generate(service) => service.url.clone(),
    };
    format!("planned by {planner}, patched by {patcher}")
}
