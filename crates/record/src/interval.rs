//! 95 % intervals over clusters of items that are one draw: tasks, dialogues, documents.

use rand::RngExt;

use crate::{Estimate, Seed};

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

const RESAMPLES: usize = 1000;

/// What the items of one cluster add to a share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Of every item between 0 and 1.
    pub hits: f64,
    /// How many items there are.
    pub total: f64,
}

/// The share of hits with its Wilson interval; `None` without items.
///
/// With several items a cluster the interval uses the number of independent items that would give the
/// variance that is observed between clusters (Kish's effective sample size, linearised ratio estimate),
/// at most the number of items. Where that variance says nothing (every item alike) it is the number
/// of clusters.
pub fn proportion(clusters: impl Iterator<Item = Cluster>) -> Option<Estimate> {
    let clusters: Vec<Cluster> = clusters.filter(|cluster| cluster.total > 0.0).collect();
    let n: f64 = clusters.iter().map(|cluster| cluster.total).sum();
    if n == 0.0 {
        return None;
    }
    let share = clusters.iter().map(|cluster| cluster.hits).sum::<f64>() / n;
    Some(wilson(share, effective_n(&clusters, share, n)))
}

fn effective_n(clusters: &[Cluster], share: f64, n: f64) -> f64 {
    let n_tasks = clusters.len() as f64;
    let spread = share * (1.0 - share);
    if spread == 0.0 || n_tasks < 2.0 {
        return n_tasks;
    }
    if n_tasks == n {
        return n;
    }
    let residuals = clusters
        .iter()
        .map(|c| (c.hits - share * c.total).powi(2))
        .sum::<f64>();
    let variance = residuals / (n * n) * n_tasks / (n_tasks - 1.0);
    (spread / variance).clamp(1.0, n.max(1.0))
}

/// Wilson's score interval for a share of `n` independent items; `n` may be fractional.
fn wilson(share: f64, n: f64) -> Estimate {
    let scale = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    // The bounds meet 0 and 1 exactly in theory and by a rounding error not in practice.
    Estimate {
        value: share,
        low: (centre - half).clamp(0.0, share),
        high: (centre + half).clamp(share, 1.0),
    }
}

/// The chance that one of `k` of `n` samples passes, when `passes` of them do: `1 - C(n - passes, k) / C(n, k)`
/// (Codex, arXiv 2107.03374, equation 1).
pub fn pass_at_k(n: usize, passes: usize, k: usize) -> f64 {
    if n - passes < k {
        return 1.0;
    }
    let none: f64 = (n - passes + 1..=n)
        .map(|i| 1.0 - k as f64 / i as f64)
        .product();
    1.0 - none
}

/// The statistic of all `n` units with the percentile interval of resamples with replacement; `None`
/// where it is undefined. Resamples in which it is undefined are left out; they are always the same ones
/// for the same `n`.
pub fn bootstrap(
    n: usize,
    statistic: impl Fn(&mut dyn Iterator<Item = usize>) -> Option<f64>,
) -> Option<Estimate> {
    let value = statistic(&mut (0..n))?;
    let mut rng = Seed(0).stream("bootstrap", n as u64).rng();
    let mut values: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| statistic(&mut (0..n).map(|_| rng.random_range(0..n))))
        .collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| match values.len() {
        0 => value,
        len => values[((len - 1) as f64 * share).round() as usize],
    };
    Some(Estimate {
        value,
        low: at(0.025).min(value),
        high: at(0.975).max(value),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4
    }

    #[test]
    fn wilson_matches_published_values() {
        // 10 of 20 and 0 of 10: (0.2993, 0.7007) and (0, 0.2775).
        let half = wilson(0.5, 20.0);
        assert!(
            close(half.low, 0.2993) && close(half.high, 0.7007),
            "{half:?}"
        );
        let none = wilson(0.0, 10.0);
        assert!(none.low == 0.0 && close(none.high, 0.2775), "{none:?}");
    }

    #[test]
    fn samples_that_agree_inside_tasks_are_worth_one_and_independent_ones_are_worth_all() {
        let alike: Vec<Cluster> = (0..40)
            .map(|i| Cluster {
                hits: f64::from(i % 2 * 8),
                total: 8.0,
            })
            .collect();
        // Variance of a mean over 40 tasks of 0 or 1, sample form: n_eff is 39.
        assert!(close(effective_n(&alike, 0.5, 320.0), 39.0));
        let mixed: Vec<Cluster> = (0..40)
            .map(|_| Cluster {
                hits: 4.0,
                total: 8.0,
            })
            .collect();
        assert_eq!(effective_n(&mixed, 0.5, 320.0), 320.0);
        let sure: Vec<Cluster> = (0..40)
            .map(|_| Cluster {
                hits: 8.0,
                total: 8.0,
            })
            .collect();
        assert_eq!(effective_n(&sure, 1.0, 320.0), 40.0);
    }

    #[test]
    fn pass_at_k_is_the_unbiased_estimate() {
        for (n, passes, k, expected) in [
            (1, 1, 1, 1.0),
            (1, 0, 1, 0.0),
            (4, 1, 1, 0.25),
            (4, 1, 2, 0.5),
            (5, 2, 3, 0.9),
            (10, 0, 5, 0.0),
            (10, 6, 5, 1.0),
        ] {
            let found = pass_at_k(n, passes, k);
            assert!((found - expected).abs() < 1e-12, "{n} {passes} {k}");
        }
    }

    #[test]
    fn bootstrap_of_a_mean_is_near_the_normal_interval() {
        let data: Vec<f64> = (0..200).map(|i| f64::from(i % 2)).collect();
        let mean = |sample: &mut dyn Iterator<Item = usize>| {
            let (n, sum) = sample.fold((0.0, 0.0), |(n, sum), i| (n + 1.0, sum + data[i]));
            Some(sum / n)
        };
        let found = bootstrap(200, mean).unwrap();
        // Standard error 0.5 / sqrt(200) = 0.03536; bounds 0.5 ± 0.0693.
        assert_eq!(found.value, 0.5);
        assert!((found.low - 0.4307).abs() < 0.012 && (found.high - 0.5693).abs() < 0.012);
        assert_eq!(bootstrap(200, mean), Some(found));
        assert_eq!(bootstrap(0, |_| None), None);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_value_and_stays_between_0_and_1(
            clusters in prop::collection::vec((0u8..9, 0u8..9), 0..30)
        ) {
            let clusters: Vec<Cluster> = clusters
                .into_iter()
                .map(|(a, b)| Cluster { hits: f64::from(a.min(b)), total: f64::from(a.max(b)) })
                .collect();
            let n: f64 = clusters.iter().map(|cluster| cluster.total).sum();
            let found = proportion(clusters.into_iter());
            prop_assert_eq!(found.is_some(), n > 0.0);
            if let Some(found) = found {
                prop_assert!(0.0 <= found.low && found.low <= found.value);
                prop_assert!(found.value <= found.high && found.high <= 1.0);
                prop_assert!(found.high - found.low > 0.0);
            }
        }
    }
}
