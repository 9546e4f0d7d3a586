//! What a patch model is told in words: the graph as text, the plan, the source, and what failed before.
//!
//! Spec of the repair study, sections 3.7, 4.4 and 10.5.

use code::graph::{CountTokens, described, within_budget};
use record::Message;

use super::PatchRequest;
use crate::markdown;

/// Nodes of the graph that are told.
const NODES: usize = 32;
/// Attempts before this one that are told, the newest.
const FEEDBACK: usize = 3;

/// The conversation that asks for a patch, within `budget` tokens as `count` counts them: source and graph
/// are cut first.
pub(super) fn messages(request: &PatchRequest, budget: usize, count: &CountTokens) -> Vec<Message> {
    let system = system(request);
    let head = head(request);
    let tail = tail(request);
    let fixed = count(&system) + count(&head) + count(&tail);
    let left = budget.saturating_sub(fixed);
    let snippets: Vec<String> = request
        .snippets
        .iter()
        .map(|chunk| chunk.numbered() + "\n")
        .collect();
    let snippets = within_budget(snippets.iter().map(String::as_str), left, count);
    let nodes = described(request.graph.nodes.values(), NODES);
    let nodes: Vec<String> = nodes.into_iter().map(|node| node + "\n").collect();
    let left = left.saturating_sub(snippets.tokens);
    let graph = within_budget(nodes.iter().map(String::as_str), left, count);
    let mut user = head;
    if !graph.text.is_empty() {
        user += &format!("# Subgraph\n{}\n", graph.text);
    }
    if !snippets.text.is_empty() {
        user += "# Source\nEach line begins with its number, which is not part of the file.\n";
        user += &snippets.text;
        user.push('\n');
    }
    user += &tail;
    vec![Message::system(system), Message::user(user)]
}

fn system(request: &PatchRequest) -> String {
    let constraints = request.constraints;
    let files = match constraints.one_file_per_patch {
        true => "All edits are in one file.",
        false => "Edits may be in several files.",
    };
    format!(
        "You repair Python code. Answer with one JSON object and nothing else:\n\
         {{\"patch\": {{\"edits\": [{{\"path\": \"package/file.py\", \"start\": 10, \"end\": 12, \
         \"new_text\": \"...\\n\"}}], \"summary\": \"what was wrong\"}}, \"confidence\": 0.8}}\n\
         Each edit replaces the lines from `start` to `end`, counted from 1 and both included, by `new_text`. \
         To insert before a line, give it as `start` and one less as `end`. To remove lines, give an empty \
         `new_text`. Numbers are those of the file as it is shown, whatever other edits do. Write whole lines \
         with their indentation, and end them with a newline. {files} At most {} edits, each of at most {} \
         lines that it replaces, and only lines that the plan names. Tests may not be changed. A unified diff \
         in the place of the object is read too.",
        constraints.max_edits, constraints.max_lines_per_edit
    )
}

fn head(request: &PatchRequest) -> String {
    let issue = &request.issue;
    let body = markdown::normal(&issue.body);
    let mut text = format!("# Issue\n{}\n{}\n", issue.title, body.trim_end());
    let facts = [
        ("Error", &issue.error_kind),
        ("Assertion", &issue.top_assert),
        ("Where it fails", &issue.failure_frame),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            text += &format!("{name}: {fact}\n");
        }
    }
    text += "\n# Plan\n";
    for step in &request.plan {
        text += &format!("- {step}\n");
    }
    text += "\nLines to repair:\n";
    for target in &request.targets {
        text += &format!("- {}:{}-{}", target.path, target.start, target.end);
        if !target.why.is_empty() {
            text += &format!(" ({})", target.why);
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

fn tail(request: &PatchRequest) -> String {
    let skipped = request.feedback.len().saturating_sub(FEEDBACK);
    let mut text = String::new();
    for told in &request.feedback[skipped..] {
        text += &format!("# An attempt before that failed: {}\n", told.outcome);
        for part in [&told.patch, &told.detail] {
            if !part.is_empty() {
                text += part;
                text.push('\n');
            }
        }
        text.push('\n');
    }
    if !text.is_empty() {
        text += "Propose another patch.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use code::graph::Chunk;

    use super::*;
    use crate::{
        Issue,
        patch_model::{Constraints, Feedback, PlanTarget},
    };

    #[test]
    fn all_that_is_known_is_told_and_source_is_cut_first() {
        let text: String = (1..=200)
            .map(|line| format!("x{line} = {line}\n"))
            .collect();
        let request = PatchRequest {
            issue: Issue {
                title: "It breaks".to_owned(),
                top_assert: Some("assert 1 == 2".to_owned()),
                ..Issue::default()
            },
            plan: vec!["look at x7".to_owned()],
            targets: vec![PlanTarget {
                path: "m.py".to_owned(),
                start: 7,
                end: 8,
                ..PlanTarget::default()
            }],
            graph: Default::default(),
            snippets: vec![Chunk {
                path: "m.py".to_owned(),
                start: 1,
                end: 200,
                text,
            }],
            feedback: vec![Feedback {
                patch: "-x7 = 7\n".to_owned(),
                outcome: "build-failed".to_owned(),
                detail: "0 of 1 pass".to_owned(),
            }],
            constraints: Constraints::default(),
            of_tests: std::sync::Arc::default(),
            observed: None,
            searched: None,
        };
        let count = |text: &str| text.len();
        let all = messages(&request, 1 << 20, &count);
        let user = &all[1].content;
        for part in [
            "It breaks",
            "assert 1 == 2",
            "- look at x7",
            "m.py:7-8",
            "0200: x200 = 200",
            "build-failed",
            "-x7 = 7",
            "0 of 1 pass",
        ] {
            assert!(user.contains(part), "{part}: {user}");
        }
        let cut = messages(&request, 2_800, &count);
        let size: usize = cut.iter().map(|message| message.content.len()).sum();
        assert!(size < 3_000, "{size}");
        assert!(cut[1].content.contains("0001: x1") && !cut[1].content.contains("0200"));
        assert!(cut[1].content.contains("0 of 1 pass"));
    }
}
