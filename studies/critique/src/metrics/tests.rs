//! Hand-computed values and properties of the measures.

use proptest::prelude::*;

use super::*;

fn item(task: &str, before: bool, after: bool, judgment: Option<Judgment>) -> Item {
    Item {
        problem: task.to_owned(),
        initially_right: before,
        finally_right: after,
        judgment,
        gate_ok: judgment.is_some(),
        exact: Some(!before && after),
        criticised: true,
    }
}

#[test]
fn bookkeeping_of_the_golden_vector() {
    // Spec of the critique study, section 11: initial [1,0,0,1], final [1,1,0,0].
    let items: Vec<Item> = [(true, true), (false, true), (false, false), (true, false)]
        .into_iter()
        .enumerate()
        .map(|(i, (before, after))| item(&i.to_string(), before, after, Some(Judgment::Correct)))
        .collect();
    for measures in [of_step(&items), values(&of_evaluation(&items))] {
        assert_eq!(measures["pass_at_1"], 0.5);
        assert_eq!(measures["initial_pass_at_1"], 0.5);
        assert_eq!(measures["delta_up"], 0.25);
        assert_eq!(measures["delta_down"], 0.25);
        assert_eq!(measures["fix_rate"], 0.5);
        assert_eq!(measures["break_rate"], 0.5);
        assert_eq!(measures["exact_on_wrong"], 0.5);
    }
}

#[test]
fn judgments_by_hand() {
    use Judgment::{Correct, Incorrect};
    // Right: Correct, Correct, Incorrect, none. Wrong: Incorrect, Correct.
    let items = [
        item("a", true, true, Some(Correct)),
        item("b", true, true, Some(Correct)),
        item("c", true, true, Some(Incorrect)),
        item("d", true, true, None),
        item("e", false, true, Some(Incorrect)),
        item("f", false, false, Some(Correct)),
    ];
    let measures = of_step(&items);
    assert_eq!(measures["judgment_accuracy"], 0.5);
    assert_eq!(measures["judgment_accuracy_on_right"], 0.5);
    assert_eq!(measures["judgment_accuracy_on_wrong"], 0.5);
    // Correct: 2 hits, 4 members, 3 claims: 4/7. Incorrect: 1 hit, 2 members, 2 claims: 1/2.
    assert!((measures["judgment_f1_correct"] - 4.0 / 7.0).abs() < 1e-12);
    assert_eq!(measures["judgment_f1_incorrect"], 0.5);
    assert!((measures["judgment_f1"] - (4.0 / 7.0 + 0.5) / 2.0).abs() < 1e-12);
    assert!((measures["gate_fail_rate"] - 1.0 / 6.0).abs() < 1e-12);
}

#[test]
fn a_measure_without_items_is_absent() {
    let right = [item("a", true, true, Some(Judgment::Correct))];
    let measures = of_evaluation(&right);
    for absent in [
        "fix_rate",
        "judgment_accuracy_on_wrong",
        "exact_on_wrong",
        "judgment_f1_incorrect",
    ] {
        assert!(!measures.contains_key(absent), "{absent}");
    }
    assert_eq!(measures["judgment_f1"].value, 1.0);
    assert!(of_evaluation(&[]).is_empty() && of_step(&[]).is_empty());
}

#[test]
fn eight_samples_of_a_task_that_agree_narrow_nothing() {
    let tasks: Vec<Item> = (0..50)
        .map(|i| item(&i.to_string(), false, i % 2 == 0, Some(Judgment::Incorrect)))
        .collect();
    let samples: Vec<Item> = tasks
        .iter()
        .flat_map(|item| vec![item.clone(); 8])
        .collect();
    let (one, eight) = (
        of_evaluation(&tasks)["pass_at_1"],
        of_evaluation(&samples)["pass_at_1"],
    );
    assert_eq!(one.value, eight.value);
    assert!(
        ((eight.high - eight.low) - (one.high - one.low)).abs() < 0.005,
        "{one:?} {eight:?}"
    );
}

fn values(measures: &BTreeMap<String, Estimate>) -> BTreeMap<String, f64> {
    measures
        .iter()
        .map(|(name, estimate)| (name.clone(), estimate.value))
        .collect()
}

prop_compose! {
    fn any_item()(task in 0u8..12, before: bool, after: bool, judgment in 0u8..3) -> Item {
        let judgment = [None, Some(Judgment::Correct), Some(Judgment::Incorrect)][judgment as usize];
        item(&task.to_string(), before, after, judgment)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_parts_add_up_and_order_does_not_matter(
        items in prop::collection::vec(any_item(), 1..40)
    ) {
        let found = of_evaluation(&items);
        let point = of_step(&items);
        prop_assert_eq!(found.keys().collect::<Vec<_>>(), point.keys().collect::<Vec<_>>());
        for (name, estimate) in &found {
            prop_assert!((estimate.value - point[name]).abs() < 1e-9, "{}", name);
            prop_assert!(0.0 <= estimate.low && estimate.low <= estimate.value);
            prop_assert!(estimate.value <= estimate.high && estimate.high <= 1.0);
        }
        let gain = point["pass_at_1"] - point["initial_pass_at_1"];
        prop_assert!((gain - (point["delta_up"] - point["delta_down"])).abs() < 1e-9);
        let mut backwards = items.clone();
        backwards.reverse();
        prop_assert_eq!(of_evaluation(&backwards), found);
    }
}
