//! What each policy learns from, and what it leaves in the journal.

use std::{collections::BTreeSet, fs, path::Path};

use journal::{Metrics, Replay};
use train::MiniBatchUnit;

use crate::world::{STEPS, Setting, config, train};

fn first_step(replay: &Replay) -> Metrics {
    replay.steps("rl").next().unwrap().metrics.clone()
}

fn with_prefix<'a>(metrics: &'a Metrics, prefix: &str) -> Vec<(&'a str, u64)> {
    let own = metrics
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value.to_bits())));
    own.collect()
}

#[test]
fn policies_that_learn_together_learn_from_the_same_episodes_what_each_learns_alone() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, setting| train(&dir.path().join(name), setting, &config());
    let together = first_step(&run("together", Setting::Separate));
    for (name, setting) in [
        ("memory", Setting::Only("memory")),
        ("answer", Setting::Only("answer")),
    ] {
        let alone = first_step(&run(name, setting));
        let own = with_prefix(&together, &format!("{name}/"));
        assert!(own.len() > 20, "{own:?}");
        for (metric, value) in &own {
            assert_eq!(alone[*metric].to_bits(), *value, "{name}: {metric}");
        }
        // What is not the policy's own is of the episodes, and the same for all.
        let named: BTreeSet<&str> = own.iter().map(|(metric, _)| *metric).collect();
        for (metric, value) in alone
            .iter()
            .filter(|(metric, _)| !named.contains(metric.as_str()))
        {
            assert_eq!(
                together[metric].to_bits(),
                value.to_bits(),
                "{name}: {metric}"
            );
        }
    }
    assert_eq!(together["rollout/graded"], 12.0);
    assert_eq!(together["memory/actor/updates"], 2.0);
    assert_eq!(together["answer/step/scored_share"], 0.0);
    assert!(together["memory/step/scored_share"] > 0.0);
    assert_ne!(
        together["memory/actor/grad_norm"],
        together["answer/actor/grad_norm"]
    );
}

#[test]
fn roles_that_share_weights_are_rows_of_one_batch() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let metrics = first_step(&train(&path, Setting::Shared, &config()));
    assert!(metrics["memory/calls"] > 0.0);
    assert_eq!(metrics["answer/calls"], 12.0);
    assert!(metrics.contains_key("actor/pg_loss") && !metrics.contains_key("memory/actor/pg_loss"));
    assert_eq!(
        metrics["actor/updates"], 2.0,
        "of whole episodes, whatever their calls"
    );
    let saved = path.join(format!("checkpoints/rl-{STEPS:06}"));
    assert!(saved.join("model.safetensors").is_file());
    assert!(saved.join("tokenizer.json").is_file());
}

#[test]
fn every_policy_has_a_folder_of_its_own_in_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    train(&path, Setting::Separate, &config());
    let saved = path.join(format!("checkpoints/rl-{STEPS:06}"));
    let names = |path: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(path).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    assert_eq!(
        names(&saved),
        ["answer".to_owned(), "memory".to_owned()].into()
    );
    assert!(saved.join("memory/model.safetensors").is_file());
    assert!(saved.join("answer/adapter_model.safetensors").is_file());
    assert!(saved.join("answer/tokenizer.json").is_file());
}

#[test]
fn one_role_leaves_what_it_always_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut plain = config();
    (plain.algorithm, plain.mini_batch_unit) = Default::default();
    let metrics = first_step(&train(
        &dir.path().join("run"),
        Setting::Only("answer"),
        &plain,
    ));
    let names: Vec<&str> = metrics.keys().map(String::as_str).collect();
    let expected = include_str!("one_role.txt");
    assert_eq!(names, expected.lines().collect::<Vec<_>>());
    let text = serde_json::to_string(&plain).unwrap();
    assert!(!text.contains("mini_batch_unit"), "{text}");
    assert_eq!(plain.mini_batch_unit, MiniBatchUnit::Rows);
}
