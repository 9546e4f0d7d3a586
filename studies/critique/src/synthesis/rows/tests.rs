//! From samples that are made here to nodes, pairs and lessons.

use judge::Verdict;
use record::{Episode, EpisodeId, Outcome, Reward, Seed};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    CriticLesson,
    data::{LessonOptions, filter_lessons, lesson_rows, pair_rows, read_attempts, read_problems},
    forest::read_forest,
    format::{Gate, Judgment},
};

fn verdict(passed: bool) -> Verdict {
    serde_json::from_value(json!({
        "passed": passed, "n_passed": if passed { 2 } else { 1 }, "n_tests": 2, "cases": [],
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
        success_float: if success { 1.0 } else { 0.5 },
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

/// Two problems, under the names `p/0` and `p/1`.
fn assignments() -> Vec<Assignment> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p.jsonl");
    let row = |number: usize| {
        json!({
            "task_id": number, "problem": format!("Print {number}."), "split": "train", "data_source": "made",
            "all_uts": [{"input": {"stdin": ""}, "output": {"stdout": format!("{number}\n")}}],
        })
    };
    std::fs::write(&path, format!("{}\n{}\n", row(0), row(1))).unwrap();
    let problems = read_problems(&path, 1).unwrap().into_iter();
    problems
        .map(|problem| Assignment {
            id: TaskId(format!("p/{}", problem.task_id)),
            file: "p.jsonl".to_owned(),
            problem,
        })
        .collect()
}

fn of<'a>(assignments: &'a [Assignment]) -> impl Fn(&TaskId) -> Option<&'a Assignment> {
    |id| assignments.iter().find(|one| one.id == *id)
}

use Judgment::{Correct, Incorrect};

#[test]
fn samples_become_a_forest_that_reads_back_as_the_same_attempts() {
    let assignments = assignments();
    let groups = [
        group(
            "p/0",
            vec![
                Some(sample(false, Incorrect)),
                None,
                Some(sample(true, Correct)),
            ],
        ),
        group("p/1", vec![Some(sample(true, Correct))]),
    ];
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("forest.jsonl");
    let made = samples(&groups, of(&assignments), &file, "somebody");
    assert_eq!(made.without_verdict, 1);
    let lines: Vec<String> = made
        .lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap())
        .collect();
    assert_eq!(read_forest(&lines.join("\n")).unwrap(), made.lines);
    std::fs::write(&file, lines.join("\n")).unwrap();
    let read = read_attempts(&file, 1).unwrap();
    assert_eq!(read.len(), 6);
    for (read, made) in read.iter().zip(&made.tried) {
        let made = &made.attempt;
        assert_eq!((&read.hash, read.place), (&made.hash, made.place));
        assert_eq!(
            (&read.solution, &read.critique),
            (&made.solution, &made.critique)
        );
        assert_eq!(
            (&read.node_type, read.success),
            (&made.node_type, made.success)
        );
    }

    let pairs = pair_rows(made.tried.iter());
    let column = |name: &str| -> Vec<&Value> { pairs.iter().map(|row| &row[name]).collect() };
    assert_eq!(column("id"), ["p.jsonl/0", "p.jsonl/1", "p.jsonl/2"]);
    assert_eq!(column("success_float"), [0.5, 1.0, 1.0]);
    assert_eq!(column("generator"), ["somebody"; 3]);
    assert_eq!(column("data_source"), ["made"; 3]);
    assert_eq!(column("split"), ["train"; 3]);
    assert!(
        column("test_digest")
            .iter()
            .all(|digest| digest.is_string())
    );
    assert_eq!(pairs[0]["sanitized_solution"], "```python\nx\n```");
    assert!(!pairs[0].contains_key("critique") && !pairs[0].contains_key("all_uts"));

    let lessons = lesson_rows(&made.tried, Gate::Strict).unwrap();
    let truths: Vec<(bool, Option<Judgment>)> = lessons
        .iter()
        .map(|row| (row.initial_success, row.judgment))
        .collect();
    let (wrong, right) = ((false, Some(Incorrect)), (true, Some(Correct)));
    assert_eq!(truths, [wrong, right, right]);
    let line = serde_json::to_string(&lessons[0]).unwrap();
    let lesson: CriticLesson = serde_json::from_str(&line).unwrap();
    assert_eq!(lesson.critique, "Overall judgment: Incorrect");
    assert!(lesson.critic_instruction.contains("Print 0.") && !line.contains("It is wrong."));
}

#[test]
fn critiques_that_were_cut_off_or_judge_twice_make_no_lessons() {
    let assignments = assignments();
    let with = |change: fn(&mut SynthesisNotes)| {
        let mut notes = sample(false, Incorrect);
        change(&mut notes);
        Some(notes)
    };
    let groups = [group(
        "p/0",
        vec![
            with(|_| {}),
            with(|notes| notes.critique_finished = false),
            with(|notes| notes.critique += "\nOverall judgment: Correct"),
            with(|notes| notes.critique.insert_str(0, "As the hint says, ")),
            with(|notes| notes.revised_success = false),
        ],
    )];
    let made = samples(&groups, of(&assignments), "forest.jsonl".as_ref(), "x");
    let lessons = lesson_rows(&made.tried, Gate::Strict).unwrap();
    let options = LessonOptions {
        count_tokens: None,
        max_tokens: 2048,
        only_successful: true,
        only_judged: true,
        balance: false,
        one_per_problem: false,
        seed: Seed(1),
    };
    let (kept, steps) = filter_lessons(lessons, &options);
    assert_eq!(kept.len(), 1);
    let dropped: Vec<u64> = steps.iter().map(|step| step.dropped).collect();
    assert_eq!(dropped, [1, 1, 0, 1, 1, 0, 0]);
}
