//! Tasks of the world of programs: what their tests are, and that a second judge agrees with their making.

use std::collections::BTreeMap;

use critique::{
    Purpose, Task, make_tasks,
    tiny::{Family, Split, TaskSet, drafts},
};
use record::Seed;

use crate::stage::{all, judge, play};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_programs_pass_and_planted_bugs_fail_as_whole_programs() {
    let judge = judge();
    let drafts = drafts(TaskSet::Programs, Seed(7), Split::Train, 0.4);
    let (made, checked) = make_tasks(&judge, drafts, 36, |_| {}).await.unwrap();
    assert_eq!((checked.kept, checked.broken), (36, 0));
    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &made {
        *families.entry(&one.task.facts.family).or_default() += 1;
        assert!(one.task.public.program.contains("input()"));
        assert!(one.task.public.statement.starts_with("Read "));
    }
    assert_eq!(families.len(), Family::PROGRAMS.len(), "{families:?}");

    let tasks: Vec<Task> = made.iter().map(|one| one.task.clone()).collect();
    let critiques = all(&tasks, |_| "Overall judgment: Incorrect".to_owned());
    let as_they_are = all(&tasks, |task| task.public.program.clone());
    let played = play(
        &judge,
        Purpose::Measuring,
        &tasks,
        critiques.clone(),
        as_they_are,
    )
    .await;
    for ((_, notes), task) in played.iter().zip(&tasks) {
        let program = &task.public.program;
        assert_eq!(
            notes.passed, task.facts.initially_right,
            "{program}\n{:?}",
            notes.verdict
        );
    }
    let references: BTreeMap<_, _> = made
        .iter()
        .map(|one| (one.task.id.clone(), one.draft.function.reference()))
        .collect();
    let played = play(&judge, Purpose::Measuring, &tasks, critiques, references).await;
    assert!(played.iter().all(|(_, notes)| notes.passed));
}
