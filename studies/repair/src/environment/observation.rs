//! What a planner sees after each step, within a budget of its own tokens.
//!
//! Spec of the repair study, section 1.8. The sections stand in the order of the spec; what does not fit is
//! cut after a line, the last sections first.

use std::collections::BTreeSet;

use code::graph::{Budgeted, ListedNode, index_line, within_budget};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CountTokens, PlannerEnv, Suspect, issue, suspect_lines};
use crate::{Issue, markdown};

/// Budgets of observations. Tokens are those of the planner's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObservationConfig {
    pub form: ObservationForm,
    /// Tokens of a whole observation.
    pub tokens: usize,
    /// Tokens of the issue.
    pub issue_tokens: usize,
    /// Tokens of any other section.
    pub section_tokens: usize,
    /// Show the issue in every observation: a planner sees the last one alone. Otherwise in the first.
    pub always_issue: bool,
    pub recent_steps: usize,
    pub notes: usize,
    pub candidates: usize,
    /// Nodes of the working graph that are listed.
    pub working: usize,
    /// Nodes of the working graph of which some lines are shown, and how many lines.
    pub snippets: usize,
    pub snippet_lines: usize,
    /// Functions that failing tests run, of which it is told what tests and failures say of them. With any, the
    /// tests are run and traced before the first step.
    #[serde(skip_serializing_if = "is_zero")]
    pub suspects: usize,
}

/// Left out of resolved recipes, so that those without it keep their hash.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Default for ObservationConfig {
    fn default() -> Self {
        Self {
            form: ObservationForm::Prose,
            tokens: 4096,
            issue_tokens: 320,
            section_tokens: 1200,
            always_issue: true,
            recent_steps: 6,
            notes: 8,
            candidates: 8,
            working: 80,
            snippets: 8,
            snippet_lines: 12,
            suspects: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationForm {
    /// Sections with headings.
    #[default]
    Prose,
    /// `<observation for="ACTION">{compact JSON}</observation>`.
    Json,
}

/// A text for the planner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    pub text: String,
    /// Never more than the budget.
    pub tokens: usize,
}

/// Fields of an info that say how the last action went; lists of nodes have sections of their own.
const TOLD: [&str; 29] = [
    "kind",
    "op",
    "error",
    "detail",
    "warnings",
    "capped_fields",
    "trimmed",
    "replaced",
    "summary",
    "query_relaxed",
    "recalled",
    "unknown_ids",
    "left_out",
    "frontier_anchor_id",
    "selected_for_memory",
    "auto_selected",
    "exceeded",
    "apply",
    "applied",
    "success",
    "message",
    "proposal",
    "changed_files",
    "tests",
    "fallback_reason",
    "delta_working_nodes",
    "delta_memory_nodes",
    "stop_reason",
    "n_matches",
];

/// What a planner sees at a reset, in an environment that has no more to say than the issue and whom the tests
/// suspect: no working graph is loaded, and a repair needs nothing in memory.
pub fn first_observation(
    config: &ObservationConfig,
    issue: &Issue,
    suspects: &[Suspect],
    count: &CountTokens,
) -> Observation {
    let mut sections = vec![Section {
        name: "Issue",
        parts: issue::parts(issue, config.issue_tokens, &**count),
        budget: config.issue_tokens,
    }];
    sections.push(suspected(config, suspects));
    sections.retain(|section| !section.parts.is_empty());
    written(config, "reset", 0, sections, count)
}

fn suspected(config: &ObservationConfig, suspects: &[Suspect]) -> Section {
    Section {
        name: "Suspects",
        parts: suspect_lines(suspects),
        budget: config.section_tokens,
    }
}

fn written(
    config: &ObservationConfig,
    action: &str,
    step: u32,
    sections: Vec<Section>,
    count: &CountTokens,
) -> Observation {
    match config.form {
        ObservationForm::Prose => prose(config, &sections, count),
        ObservationForm::Json => json(config, action, step, sections, count),
    }
}

impl PlannerEnv<'_> {
    pub(super) fn observe(&self, action: &str) -> Observation {
        let config = &self.config.observation;
        written(
            config,
            action,
            self.state.steps,
            self.sections(),
            &self.count,
        )
    }

    /// Headings and parts, in the order of the spec; those without anything are left out.
    fn sections(&self) -> Vec<Section> {
        let config = &self.config.observation;
        let mut sections = Vec::new();
        if config.always_issue || self.state.steps == 0 {
            sections.push(Section {
                name: "Issue",
                parts: issue::parts(&self.task.public.issue, config.issue_tokens, &*self.count),
                budget: config.issue_tokens,
            });
        }
        let mut add = |name, parts| {
            sections.push(Section {
                name,
                parts,
                budget: config.section_tokens,
            });
        };
        let recent = &self.state.recent;
        let recent = recent[recent.len().saturating_sub(config.recent_steps)..].iter();
        add(
            "Recent steps",
            recent.map(|line| format!("{line}\n")).collect(),
        );
        let notes = self.state.memory.notes();
        let notes = notes[notes.len().saturating_sub(config.notes)..].iter();
        let notes = notes.map(|note| format!("{} [{}]: {}\n", note.id, note.tag, note.text));
        add("Notes", notes.collect());
        add("Last result", self.last_result());
        if self.memory().is_empty() && self.config.guards.repair_needs_memory {
            add("Guidance", vec![self.guidance()]);
        }
        let suspected = suspected(config, self.sources.suspects());
        add(suspected.name, suspected.parts);
        let candidates = self.state.candidates.iter().take(config.candidates);
        let candidates = candidates.map(|it| {
            let lines = it.span.map(|span| format!(":{}-{}", span.start, span.end));
            let lines = lines.unwrap_or_default();
            let (id, kind, path) = (&it.id, it.kind.name(), &it.path);
            format!("{id} {kind} {path}{lines} score={:.2}\n", it.score)
        });
        add("Candidates", candidates.collect());
        let ranked = self.ranked();
        let index = ranked.iter().take(config.working).map(|node| {
            let mark = if node.memorized { "M " } else { "" };
            format!("{mark}{}", index_line(node))
        });
        add("Working graph", index.collect());
        let shown = self.state.snippets.iter();
        let mut snippets: Vec<String> = shown.map(|chunk| chunk.numbered()).collect();
        snippets.extend(self.kept_snippets(&ranked));
        add("Snippets", snippets);
        sections.retain(|section| !section.parts.is_empty());
        sections
    }

    fn last_result(&self) -> Vec<String> {
        let last = &self.state.last;
        let told = TOLD.iter().filter_map(|name| {
            let value = last.get(*name)?;
            let is_nothing = match value {
                Value::Null | Value::Bool(false) => !matches!(*name, "applied" | "success"),
                Value::Array(list) => list.is_empty(),
                Value::Number(number) => number.as_i64() == Some(0),
                _ => false,
            };
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (!is_nothing).then(|| format!("{name}: {text}\n"))
        });
        let mut parts: Vec<String> = told.collect();
        if let Some(Value::Array(notes)) = last.get("recalled_notes") {
            let texts = notes.iter().filter_map(|note| note["text"].as_str());
            parts.extend(texts.map(|text| format!("recalled: {text}\n")));
        }
        if !last.is_empty() {
            let [working, _, memory, _] = self.state.sizes();
            parts.push(format!("W has {working} nodes, M has {memory}\n"));
        }
        parts
    }

    fn guidance(&self) -> String {
        let text = match (self.state.candidates.is_empty(), self.working().is_empty()) {
            (true, true) => "M is empty. Find what the issue speaks of.",
            (false, true) => "M is empty. Expand or read a candidate.",
            (_, false) => "M is empty. Commit the nodes that are to be changed; then repair.",
        };
        format!("{text}\n")
    }

    /// Of the working graph: memorised nodes first, then the last candidates, then by score and id.
    fn ranked(&self) -> Vec<&ListedNode> {
        let last: BTreeSet<&str> = self.candidates().collect();
        let mut nodes: Vec<&ListedNode> = self.working().nodes().collect();
        let score = |node: &ListedNode| node.score.unwrap_or(0.0);
        nodes.sort_by(|one, two| {
            let by_memory = two.memorized.cmp(&one.memorized);
            let seen = |node: &ListedNode| last.contains(node.id.as_str());
            by_memory
                .then_with(|| seen(two).cmp(&seen(one)))
                .then_with(|| score(two).total_cmp(&score(one)))
                .then_with(|| one.id.cmp(&two.id))
        });
        nodes
    }

    /// The first lines of the best nodes that the last action did not show.
    fn kept_snippets(&self, ranked: &[&ListedNode]) -> Vec<String> {
        let config = &self.config.observation;
        let shown = |node: &ListedNode| {
            self.state.snippets.iter().any(|chunk| {
                let span = node.span.map_or((1, 1), |span| (span.start, span.end));
                chunk.path == node.path && chunk.start <= span.0 && span.0 <= chunk.end
            })
        };
        let nodes = ranked
            .iter()
            .filter(|node| !node.snippet_lines.is_empty() && !shown(node));
        let text = |node: &&ListedNode| {
            let start = node.span.map_or(1, |span| span.start);
            let lines = (start..).zip(node.snippet_lines.iter().take(config.snippet_lines));
            let lines: String = lines
                .map(|(number, line)| format!("{number:04}: {line}\n"))
                .collect();
            format!("{}\n{lines}", node.id)
        };
        nodes.take(config.snippets).map(text).collect()
    }
}

fn prose(config: &ObservationConfig, sections: &[Section], count: &CountTokens) -> Observation {
    let count = &**count;
    let texts: Vec<String> = sections
        .iter()
        .map(|section| {
            let parts = section.parts.iter().map(String::as_str);
            let body = cut(parts, section.budget, count);
            format!("# {}\n{}", section.name, ended(&body.text))
        })
        .collect();
    let texts = texts.iter().map(String::as_str);
    let whole = cut(texts, config.tokens, count);
    Observation {
        text: whole.text,
        tokens: whole.tokens,
    }
}

/// What fits, with an end to the block that is cut: what follows is no part of it.
fn cut<'a>(
    parts: impl IntoIterator<Item = &'a str>,
    budget: usize,
    count: &dyn Fn(&str) -> usize,
) -> Budgeted {
    let parts: Vec<&str> = parts.into_iter().collect();
    let mut kept = within_budget(parts.iter().copied(), budget, count);
    let Some((_, end)) = markdown::left_open(&kept.text) else {
        return kept;
    };
    // Room for the end, and for what a tokenizer may make of the line before it.
    kept = within_budget(parts, budget.saturating_sub(count(&end) + 1), count);
    if let Some((start, end)) = markdown::left_open(&kept.text) {
        let mut text = ended(&kept.text);
        let has_lines = text[start..].lines().count() > 1;
        text += &end;
        if !has_lines || count(&text) > budget {
            text.truncate(start);
        }
        kept.tokens = count(&text);
        kept.text = text;
    }
    kept
}

/// As the text protocol has it. What does not fit goes part by part, the last sections' last parts first.
fn json(
    config: &ObservationConfig,
    action: &str,
    step: u32,
    sections: Vec<Section>,
    count: &CountTokens,
) -> Observation {
    let mut sections = sections;
    for section in &mut sections {
        let parts = section.parts.iter().map(String::as_str);
        let kept = within_budget(parts, section.budget, &**count);
        section.parts.truncate(kept.whole.max(1));
    }
    loop {
        let mut object = Map::new();
        object.insert("step".to_owned(), step.into());
        for section in &sections {
            let key = section.name.to_lowercase().replace(' ', "_");
            let parts = section.parts.iter().map(|part| part.trim_end());
            object.insert(key, json!(parts.collect::<Vec<_>>()));
        }
        // A text in it could hold the tag that ends it.
        let object = Value::Object(object).to_string().replace('<', "\\u003c");
        let text = format!("<observation for=\"{action}\">{object}</observation>");
        let tokens = count(&text);
        let fullest = sections.iter_mut().rev().find(|it| !it.parts.is_empty());
        match fullest {
            Some(section) if tokens > config.tokens => {
                section.parts.pop();
            }
            _ => return Observation { text, tokens },
        }
    }
}

struct Section {
    name: &'static str,
    parts: Vec<String>,
    budget: usize,
}

fn ended(text: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands behind a block that is cut is no part of it, at any budget.
    #[test]
    fn no_block_of_an_issue_runs_into_what_stands_behind_it() {
        let issue = Issue {
            title: "It fails".to_owned(),
            body: "Run this:\n\n````md\n```\na\n```\nand b\n````\n\n1. See\n\n   ~~~\n   ValueError: no\n   ~~~\n"
                .to_owned(),
            ..Issue::default()
        };
        for budget in 0..160 {
            for tokens in [budget, 1000] {
                let config = ObservationConfig {
                    issue_tokens: budget,
                    tokens,
                    ..ObservationConfig::default()
                };
                // Bytes, and words with their ends of lines, are the tokens.
                let counts: [&CountTokens; 2] = [
                    &(std::sync::Arc::new(|text: &str| text.len()) as CountTokens),
                    &(std::sync::Arc::new(|text: &str| {
                        text.split_inclusive(char::is_whitespace).count()
                    }) as CountTokens),
                ];
                for count in counts {
                    let shown = first_observation(&config, &issue, &[], count);
                    assert_eq!(markdown::left_open(&shown.text), None, "{}", shown.text);
                    assert!(shown.tokens <= tokens);
                    assert_eq!(shown.tokens, count(&shown.text));
                }
            }
        }
        let config = ObservationConfig {
            issue_tokens: 79,
            ..ObservationConfig::default()
        };
        let count: CountTokens = std::sync::Arc::new(|text: &str| text.len());
        let shown = first_observation(&config, &issue, &[], &count);
        assert_eq!(
            shown.text,
            "# Issue\nIt fails\nRun this:\n\n\n1. See\nValueError: no\nRun this:\n````md\n```\na\n```\n````\n"
        );
    }
}
