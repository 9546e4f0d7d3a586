//! Comparing a step done again with the step that was committed, and counting tokens.

use journal::{Metrics, Step};
use record::Group;

use rollout::Spent;

use crate::TrainError;

/// What went on at the same time while a step was played, in seconds; nothing where no program ran.
pub(crate) fn overlap(spent: &Spent) -> Vec<(String, f64)> {
    if spent.sandbox == 0.0 {
        return Vec::new();
    }
    let seconds = [
        ("decoding", spent.decoding),
        ("sandbox", spent.sandbox),
        ("both", spent.both),
        ("sandbox_alone", spent.sandbox_alone()),
    ];
    let named = seconds.map(|(name, seconds)| (format!("overlap_s/{name}"), seconds));
    named.into()
}

/// Tokens that all roles sampled.
pub(crate) fn sampled_tokens(groups: &[Group]) -> u64 {
    let calls = groups
        .iter()
        .flat_map(|group| &group.episodes)
        .flat_map(|episode| &episode.calls);
    calls
        .map(|call| call.completion.response.len() as u64)
        .sum()
}

/// Fails unless every metric that was made again equals the committed one, bit for bit. Metrics that
/// only playing a step can make are not compared.
pub(crate) fn check_reproduced(committed: &Step, again: &Metrics) -> Result<(), TrainError> {
    for (metric, &found) in again {
        let Some(&value) = committed.metrics.get(metric) else {
            continue;
        };
        if value.to_bits() != found.to_bits() {
            return Err(TrainError::NotReproduced {
                phase: committed.phase.clone(),
                step: committed.step,
                metric: metric.clone(),
                committed: value,
                found,
            });
        }
    }
    Ok(())
}
