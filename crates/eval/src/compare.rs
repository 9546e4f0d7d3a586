//! Comparing two evaluations of the same tasks.

use std::collections::BTreeMap;

use record::{Estimate, Group, TaskId};

/// The gain of one policy over another on the tasks that both were graded on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean over tasks of (after − before) of the task's mean reward component, with the normal
    /// 95 % interval of paired differences.
    pub gain: Estimate,
    pub n_tasks: usize,
}

/// Paired difference of the mean of `component` a task; `None` with fewer than two common tasks.
///
/// Pairing removes the spread between easy and hard tasks, so this interval is tighter than a
/// comparison of two separate ones.
pub fn paired_difference(before: &[Group], after: &[Group], component: &str) -> Option<Difference> {
    let before = means(before, component);
    let differences: Vec<f64> = means(after, component)
        .into_iter()
        .filter_map(|(task, mean)| Some(mean - before.get(&task)?))
        .collect();
    let n = differences.len();
    if n < 2 {
        return None;
    }
    let mean = differences.iter().sum::<f64>() / n as f64;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let half = 1.96 * (variance / n as f64).sqrt();
    Some(Difference {
        gain: Estimate {
            value: mean,
            low: mean - half,
            high: mean + half,
        },
        n_tasks: n,
    })
}

fn means(groups: &[Group], component: &str) -> BTreeMap<TaskId, f64> {
    let graded = |group: &Group| {
        let values: Vec<f64> = group
            .episodes
            .iter()
            .filter_map(|episode| episode.outcome.reward()?.components.get(component).copied())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    groups
        .iter()
        .filter_map(|group| Some((group.task.clone(), graded(group)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use record::{Episode, EpisodeId, Outcome, Reward};

    use super::*;

    fn group(task: &str, values: &[Option<f64>]) -> Group {
        let episode = |(member, value): (usize, &Option<f64>)| Episode {
            id: EpisodeId {
                step: 0,
                group: 0,
                member: member as u32,
            },
            task: TaskId(task.to_owned()),
            calls: Vec::new(),
            outcome: match value {
                Some(value) => Outcome::Graded {
                    reward: Reward::of("pass", *value),
                },
                None => Outcome::InfraFault {
                    message: "gone".to_owned(),
                },
            },
            retries: 0,
            notes: serde_json::Value::Null,
        };
        Group {
            task: TaskId(task.to_owned()),
            episodes: values.iter().enumerate().map(episode).collect(),
        }
    }

    #[test]
    fn faults_and_unpaired_tasks_count_for_nothing() {
        let before = [
            group("a", &[Some(0.0), Some(1.0)]),
            group("b", &[Some(0.0), None]),
            group("c", &[None]),
        ];
        let after = [
            group("b", &[Some(1.0)]),
            group("a", &[Some(1.0)]),
            group("c", &[Some(1.0)]),
            group("d", &[Some(1.0)]),
        ];
        let found = paired_difference(&before, &after, "pass").unwrap();
        assert_eq!(found.n_tasks, 2);
        assert_eq!(found.gain.value, 0.75);
        // Differences 0.5 and 1: sample variance 1/8, standard error sqrt(1/16) = 1/4.
        assert!((found.gain.high - (0.75 + 1.96 * 0.25)).abs() < 1e-12);
        assert_eq!(paired_difference(&before, &after, "other"), None);
    }
}
