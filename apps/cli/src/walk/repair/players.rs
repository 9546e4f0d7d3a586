//! Who plays: the study with its sandboxes and its patch model, and models bound to their roles.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use chat::Chat;
use code::Patch;
use policy::Policy as Bound;
use record::{Fault, Sampling};
use repair::{
    Place, Repair, RepairConfig, Task, Testbeds,
    environment::CountTokens,
    patch_model::{GenerateConfig, GeneratePatcher, PATCHER, PatchModel},
    planner::{PLANNER, PlannerKind},
    repair_loop::RepairLoop,
    search::Search,
    workplace::{PatchedBackend, Testbed},
};
use rollout::Roles;
use session::Image;

use super::{
    instruments::Instruments,
    recipe::{Patcher, PolicyModel, Recipe},
};
use crate::{
    failure::{Classify, Failure, Outcome},
    sandboxes::{SandboxSettings, Sandboxes},
    walk::{Engines, checkpoints::Models, endpoint::api_key, vocabulary::Chats},
};

/// The study with these settings.
pub(super) fn study(
    recipe: &Recipe,
    config: RepairConfig,
    chats: &Chats,
    instruments: &Instruments,
) -> Outcome<Arc<Repair>> {
    let repairer = RepairLoop {
        model: patch_model(&recipe.patcher)?,
        settings: recipe.repair,
    };
    let testbeds = testbeds(&recipe.sandbox, &instruments.sandboxes);
    let count = counter_of(recipe, chats)?;
    let study = Repair::new(config, testbeds, Arc::new(repairer), count);
    let graded_in = bare_testbeds(&recipe.sandbox, &instruments.sandboxes);
    let study = study.graded_in(graded_in);
    Ok(Arc::new(match recipe.repair.remember {
        true => study.remembering(instruments.remembered.clone()),
        false => study,
    }))
}

/// Counts tokens as the planner reads them; where nobody knows its tokens, a quarter of the bytes.
pub(super) fn counter_of(recipe: &Recipe, chats: &Chats) -> Outcome<CountTokens> {
    let mut policies = recipe.policies.iter();
    let planner = policies.find(|(_, policy)| {
        policy.roles.contains_key(PLANNER) && matches!(policy.model, PolicyModel::Local(_))
    });
    let Some((name, _)) = planner else {
        return Ok(Arc::new(|text: &str| text.len().div_ceil(4)));
    };
    let chat: Chat = chats.of(name)?.clone();
    // Whatever cannot be encoded is counted by its bytes, of which no token has less than one.
    Ok(Arc::new(move |text: &str| {
        let tokens = chat.tokenizer().encode(text);
        tokens.map_or(text.len(), |tokens| tokens.len())
    }))
}

/// Who turns plans into patches.
pub(super) fn patch_model(patcher: &Patcher) -> Outcome<Arc<dyn PatchModel>> {
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
pub(crate) fn bare_testbeds(settings: &SandboxSettings, sandboxes: &Sandboxes) -> Testbeds {
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
        test_limit: None,
        with_plugins: false,
        slots: settings.slots,
    })
}

/// Every role bound to its policy: those behind endpoints, and local ones with these weights. `temperature` is that
/// of the local ones in place of their own.
pub(super) fn cast(
    engines: &Engines,
    recipe: &Recipe,
    chats: &Chats,
    models: &Models,
    temperature: Option<f64>,
) -> Outcome<Roles> {
    let mut roles = Roles::default();
    for (name, policy) in &recipe.policies {
        let endpoint = match (policy.endpoint(), models.get(name)) {
            (Some(endpoint), _) => Some(engines.runtime.block_on(endpoint.open())?),
            (None, Some(_)) => None,
            // Whoever is trained is bound by the one who trains it.
            (None, None) => continue,
        };
        let local = match models.get(name) {
            Some(model) => Some(Arc::new(engines.policy(
                name,
                chats.of(name)?,
                model.clone(),
            )?)),
            None => None,
        };
        for (role, sampling) in &policy.roles {
            let sampling = sampling.sampling();
            roles = match (&endpoint, &local) {
                (Some(endpoint), _) => roles.bind_messages(role, endpoint.clone(), sampling),
                (None, Some(local)) => {
                    let sampling = Sampling {
                        temperature: temperature.map_or(sampling.temperature, |own| own as f32),
                        ..sampling
                    };
                    roles.bind(role, local.clone() as Arc<dyn Bound>, sampling)
                }
                (None, None) => roles,
            };
        }
    }
    Ok(roles)
}

/// Who plans and who patches, for people.
pub(super) fn who(recipe: &Recipe, planner: PlannerKind) -> String {
    let model = |role: &str| {
        let found = recipe
            .policies
            .iter()
            .find(|(_, policy)| policy.roles.contains_key(role));
        found.map_or_else(
            || role.to_owned(),
            |(name, policy)| match &policy.model {
                PolicyModel::Endpoint(endpoint) => endpoint.clone(),
                PolicyModel::Local(_) => name.clone(),
            },
        )
    };
    let planner = match planner {
        PlannerKind::Rules => "rules".to_owned(),
        PlannerKind::Model => model(PLANNER),
        PlannerKind::Suspicion => "suspicion".to_owned(),
        PlannerKind::Chance => "chance".to_owned(),
    };
    let patcher = match &recipe.patcher {
        Patcher::Search(settings) => format!("a search among {} candidates", settings.budget),
        Patcher::Model(_) => model(PATCHER),
        Patcher::Generate(service) => service.url.clone(),
    };
    format!("planned by {planner}, patched by {patcher}")
}
