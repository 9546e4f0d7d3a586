//! Filters, balance and their counts over samples that are made here.

use std::collections::BTreeMap;

use judge::Verdict;
use proptest::prelude::*;
use record::{Episode, EpisodeId, Outcome, Reward, TaskId};

use super::*;

const ALL: Filters = Filters {
    max_prompt_tokens: 100,
    keep_failed: true,
    remove_duplicates: false,
    balance: false,
};

fn verdict(passed: bool) -> Verdict {
    serde_json::from_value(serde_json::json!({
        "passed": passed, "n_passed": u8::from(passed), "n_tests": 2, "cases": [],
        "status": if passed { "passed" } else { "wrong" }, "message": null,
        "key": "00".repeat(32), "cached": false, "wall_ms": 0.0, "cpu_ms": 0.0, "tier": "namespaces",
    }))
    .unwrap()
}

fn sample(success: bool, judgment: Judgment) -> SynthesisNotes {
    SynthesisNotes {
        solution: "So:\n```python\nx\n```".to_owned(),
        program: "x".to_owned(),
        success,
        success_float: 0.5,
        verdict: verdict(success),
        hint: "It is wrong.".to_owned(),
        critic_instruction: "Look at x.".to_owned(),
        critique: format!("Overall judgment: {judgment}"),
        critique_finished: true,
        judgment: Some(judgment),
        revision: "y".to_owned(),
        revised_program: "y".to_owned(),
        revised_success: true,
        revised_verdict: verdict(true),
    }
}

fn episode(problem: &str, number: usize, notes: Option<SynthesisNotes>) -> Episode {
    Episode {
        id: EpisodeId {
            step: 0,
            group: 0,
            member: number as u32,
        },
        task: TaskId(problem.to_owned()),
        calls: Vec::new(),
        outcome: match notes {
            Some(_) => Outcome::Graded {
                reward: Reward::of("revised_success", 1.0),
            },
            None => Outcome::InfraFault {
                message: "gone".to_owned(),
            },
        },
        retries: 0,
        notes: serde_json::to_value(notes).unwrap(),
    }
}

fn group(problem: &str, samples: Vec<Option<SynthesisNotes>>) -> Group {
    let samples = samples.into_iter().enumerate();
    Group {
        task: TaskId(problem.to_owned()),
        episodes: samples
            .map(|(number, notes)| episode(problem, number, notes))
            .collect(),
    }
}

/// A token a word.
fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn ids(written: &Written) -> Vec<&str> {
    written.rows.iter().map(|row| row.id.as_str()).collect()
}

use Judgment::{Correct, Incorrect};

#[test]
fn every_filter_drops_what_it_is_for_and_is_counted() {
    let good = sample(false, Incorrect);
    let with = |change: fn(&mut SynthesisNotes)| {
        let mut notes = good.clone();
        change(&mut notes);
        Some(notes)
    };
    let groups = [group(
        "a",
        vec![
            Some(good.clone()),
            None,
            with(|notes| notes.critique_finished = false),
            with(|notes| notes.judgment = None),
            with(|notes| notes.critique.insert_str(0, "As the hint says, ")),
            with(|notes| notes.critique.insert_str(0, "The hint says. ")),
            with(|notes| notes.critique.insert_str(0, "A hint of doubt. ")),
            with(|notes| notes.critic_instruction = "word ".repeat(100)),
            with(|notes| notes.critic_instruction = "word ".repeat(99)),
            with(|notes| notes.revised_success = false),
        ],
    )];
    let strict = Filters {
        keep_failed: false,
        ..ALL
    };
    let written = lessons(&groups, &strict, words, Seed(1));
    assert_eq!(ids(&written), ["a/0", "a/6", "a/8"]);
    let expected = [
        ("dropped: mentions the hint", 2),
        ("dropped: no judgment that can be read", 1),
        ("dropped: no verdict", 1),
        ("dropped: the critique was cut off", 1),
        ("dropped: the prompt is too long", 1),
        ("dropped: the revision fails", 1),
        ("rows", 3),
        ("samples", 10),
    ];
    let expected: BTreeMap<String, usize> = expected
        .iter()
        .map(|(name, n)| ((*name).to_owned(), *n))
        .collect();
    assert_eq!(written.counts, expected);
    assert_eq!(
        ids(&lessons(&groups, &ALL, words, Seed(1))),
        ["a/0", "a/6", "a/8", "a/9"]
    );
}

#[test]
fn rows_are_read_back_as_lessons() {
    let groups = [group("a", vec![Some(sample(true, Correct))])];
    let written = lessons(&groups, &ALL, words, Seed(1));
    let line = serde_json::to_string(&written.rows[0]).unwrap();
    let lesson: CriticLesson = serde_json::from_str(&line).unwrap();
    assert_eq!(lesson, written.rows[0].lesson);
    assert!(!line.contains("It is wrong."), "{line}");
}

#[test]
fn one_row_a_problem_where_that_is_wanted() {
    let two = || vec![Some(sample(false, Incorrect)), Some(sample(true, Correct))];
    let groups = [group("a", two()), group("b", two())];
    let filters = Filters {
        remove_duplicates: true,
        ..ALL
    };
    let written = lessons(&groups, &filters, words, Seed(1));
    assert_eq!(ids(&written), ["a/0", "b/0"]);
    assert_eq!(written.counts["dropped: another row of its problem"], 2);
}

#[test]
fn pairs_are_all_solutions_that_were_judged() {
    let groups = [group("a", vec![None, Some(sample(true, Correct))])];
    let found = pairs(&groups);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].id.as_str(), found[0].problem_id.as_str()),
        ("a/1", "a")
    );
    assert_eq!(found[0].sanitized_solution, "```python\nx\n```");
}

proptest! {
    #[test]
    fn balanced_rows_judge_as_solutions_are(
        samples in prop::collection::vec((any::<bool>(), any::<bool>()), 1..60), seed: u64
    ) {
        let notes = samples.iter().map(|&(success, correct)| {
            Some(sample(success, if correct { Correct } else { Incorrect }))
        });
        let groups = [group("a", notes.collect())];
        let filters = Filters { balance: true, ..ALL };
        let all = lessons(&groups, &ALL, words, Seed(seed));
        let some = lessons(&groups, &filters, words, Seed(seed));
        prop_assert_eq!(&some, &lessons(&groups, &filters, words, Seed(seed)));
        prop_assert_eq!(some.counts["dropped: balancing"], all.rows.len() - some.rows.len());
        let of = |written: &Written, judgment| {
            written.rows.iter().filter(|row| row.judgment == judgment).count() as f64
        };
        let (correct, incorrect) = (of(&some, Correct), of(&some, Incorrect));
        let right = samples.iter().filter(|(success, _)| *success).count() as f64;
        let wrong = samples.len() as f64 - right;
        // One class is whole, and the other is off by less than a row.
        prop_assert!(correct == of(&all, Correct) || incorrect == of(&all, Incorrect));
        if right > 0.0 && wrong > 0.0 {
            let off = (correct - incorrect * right / wrong).abs().min((incorrect - correct * wrong / right).abs());
            prop_assert!(off < 1.0, "{correct} {incorrect} {right} {wrong}");
        } else {
            prop_assert!((right > 0.0 || correct == 0.0) && (wrong > 0.0 || incorrect == 0.0));
        }
        let places: Vec<&str> = ids(&some);
        let order: Vec<&str> = ids(&all).into_iter().filter(|id| places.contains(id)).collect();
        prop_assert_eq!(places, order);
    }
}
