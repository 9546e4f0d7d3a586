//! Hand-computed values, and a Markov chain whose every share is known.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use rand::RngExt;
use record::Seed;

use super::*;
use Judgment::{Correct, Incorrect};

/// Every path is one of programs of its own.
static NEXT: AtomicUsize = AtomicUsize::new(0);

fn path(problem: &str, right: &[bool], judgments: &[Option<Judgment>]) -> Trajectory {
    let state = |right: &bool| State {
        right: *right,
        timed_out: false,
    };
    let said = |judgment: &Option<Judgment>| {
        judgment.map(|judgment| Said {
            spoken: true,
            judgment: Some(judgment),
            similarity: (judgment == Incorrect).then_some(0.5),
        })
    };
    Trajectory {
        problem: problem.to_owned(),
        kinds: BTreeMap::from([("difficulty", problem[..1].to_owned())]),
        weight: 1.0,
        states: right.iter().map(state).collect(),
        programs: vec![NEXT.fetch_add(1, Ordering::Relaxed); right.len()],
        rounds: judgments.iter().map(said).collect(),
    }
}

fn value(measures: &BTreeMap<String, Estimate>, name: &str) -> f64 {
    measures
        .get(name)
        .unwrap_or_else(|| panic!("no {name}"))
        .value
}

#[test]
fn bookkeeping_of_the_golden_vector() {
    // Spec of the critique study, section 11: initial [1,0,0,1], final [1,1,0,0].
    let [before, after] = [[true, false, false, true], [true, true, false, false]];
    let paths: Vec<Trajectory> = (0..4)
        .map(|i| path(&format!("p{i}"), &[before[i], after[i]], &[Some(Incorrect)]))
        .collect();
    let measures = of_rounds(&paths);
    for (name, expected) in [
        ("pass_at_1/round-0", 0.5),
        ("pass_at_1/round-1", 0.5),
        ("delta_up/round-1", 0.25),
        ("regression_rate/round-1", 0.25),
        ("delta_up_from_start/round-1", 0.25),
        ("delta_down_from_start/round-1", 0.25),
        ("gain_over_start/round-1", 0.0),
        ("criticised/round-1", 1.0),
        ("similarity/round-1", 0.5),
        ("pass_at_1/round-0/difficulty/p", 0.5),
    ] {
        assert_eq!(value(&measures, name), expected, "{name}");
    }
}

#[test]
fn the_deltas_of_the_paper_add_up() {
    // Spec of the critique study, section 6.3: 7.88 + 4.73 - 0.85 = 11.76, of 165 problems with 5 programs each.
    let (right, up, down, n) = (65, 39, 7, 825);
    let paths: Vec<Trajectory> = (0..n)
        .map(|i| {
            let before = i < right;
            let after = if before { i >= down } else { i < right + up };
            path(&format!("{}", i / 5), &[before, after], &[Some(Incorrect)])
        })
        .collect();
    let measures = of_rounds(&paths);
    let percent = |name: &str| (1e4 * value(&measures, name)).round() / 100.0;
    assert_eq!(percent("pass_at_1/round-0"), 7.88);
    assert_eq!(percent("delta_up_from_start/round-1"), 4.73);
    assert_eq!(percent("delta_down_from_start/round-1"), 0.85);
    assert_eq!(percent("pass_at_1/round-1"), 11.76);
}

#[test]
fn several_rounds_by_hand() {
    let paths = [
        path(
            "a",
            &[false, true, false],
            &[Some(Incorrect), Some(Incorrect)],
        ),
        path(
            "b",
            &[false, false, true],
            &[Some(Correct), Some(Incorrect)],
        ),
        path("c", &[true, true, true], &[Some(Correct), None]),
        path("d", &[true, false, false], &[Some(Incorrect), None]),
    ];
    let measures = of_rounds(&paths);
    for (name, expected) in [
        ("pass_at_1/round-2", 0.5),
        ("delta_up/round-1", 0.25),
        ("delta_up/round-2", 0.25),
        ("regression_rate/round-1", 0.25),
        ("regression_rate/round-2", 0.25),
        ("delta_up_from_start/round-2", 0.25),
        ("delta_down_from_start/round-2", 0.25),
        ("criticised/round-2", 0.5),
        // Correct: 1 hit, 2 members, 2 claims. Incorrect: the same.
        ("judgment_f1/round-1", 0.5),
        // Right a is judged Incorrect, wrong b too: no hit of Correct, 1 of Incorrect of 1 member and 2 claims.
        ("judgment_f1_correct/round-2", 0.0),
        ("judgment_f1_incorrect/round-2", 2.0 / 3.0),
    ] {
        let found = value(&measures, name);
        assert!((found - expected).abs() < 1e-12, "{name}: {found}");
    }
    assert!(!measures.contains_key("pass_at_k/round-0/2"));
}

#[test]
fn several_programs_of_a_problem_give_pass_at_k() {
    // One of four right, and none of four: pass@2 of 1/2 and 0.
    let paths: Vec<Trajectory> = (0..8)
        .map(|i| path(if i < 4 { "a" } else { "b" }, &[i == 0], &[]))
        .collect();
    let measures = of_rounds(&paths);
    assert_eq!(value(&measures, "pass_at_1/round-0"), 0.125);
    assert_eq!(value(&measures, "pass_at_k/round-0/2"), 0.25);
    assert_eq!(value(&measures, "pass_at_k/round-0/4"), 0.5);
    assert!(!measures.contains_key("pass_at_k/round-0/8"));
}

#[test]
fn a_program_with_several_branches_is_one_program() {
    // Two programs, one right; three branches of each, so six paths of which each program has three.
    let mut paths: Vec<Trajectory> = (0..6)
        .map(|i| path("a", &[i < 3, i < 3], &[Some(Incorrect)]))
        .collect();
    for (i, one) in paths.iter_mut().enumerate() {
        one.weight = 1.0 / 3.0;
        one.programs[0] = i / 3;
    }
    let measures = of_rounds(&paths);
    assert_eq!(value(&measures, "pass_at_k/round-0/2"), 1.0);
    assert!(!measures.contains_key("pass_at_k/round-0/4"));
    assert_eq!(value(&measures, "pass_at_k/round-1/2"), 1.0 - 3.0 / 15.0);
}

#[test]
fn where_nothing_is_said_nothing_is_judged() {
    let mut silent = path("a", &[false, true], &[Some(Incorrect)]);
    let said = Said {
        spoken: false,
        judgment: None,
        similarity: Some(0.5),
    };
    silent.rounds = vec![Some(said)];
    let measures = of_rounds(&[silent]);
    assert_eq!(value(&measures, "criticised/round-1"), 0.0);
    assert_eq!(value(&measures, "similarity/round-1"), 0.5);
    assert!(!measures.contains_key("judgment_f1/round-1"));
}

#[test]
fn branches_of_a_program_share_its_weight() {
    let mut paths: Vec<Trajectory> = [true, false, false, false]
        .map(|right| path("a", &[false, right], &[Some(Incorrect)]))
        .to_vec();
    for one in &mut paths {
        one.weight = 0.25;
    }
    paths.push(path("b", &[true, true], &[Some(Correct)]));
    let measures = of_rounds(&paths);
    assert_eq!(value(&measures, "pass_at_1/round-0"), 0.5);
    assert_eq!(value(&measures, "pass_at_1/round-1"), 0.625);
}

#[test]
fn a_gain_is_over_what_the_other_reaches_on_the_same_problems() {
    let ours: Vec<_> = (0..10)
        .map(|i| path(&i.to_string(), &[false, i < 8], &[None]))
        .collect();
    let theirs: Vec<_> = (0..12)
        .map(|i| path(&i.to_string(), &[false, !(4..=9).contains(&i)], &[None]))
        .collect();
    let gain = relative_gain(&ours, &theirs, 1).unwrap();
    assert_eq!(gain.value, 1.0);
    assert!(gain.low <= 1.0 && gain.high >= 1.0 && gain.has_interval());
    assert_eq!(relative_gain(&ours, &ours, 0), None);
}

/// A generator that revises: the chances that a right and a wrong program are right afterwards.
#[derive(Clone, Copy)]
struct Generator {
    right: f64,
    wrong: f64,
}

/// A critic that judges: the chances that a right and a wrong program are found correct, and left alone.
#[derive(Clone, Copy)]
struct Discriminator {
    true_positive: f64,
    false_positive: f64,
}

// The paper's chain (spec of the critique study, section 6.4).
const INITIALLY: f64 = 0.1;
const WEAK: Generator = Generator {
    right: 0.7,
    wrong: 0.15,
};
const STRONG: Generator = Generator {
    right: 0.9,
    wrong: 0.3,
};
const SHARP: Discriminator = Discriminator {
    true_positive: 0.7,
    false_positive: 0.2,
};
const DULL: Discriminator = Discriminator {
    true_positive: 0.6,
    false_positive: 0.3,
};
/// Judges nothing: every program is revised.
const NONE: Discriminator = Discriminator {
    true_positive: 0.0,
    false_positive: 0.0,
};
const ROUNDS: usize = 10;

impl Generator {
    /// The chance of being right after one more round.
    fn step(self, right: f64, judge: Discriminator) -> f64 {
        let kept = judge.true_positive + (1.0 - judge.true_positive) * self.right;
        let made = (1.0 - judge.false_positive) * self.wrong;
        right * kept + (1.0 - right) * made
    }

    /// What any chain goes to.
    fn limit(self, judge: Discriminator) -> f64 {
        let lost = (1.0 - judge.true_positive) * (1.0 - self.right);
        let made = (1.0 - judge.false_positive) * self.wrong;
        made / (made + lost)
    }
}

/// One path of the chain: a program that is found correct stays as it is in that round.
fn walk(generator: Generator, judge: Discriminator, index: u64) -> Trajectory {
    let mut rng = Seed(3).stream("chain", index).rng();
    let mut right = vec![rng.random_bool(INITIALLY)];
    let mut judgments = Vec::new();
    for round in 0..ROUNDS {
        let now = right[round];
        let found = if now {
            judge.true_positive
        } else {
            judge.false_positive
        };
        let correct = rng.random_bool(found);
        judgments.push(Some(if correct { Correct } else { Incorrect }));
        let revised = if now {
            generator.right
        } else {
            generator.wrong
        };
        right.push(if correct {
            now
        } else {
            rng.random_bool(revised)
        });
    }
    path(&format!("{index}"), &right, &judgments)
}

#[test]
fn the_markov_chain_of_the_paper_comes_out_as_calculated() {
    const RUNS: u64 = 50_000;
    let mut ends = Vec::new();
    for (generator, judge) in [
        (WEAK, NONE),
        (WEAK, DULL),
        (WEAK, SHARP),
        (STRONG, NONE),
        (STRONG, DULL),
        (STRONG, SHARP),
    ] {
        let paths: Vec<Trajectory> = (0..RUNS)
            .map(|index| walk(generator, judge, index))
            .collect();
        let problems: Vec<Problem<'_>> = paths.iter().map(|one| vec![one]).collect();
        let mut expected = INITIALLY;
        for round in 0..=ROUNDS {
            let found = share(&problems, |one| one.right_after(round)).unwrap();
            // Five standard deviations of 50,000 draws.
            assert!(
                (found.value - expected).abs() < 0.0112,
                "round {round}: {found:?} {expected}"
            );
            if round > 0 {
                let down = SHARES
                    .iter()
                    .find(|(name, ..)| *name == "regression_rate")
                    .unwrap();
                let before = share(&problems, |one| one.right_after(round - 1))
                    .unwrap()
                    .value;
                let lost = before * (1.0 - judge.true_positive) * (1.0 - generator.right);
                let found = share(&problems, |one| (down.2)(one, round)).unwrap();
                assert!(
                    (found.value - lost).abs() < 0.0112,
                    "round {round}: {found:?} {lost}"
                );
            }
            expected = generator.step(expected, judge);
        }
        let last = share(&problems, |one| one.right_after(ROUNDS))
            .unwrap()
            .value;
        assert!((last - generator.limit(judge)).abs() < 0.06, "{last}");
        ends.push(last);
    }
    // The shape of the paper: judging well matters more to a weak generator, the sharper critic is better with
    // either, and a strong generator with a sharp critic is best of all.
    let [
        weak,
        weak_dull,
        weak_sharp,
        strong,
        strong_dull,
        strong_sharp,
    ] = ends[..]
    else {
        panic!("six chains")
    };
    assert!(weak < weak_dull && weak_dull < weak_sharp, "{ends:?}");
    assert!(
        strong < strong_dull && strong_dull < strong_sharp,
        "{ends:?}"
    );
    assert!(weak_sharp - weak > strong_sharp - strong, "{ends:?}");
}

#[test]
fn judgments_of_the_chain_have_the_f1_of_their_rates() {
    let paths: Vec<Trajectory> = (0..2_000).map(|index| walk(STRONG, SHARP, index)).collect();
    let measures = of_rounds(&paths);
    let (right, wrong) = (INITIALLY, 1.0 - INITIALLY);
    let hits = right * SHARP.true_positive;
    let claimed = hits + wrong * SHARP.false_positive;
    let found = measures["judgment_f1_correct/round-1"];
    let expected = 2.0 * hits / (right + claimed);
    assert!(
        found.low <= expected && expected <= found.high,
        "{found:?} {expected}"
    );
    let gain = measures[&format!("gain_over_start/round-{ROUNDS}")];
    assert!(gain.low > 2.0, "{gain:?}");
}

prop_compose! {
    fn any_path()(
        problem in 0u8..6,
        right in prop::collection::vec(any::<bool>(), 3),
        judged in prop::collection::vec(0u8..3, 2),
        weight in 1u8..4,
    ) -> Trajectory {
        let judgments: Vec<_> = judged.iter().map(|one| [None, Some(Correct), Some(Incorrect)][*one as usize]).collect();
        let mut path = path(&problem.to_string(), &right, &judgments);
        path.weight = 1.0 / f64::from(weight);
        path
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn the_parts_add_up(paths in prop::collection::vec(any_path(), 1..20)) {
        let measures = of_rounds(&paths);
        let at = |name: &str| measures[name].value;
        for round in 1..=2 {
            let change = at(&format!("pass_at_1/round-{round}")) - at(&format!("pass_at_1/round-{}", round - 1));
            let parts = at(&format!("delta_up/round-{round}")) - at(&format!("regression_rate/round-{round}"));
            prop_assert!((change - parts).abs() < 1e-9);
            let change = at(&format!("pass_at_1/round-{round}")) - at("pass_at_1/round-0");
            let parts = at(&format!("delta_up_from_start/round-{round}"))
                - at(&format!("delta_down_from_start/round-{round}"));
            prop_assert!((change - parts).abs() < 1e-9);
        }
        for (name, estimate) in &measures {
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high, "{}", name);
        }
    }
}
