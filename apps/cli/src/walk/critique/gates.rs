//! The gates that the frozen reviser must hold: what it makes of fixed critiques.

use std::{collections::BTreeMap, sync::Arc};

use chat::Chat;
use critique::Task;
use policy::ScriptedPolicy;
use record::TaskId;
use rollout::Answers;
use serde_json::json;

use super::{CritiqueRun, evaluate::Criticised};
use crate::failure::{Classify, Outcome};

/// Critiques that tell nothing: the reviser may fix at most this share of wrong programs on them.
const UNHELPFUL: [&str; 5] = ["empty", "malformed", "truncated", "no-op", "correct"];
const UNHELPFUL_LIMIT: f64 = 0.15;
/// On the right critique it must fix at least this share.
const RIGHT: &str = "good";
const RIGHT_LIMIT: f64 = 0.85;
/// Says what to write and misquotes what to replace: shown, without a limit, as following it is no
/// leak.
const MISQUOTED: &str = "absent-fragment";

const ABOUT_GATES: &str = "The share of wrong programs that the frozen reviser fixes when it is given a \
fixed critique. It must follow the critique and know nothing better: on critiques that tell nothing \
it may fix few, on the right critique it must fix most. Only then is a pass the critic's doing. The \
absent-fragment critique names the right replacement and misquotes what it replaces.";

impl CritiqueRun<'_> {
    /// What the reviser makes of fixed critiques of the wrong programs.
    pub(super) fn gates(&self, tasks: &[Arc<Task>], chat: &Chat, reviser: &Answers) -> Outcome<()> {
        let frame = self.frame;
        let wrong: Vec<Arc<Task>> = tasks
            .iter()
            .filter(|task| !task.facts.initially_right)
            .cloned()
            .collect();
        let mut limits = BTreeMap::from([(RIGHT, json!({ "min": RIGHT_LIMIT }))]);
        limits.extend(UNHELPFUL.map(|kind| (kind, json!({ "max": UNHELPFUL_LIMIT }))));
        if frame.replay.note("gates/limits").is_none() {
            frame.run.note("gates/limits", &limits).failed()?;
            frame.run.note("gates/about", ABOUT_GATES).failed()?;
        }
        for kind in limits.into_keys().chain([MISQUOTED]) {
            let texts: BTreeMap<TaskId, String> = wrong
                .iter()
                .filter_map(|task| Some((task.id.clone(), task.probe(kind)?.to_owned())))
                .collect();
            let tasks: Vec<Arc<Task>> = wrong
                .iter()
                .filter(|task| texts.contains_key(&task.id))
                .cloned()
                .collect();
            if tasks.is_empty() {
                continue;
            }
            self.suite(Criticised {
                name: &format!("gate/{kind}"),
                policy: "a fixed critique",
                critic: Answers::Tokens(Arc::new(ScriptedPolicy::by_task(chat.clone(), texts))),
                sampling: self.recipe.scripted(),
                reviser: reviser.clone(),
                tasks: &tasks,
                samples: 1,
                seed: frame.seed,
            })?;
        }
        Ok(())
    }
}
