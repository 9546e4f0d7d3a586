//! From actions to named values: what both wire formats write.

use code::graph::{MemoryIntent, MemoryTarget};
use serde_json::{Value, json};

use super::{
    Action, ActionKind, ExpandMode, Explore, FindType, MemoryAction, Named, Operation,
    ProposalAction, RepairAction, Selection, View,
};

/// The fields of the text protocol that are not at their defaults, those first that say most.
pub(crate) fn as_fields(action: &Action) -> Named {
    let mut fields = Fields::default();
    fields.text("thought", &action.thought);
    match &action.kind {
        ActionKind::Explore(explore) => fields.explore(explore),
        ActionKind::Memory(memory) => fields.memory(memory),
        ActionKind::Repair(repair) => {
            fields.text("subplan", &repair.plan.join("\n"));
            fields.ids("focus_ids", &repair.focus_ids);
            fields.repair(repair);
        }
        ActionKind::Proposal(proposal) => fields.proposal(proposal),
        ActionKind::RunFailedTest | ActionKind::Submit | ActionKind::Noop => {}
    }
    fields.0
}

/// A tool that says all of the action, and its arguments. Where the tools have no words for it, the
/// action of the text protocol is the tool.
pub(crate) fn as_tool(action: &Action) -> (&'static str, Named) {
    let mut fields = Fields::default();
    fields.text("thought", &action.thought);
    let name = match &action.kind {
        ActionKind::Explore(explore) => fields.explore_tool(explore),
        ActionKind::Memory(memory) => fields.memory_tool(memory),
        ActionKind::Repair(repair) => fields.repair_tool(repair),
        ActionKind::Proposal(proposal) => {
            fields.proposal(proposal);
            Some(action.name())
        }
        ActionKind::RunFailedTest => Some("run_failed_test"),
        ActionKind::Submit => Some("submit"),
        ActionKind::Noop => Some("noop"),
    };
    match name {
        Some(name) => (name, fields.0),
        None => (action.name(), as_fields(action)),
    }
}

#[derive(Default)]
struct Fields(Named);

impl Fields {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.put(name, text);
        }
    }

    fn ids(&mut self, name: &str, ids: &[String]) {
        if !ids.is_empty() {
            self.put(name, ids);
        }
    }

    fn number(&mut self, name: &str, number: u32, default: u32) {
        if number != default {
            self.put(name, number);
        }
    }

    fn explore(&mut self, explore: &Explore) {
        let default = Explore::default();
        self.put("op", explore.op.word());
        self.text("query", &explore.query);
        if !explore.anchors.is_empty() {
            self.put("anchors", json!(explore.anchors));
        }
        self.ids("nodes", &explore.nodes);
        self.number("hop", explore.hop, default.hop);
        self.number("limit", explore.limit, default.limit);
        for (name, number) in [
            ("max_per_anchor", explore.max_per_anchor),
            ("total_limit", explore.total_limit),
            ("dir_diversity_k", explore.dir_diversity_k),
        ] {
            if let Some(number) = number {
                self.put(name, number);
            }
        }
        if explore.find_type != FindType::Any {
            self.put("find_type", explore.find_type.word());
        }
        self.text("class_name", &explore.class_name);
        self.text("path_glob", &explore.path_glob);
        if explore.expand_mode != ExpandMode::Related {
            self.put("expand_mode", explore.expand_mode.word());
        }
        self.text("symbol", &explore.symbol);
        if explore.view != View::Body {
            self.put("view", explore.view.text());
        }
        self.text("pattern", &explore.pattern);
        if explore.regex {
            self.put("regex", true);
        }
        self.number(
            "context_lines",
            explore.context_lines,
            default.context_lines,
        );
    }

    fn explore_tool(&mut self, explore: &Explore) -> Option<&'static str> {
        let default = Explore::default();
        let mut left = explore.clone();
        let name = match explore.op {
            Operation::Find if !explore.query.is_empty() => {
                left.query.clear();
                left.find_type = default.find_type;
                left.class_name.clear();
                left.path_glob.clear();
                left.limit = default.limit;
                self.text("query", &explore.query);
                "explore_find"
            }
            Operation::Grep if explore.limit <= 50 && !explore.path_glob.is_empty() => {
                left.pattern.clear();
                left.path_glob.clear();
                left.context_lines = default.context_lines;
                left.limit = default.limit;
                left.regex = false;
                "grep_code"
            }
            Operation::Expand => {
                let [anchor] = explore.anchors.as_slice() else {
                    return None;
                };
                let id = anchor.id.as_ref().filter(|id| !id.trim().is_empty())?;
                if anchor.kind.is_some() || anchor.text.is_some() {
                    return None;
                }
                left.anchors.clear();
                left.expand_mode = default.expand_mode;
                left.symbol.clear();
                left.hop = default.hop;
                left.limit = default.limit;
                self.put("anchor", id.as_str());
                "explore_expand"
            }
            Operation::Read if !explore.nodes.is_empty() => {
                left.nodes.clear();
                left.view = default.view;
                match explore.nodes.as_slice() {
                    [one] => self.put("node_id", one.as_str()),
                    nodes => self.ids("node_id", nodes),
                }
                "read"
            }
            _ => return None,
        };
        left.op = default.op;
        if left != default {
            return None;
        }
        let mut all = Self::default();
        all.explore(explore);
        let told = ["op", "query", "anchors", "nodes"];
        let rest = all.0.into_iter();
        self.0
            .extend(rest.filter(|(name, _)| !told.contains(&name.as_str())));
        Some(name)
    }

    fn memory(&mut self, memory: &MemoryAction) {
        if memory.target == MemoryTarget::Observation {
            self.put("target", "observation");
        }
        let intent = match memory.intent {
            MemoryIntent::Commit => "commit",
            MemoryIntent::Delete => "delete",
        };
        self.put("intent", intent);
        let selection = &memory.selection;
        let tag_alone = Selection {
            tag: selection.tag.clone(),
            ..Selection::default()
        };
        match &selection.tag {
            _ if *selection == Selection::default() => {}
            // What begins like JSON would be read as such.
            Some(tag) if *selection == tag_alone && !tag.starts_with(['[', '{']) => {
                self.put("selector", tag.as_str());
            }
            _ => self.put("selector", json!(selection)),
        }
    }

    fn memory_tool(&mut self, memory: &MemoryAction) -> Option<&'static str> {
        let selection = &memory.selection;
        let is_note_alone = selection.select_ids.is_empty()
            && selection.keep_ids.is_empty()
            && selection.top_k.is_none();
        let name = match (memory.intent, memory.target) {
            (MemoryIntent::Commit, MemoryTarget::Explore) => {
                self.ids("select_ids", &selection.select_ids);
                self.ids("keep_ids", &selection.keep_ids);
                if let Some(top) = selection.top_k {
                    self.put("top_k", top);
                }
                "memory_commit"
            }
            (MemoryIntent::Commit, MemoryTarget::Observation)
                if is_note_alone && selection.note.is_some() =>
            {
                "memory_commit_note"
            }
            (MemoryIntent::Delete, MemoryTarget::Explore)
                if selection.keep_ids.is_empty() && selection.top_k.is_none() =>
            {
                self.ids("delete_ids", &selection.select_ids);
                "memory_delete"
            }
            _ => return None,
        };
        self.text("note", selection.note.as_deref().unwrap_or_default());
        self.text("tag", selection.tag.as_deref().unwrap_or_default());
        Some(name)
    }

    fn repair(&mut self, repair: &RepairAction) {
        if !repair.apply {
            self.put("apply", false);
        }
        self.why(repair);
    }

    fn why(&mut self, repair: &RepairAction) {
        self.text("failure_seen", &repair.failure_seen);
        if !repair.evidence.is_empty() {
            self.put("evidence_chain", json!(repair.evidence));
        }
        if let Some(confidence) = repair.confidence {
            self.put("confidence", confidence);
        }
    }

    fn proposal(&mut self, proposal: &ProposalAction) {
        match proposal {
            ProposalAction::Propose(repair) => {
                self.text("intent_analysis", &repair.plan.join("\n"));
                self.ids("target_nodes", &repair.focus_ids);
                self.why(repair);
            }
            ProposalAction::Revise(feedback) => self.text("feedback", feedback),
            ProposalAction::Submit | ProposalAction::Discard => {}
        }
    }

    fn repair_tool(&mut self, repair: &RepairAction) -> Option<&'static str> {
        self.repair(repair);
        let (plan, focus) = (&repair.plan, &repair.focus_ids);
        let is_bare = repair.evidence.is_empty()
            && repair.failure_seen.is_empty()
            && repair.confidence.is_none();
        if is_bare {
            self.ids("plan", plan);
            self.ids("focus_ids", focus);
            return Some("repair");
        }
        let is_whole = !repair.evidence.is_empty()
            && !repair.failure_seen.trim().is_empty()
            && !plan.is_empty()
            && !focus.is_empty();
        self.ids("intent_analysis", plan);
        self.ids("target_nodes", focus);
        is_whole.then_some("repair_review")
    }
}
