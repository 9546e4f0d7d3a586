//! Keeping and taking back (spec of the repair study, sections 2.5 and 3.6).

use code::graph::{Commit, MemoryFault, MemoryIntent, MemoryReport, MemoryTarget, Selector};
use serde_json::{Value, json};

use super::{
    PlannerEnv,
    state::{Done, listed},
};
use crate::action::{MemoryAction, Selection};

impl PlannerEnv<'_> {
    pub(super) fn change_memory(&mut self, action: &MemoryAction) -> Done {
        let mut done = Done::new("memory");
        let target = json!(action.target);
        done.tell("target", target);
        done.tell("intent", json!(action.intent));
        done.tell("scope", "session");
        if let Some(refused) = self.refused_ids(action) {
            let (code, detail) = refused;
            return done.with_error(code, detail);
        }
        let changed = match (action.intent, action.target) {
            (MemoryIntent::Commit, MemoryTarget::Explore) => self.commit(&action.selection),
            (MemoryIntent::Commit, MemoryTarget::Observation) => {
                self.commit_note(action.selection.note.as_deref(), &action.selection)
            }
            (MemoryIntent::Delete, target) => self.delete(target, &action.selection),
        };
        match changed {
            Ok(report) => {
                let applied = report.applied;
                done.tell(
                    "summary",
                    format!(
                        "{} nodes, {} edges, {} notes",
                        applied.graph_nodes, applied.graph_edges, applied.text_chunks
                    ),
                );
                if let Ok(Value::Object(told)) = serde_json::to_value(&report) {
                    done.info.extend(told);
                }
                done
            }
            Err(fault) => {
                let mut done = done.with_error(fault.code(), &fault.to_string());
                done.tell("ok", false);
                done.tell("rejected", true);
                if let MemoryFault::OverBudget(over) = &fault
                    && let Ok(Value::Object(told)) = serde_json::to_value(over)
                {
                    done.info.extend(told);
                }
                done
            }
        }
    }

    /// Ids that must not be kept.
    fn refused_ids(&self, action: &MemoryAction) -> Option<(&'static str, &'static str)> {
        if action.intent == MemoryIntent::Delete {
            return None;
        }
        let ids = &action.selection.select_ids;
        let graph = self.sources.graph();
        if ids.iter().any(|id| self.sources.is_guarded(id)) {
            return Some(("guarded-test", "the tests that decide cannot be kept"));
        }
        let is_read = |id: &String| {
            let canonical = graph.find(id).map(|node| graph.node(node).id);
            self.state.read.contains(canonical.as_ref().unwrap_or(id))
        };
        let must_be_read = self.config.guards.commit_needs_read;
        (must_be_read && !ids.iter().all(is_read))
            .then_some(("unread-node", "read a node before you keep it"))
    }

    fn commit(&mut self, selection: &Selection) -> Result<MemoryReport, MemoryFault> {
        let commit = Commit {
            select_ids: selection.select_ids.clone(),
            keep_ids: selection.keep_ids.clone(),
            note: selection.note.clone(),
            tag: selection.tag.clone(),
            top: selection.top_k.map(|top| top as usize),
        };
        let step = u64::from(self.state.steps);
        self.state
            .memory
            .commit(self.sources.graph(), &commit, step, &*self.count)
    }

    fn commit_note(
        &mut self,
        note: Option<&str>,
        selection: &Selection,
    ) -> Result<MemoryReport, MemoryFault> {
        let step = u64::from(self.state.steps);
        let tag = selection.tag.as_deref();
        self.state.memory.commit_note(note, tag, step, &*self.count)
    }

    /// What is named; else the commit of the tag; else the latest: of observations, the last note. A note
    /// that comes with it says why, and is kept.
    fn delete(
        &mut self,
        target: MemoryTarget,
        selection: &Selection,
    ) -> Result<MemoryReport, MemoryFault> {
        let last_note = self.state.memory.notes().last().map(|note| note.id.clone());
        let selector = match (&selection.select_ids, &selection.tag, target) {
            (ids, _, _) if !ids.is_empty() => Selector::Ids(self.canonical(ids)),
            (_, Some(tag), _) => Selector::Tag(tag.clone()),
            (_, None, MemoryTarget::Explore) => Selector::Latest,
            (_, None, MemoryTarget::Observation) => {
                Selector::Ids(vec![last_note.ok_or(MemoryFault::NothingToDelete)?])
            }
        };
        let report = self.state.memory.delete(&selector, &*self.count)?;
        if let Some(note) = &selection.note {
            self.commit_note(Some(note), &Selection::default())?;
        }
        Ok(report)
    }

    /// Ids as the graph writes them.
    fn canonical(&self, ids: &[String]) -> Vec<String> {
        let graph = self.sources.graph();
        let id = |id: &String| {
            graph
                .find(id)
                .map_or(id.clone(), |node| graph.node(node).id)
        };
        ids.iter().map(id).collect()
    }

    /// What memory holds, for logs.
    pub fn memory_listing(&self) -> Value {
        let memory = &self.state.memory;
        json!({
            "nodes": listed(memory.memory().nodes().map(|node| &node.id)),
            "notes": memory.notes(),
        })
    }
}
