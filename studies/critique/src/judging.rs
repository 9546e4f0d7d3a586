//! Pairs of answers, one right and one wrong, each judged on its own several times (JudgeBench's way, spec of the
//! critique study, section 6.3): the critic alone is asked, nothing is revised and nothing run.

use std::{collections::BTreeMap, sync::Arc};

use judge::Tests;
use record::{Episode, Estimate, Fault, Group, Reward, TaskId};
use rollout::{Cx, Played, Study};
use serde::{Deserialize, Serialize};

use crate::{
    format::{Gate, Judgment},
    metrics::pairs::{Pair, of_pairs},
    play::criticise,
    task::{Facts, Gold, Prompter, Public, Task},
};

/// Judges what it is given; tasks stand in pairs, as [`pairs_of`] and [`JudgeBenchRow::tasks`] give them.
pub struct Judging {
    pub gate: Gate,
}

/// What such an episode notes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged {
    pub problem: String,
    /// Of the answer.
    pub right: bool,
    pub critique: String,
    pub judgment: Option<Judgment>,
}

impl Judged {
    fn of(episode: &Episode) -> Option<Self> {
        episode.outcome.reward()?;
        serde_json::from_value(episode.notes.clone()).ok()
    }
}

impl Study for Judging {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        let criticism = criticise(self.gate, task, cx).await?;
        let right = task.facts.initially_right;
        let truth = if right {
            Judgment::Correct
        } else {
            Judgment::Incorrect
        };
        let judged = Judged {
            problem: task.facts.function.clone(),
            right,
            critique: criticism.text,
            judgment: criticism.judgment,
        };
        Ok(Played {
            reward: Reward::of("judgment", f64::from(judged.judgment == Some(truth))),
            notes: serde_json::to_value(&judged).map_err(Fault::grader)?,
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(&self, _: &[Group], counted: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        counted.clone()
    }

    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        let pairs: Vec<Pair> = groups.chunks_exact(2).filter_map(pair).collect();
        of_pairs(&pairs)
    }

    fn replay(&self, _: &Episode) {}
}

/// Two groups that stand side by side; `None` where one of them was never judged.
fn pair(groups: &[Group]) -> Option<Pair> {
    let [first, second] = groups else {
        return None;
    };
    let judged =
        |group: &Group| -> Vec<Judged> { group.episodes.iter().filter_map(Judged::of).collect() };
    let (first, second) = (judged(first), judged(second));
    let problem = first.first()?.problem.clone();
    let (right, wrong) = match (first.first()?.right, second.first()?.right) {
        (true, false) => (first, second),
        (false, true) => (second, first),
        _ => return None,
    };
    let judgments = |of: Vec<Judged>| of.into_iter().map(|one| one.judgment).collect();
    Some(Pair {
        problem,
        right: judgments(right),
        wrong: judgments(wrong),
    })
}

/// The right and the wrong programs of every problem, paired in their order as far as there are both.
pub fn pairs_of(tasks: &[Arc<Task>]) -> Vec<Arc<Task>> {
    let mut problems: BTreeMap<&str, [Vec<&Arc<Task>>; 2]> = BTreeMap::new();
    for task in tasks {
        let of_problem = problems.entry(&task.facts.function).or_default();
        of_problem[usize::from(task.facts.initially_right)].push(task);
    }
    let pairs = problems.into_values().flat_map(|[wrong, right]| {
        let pairs = right.into_iter().zip(wrong);
        pairs.flat_map(|(right, wrong)| [right.clone(), wrong.clone()])
    });
    pairs.collect()
}

/// A pair as JudgeBench has it.
#[derive(Clone, Debug, Deserialize)]
pub struct JudgeBenchRow {
    pub pair_id: String,
    /// The problem's own name; pairs of one problem are one draw.
    pub original_id: Option<String>,
    /// The dataset that the question is of.
    pub source: Option<String>,
    pub question: String,
    #[serde(rename = "response_A")]
    pub response_a: String,
    #[serde(rename = "response_B")]
    pub response_b: String,
    pub label: Label,
}

/// Which response is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Label {
    #[serde(rename = "A>B")]
    A,
    #[serde(rename = "B>A")]
    B,
}

impl JudgeBenchRow {
    /// Its two responses, to be judged in the words of `prompter`.
    pub fn tasks(&self, prompter: Prompter) -> [Task; 2] {
        let task = |name: &str, response: &str, right: bool| Task {
            id: TaskId(format!("{}/{name}", self.pair_id)),
            public: Public {
                statement: self.question.clone(),
                program: response.to_owned(),
                prompter,
            },
            facts: Facts {
                initially_right: right,
                family: String::new(),
                bug: None,
                function: self.original_id.as_ref().unwrap_or(&self.pair_id).clone(),
                data_source: self.source.clone(),
                difficulty: None,
            },
            gold: Gold {
                tests: Tests::asserts(Vec::<String>::new()),
                time_limit_s: None,
                right_critique: None,
                probes: BTreeMap::new(),
            },
        };
        [
            task("A", &self.response_a, self.label == Label::A),
            task("B", &self.response_b, self.label == Label::B),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str) -> JudgeBenchRow {
        let text = format!(
            r#"{{"pair_id": "p", "original_id": "q", "source": "livecodebench", "question": "?", "response_model": "m",
                "response_A": "one", "response_B": "two", "label": "{label}"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_row_of_judge_bench_becomes_two_programs_of_one_problem() {
        let [a, b] = row("B>A").tasks(Prompter::CodeContests);
        assert!(!a.facts.initially_right && b.facts.initially_right);
        assert_eq!(
            (a.public.program.as_str(), b.public.program.as_str()),
            ("one", "two")
        );
        assert_eq!(
            (a.facts.function.as_str(), b.facts.function.as_str()),
            ("q", "q")
        );
        assert_ne!(a.id, b.id);
        let unclear = r#"{"pair_id": "p", "question": "?", "response_A": "", "response_B": "", "label": "A=B"}"#;
        assert!(serde_json::from_str::<JudgeBenchRow>(unclear).is_err());
    }

    #[test]
    fn programs_of_a_problem_are_paired_as_far_as_there_are_both() {
        let program = |problem: &str, number: usize, right: bool| {
            let mut task = row("A>B").tasks(Prompter::Tiny)[0].clone();
            task.id = TaskId(format!("{problem}{number}"));
            problem.clone_into(&mut task.facts.function);
            task.facts.initially_right = right;
            Arc::new(task)
        };
        let tasks = [
            program("a", 0, false),
            program("a", 1, true),
            program("a", 2, true),
            program("b", 0, true),
        ];
        let pairs = pairs_of(&tasks);
        let ids: Vec<&str> = pairs.iter().map(|task| task.id.0.as_str()).collect();
        assert_eq!(ids, ["a1", "a0"]);
    }
}
