//! Log-probs recorded while sampling are those of the weights that were in force.

use std::path::Path;

use engine::{Engine, Model, TrainRow};
use journal::RunReader;
use record::{Completion, StopReason};

use crate::{
    etude::committed,
    runs::{RL, groups, series, uninterrupted},
};

const TOLERANCE: f64 = 1e-4;

#[test]
fn every_step_trains_on_the_log_probs_of_its_own_weights() {
    let gaps = series(uninterrupted(), "training/logprob_gap_max");
    assert!(gaps.iter().all(|gap| *gap < TOLERANCE), "{gaps:?}");
}

/// The metric above compares with the pass that trains; this scores anew, from files alone.
#[test]
fn a_fresh_scoring_pass_gives_the_recorded_log_probs() {
    let run = uninterrupted();
    let replay = committed(run);
    let mut scored = vec![("critic-sft".to_owned(), 1)];
    let of_phase = replay
        .checkpoints()
        .into_iter()
        .filter(|checkpoint| checkpoint.phase == RL);
    scored.extend(of_phase.map(|checkpoint| (checkpoint.name.clone(), checkpoint.step + 1)));
    let last = replay.last_step(RL).unwrap().step;
    scored.retain(|(_, step)| *step <= last);
    assert!(scored.len() >= 2, "{scored:?}");
    let mut largest = Vec::new();
    for (checkpoint, step) in &scored {
        largest.push(gap_of_step(run, checkpoint, *step));
    }
    assert!(
        largest.iter().all(|gap| *gap < TOLERANCE),
        "{scored:?}: {largest:?}"
    );

    let wrong = gap_of_step(run, "critic-sft", last);
    assert!(
        wrong > TOLERANCE,
        "other weights give the same log-probs, so this test sees nothing"
    );
}

/// The largest difference over the critic's tokens of a step between what was recorded and what the
/// weights of a checkpoint say.
fn gap_of_step(run: &Path, checkpoint: &str, step: u64) -> f64 {
    let directory = RunReader::open(run)
        .unwrap()
        .checkpoint_path(checkpoint)
        .unwrap();
    let model = Model::load(&directory).unwrap();
    let replay = committed(run);
    let step = replay.steps(RL).find(|one| one.step == step).unwrap();
    let completions: Vec<Completion> = groups(run, step)
        .into_iter()
        .flat_map(|group| group.episodes)
        .flat_map(|episode| episode.calls)
        .filter(|call| call.role == "critic")
        .map(|call| call.completion)
        .collect();
    assert!(
        completions
            .iter()
            .any(|completion| completion.stop == StopReason::Stop)
    );
    let rows: Vec<(Vec<u32>, Vec<bool>)> = completions
        .iter()
        .map(
            |Completion {
                 prompt, response, ..
             }| {
                let mask = [vec![false; prompt.len()], vec![true; response.len()]].concat();
                ([prompt.as_slice(), response].concat(), mask)
            },
        )
        .collect();
    let rows: Vec<TrainRow<'_>> = rows
        .iter()
        .map(|(tokens, mask)| TrainRow { tokens, mask })
        .collect();
    let scores = Engine::new(2).unwrap().score(&model, &rows).unwrap();
    let mut largest = 0.0_f64;
    for (completion, scores) in completions.iter().zip(&scores) {
        assert_eq!(completion.logprobs.len(), completion.response.len());
        assert_eq!(completion.logprobs.len(), scores.logprobs.len());
        for (recorded, scored) in completion.logprobs.iter().zip(&scores.logprobs) {
            largest = largest.max((f64::from(*recorded) - f64::from(*scored)).abs());
        }
    }
    largest
}
