//! Against planners that turn in circles (spec of the repair study, sections 1.4, 1.8 and 2.6).

use code::graph::{Anchor, MemoryIntent, MemoryTarget};
use serde_json::{Value, json};

use super::{
    PlannerEnv,
    state::{Done, in_a_line},
};
use crate::{
    action::{Action, ActionKind, Explore, MemoryAction, Operation, ProposalAction, Selection},
    wire::Reply,
};

impl PlannerEnv<'_> {
    /// The action that is done in place of one that leads nowhere, and a word on that.
    pub(super) fn guarded(&self, action: &Action) -> (Action, Option<Value>) {
        let Some((kind, reason)) = self.replacement(action) else {
            return (action.clone(), None);
        };
        let instead = Action::new(kind).thinking(action.thought.clone());
        let told = json!({
            "from": in_a_line(action), "to": in_a_line(&instead), "skipped_reason": reason,
        });
        (instead, Some(told))
    }

    /// What must not be done once more.
    pub(super) fn refused(&self, action: &Action, reply: &Reply) -> Option<Done> {
        let asks = matches!(
            action.kind,
            ActionKind::Repair(_) | ActionKind::Proposal(ProposalAction::Propose(_))
        );
        if asks && self.config.guards.repair_needs_failure && !self.state.failure_seen {
            let detail = "see the tests fail first: call run_failed_test";
            return Some(Done::error("repair", "unseen-failure", detail));
        }
        let repeats = self.config.guards.repeats as usize;
        let written = reply.action.as_ref().ok().map(|action| &action.kind);
        let before = self.state.past.iter().rev();
        let same = before.take_while(|past| past.action.as_ref() == written);
        if repeats < 2 || same.count() + 1 < repeats {
            return None;
        }
        let detail = format!(
            "this was done {} times in a row; do something else",
            repeats - 1
        );
        Some(Done::error(action.name(), "repeated-action", &detail))
    }

    fn replacement(&self, action: &Action) -> Option<(ActionKind, &'static str)> {
        let guards = &self.config.guards;
        match &action.kind {
            ActionKind::Repair(_) | ActionKind::Proposal(ProposalAction::Propose(_))
                if guards.repair_needs_memory && self.memory().is_empty() =>
            {
                let title = self.task.public.issue.title.trim();
                let query = match title {
                    "" => self
                        .task
                        .public
                        .issue
                        .body
                        .lines()
                        .next()
                        .unwrap_or_default(),
                    title => title,
                };
                let find = Explore {
                    query: query.to_owned(),
                    ..Explore::default()
                };
                Some((ActionKind::Explore(find), "empty_memory_subgraph"))
            }
            ActionKind::Explore(find)
                if guards.avoid_repeated_find && find.op == Operation::Find =>
            {
                self.instead_of_find(action, find)
            }
            _ => None,
        }
    }

    fn instead_of_find(
        &self,
        action: &Action,
        find: &Explore,
    ) -> Option<(ActionKind, &'static str)> {
        let past = &self.state.past;
        let op = |past: &super::state::Past| match &past.action {
            Some(ActionKind::Explore(explore)) => Some(explore.op),
            _ => None,
        };
        if let [.., last] = past.as_slice()
            && last.action.as_ref() == Some(&action.kind)
        {
            if last.found > 0 {
                return self.expanded(0).map(|kind| (kind, "repeated_find"));
            }
            let query = broadened(&find.query);
            let broader = Explore {
                query: query.clone(),
                ..Explore::default()
            };
            let is_other = !query.is_empty() && query != find.query;
            return is_other.then_some((ActionKind::Explore(broader), "repeated_empty_find"));
        }
        let [.., first, second] = past.as_slice() else {
            return None;
        };
        let circles = op(first) == Some(Operation::Find)
            && op(second) == Some(Operation::Expand)
            && first.gained == 0
            && second.gained == 0;
        if !circles {
            return None;
        }
        match self.memory().is_empty() {
            true => {
                let commit = MemoryAction {
                    target: MemoryTarget::Explore,
                    intent: MemoryIntent::Commit,
                    selection: Selection {
                        select_ids: self.candidates().take(1).map(str::to_owned).collect(),
                        ..Selection::default()
                    },
                };
                let has_some = !commit.selection.select_ids.is_empty();
                has_some.then_some((ActionKind::Memory(commit), "nothing_new"))
            }
            false => self.expanded(1).map(|kind| (kind, "nothing_new")),
        }
    }

    /// An expansion around one of the last candidates.
    fn expanded(&self, place: usize) -> Option<ActionKind> {
        let candidate = self.state.candidates.get(place)?;
        Some(ActionKind::Explore(Explore {
            op: Operation::Expand,
            anchors: vec![Anchor::id(&candidate.id)],
            limit: 20,
            ..Explore::default()
        }))
    }
}

/// A query's words without what narrows them.
fn broadened(query: &str) -> String {
    let words = query
        .split_whitespace()
        .filter(|word| !word.starts_with('-'));
    let words = words.map(|word| {
        let word = word.trim_start_matches('+');
        let bare = word.strip_prefix("symbol:").or(word.strip_prefix("path:"));
        bare.unwrap_or(word).replace(['"', '.', '/', ':'], " ")
    });
    let words: Vec<String> = words.collect();
    words
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::broadened;

    #[test]
    fn broad_queries_have_no_fields() {
        let query = "symbol:Parser.read +must -not path:a/b.py \"a phrase\" word";
        assert_eq!(broadened(query), "Parser read must a b py a phrase word");
        assert_eq!(broadened("plain words"), "plain words");
    }
}
