//! Repairs in steps: a proposal is seen, revised, submitted or dropped, through the real repair loop.

use std::sync::Arc;

use repair::{
    action::{Action, ActionKind, Evidence, ProposalAction, RepairAction},
    environment::StopReason,
    patch_model::{PatchModel, RecordedPatcher},
    play::Notes,
    repair_loop::{LoopSettings, RepairLoop},
    search::{Search, SearchSettings},
    wire::{WireFormat, write},
};

use super::stage::{RIGHT, Stage, WRONG, tree};

const TOTAL: &str = "func:calc/core.py:total:21";

fn propose() -> ProposalAction {
    let evidence = |node_id: &str| Evidence {
        node_id: node_id.to_owned(),
        ..Evidence::default()
    };
    ProposalAction::Propose(RepairAction {
        plan: vec!["take all numbers".to_owned()],
        focus_ids: vec![TOTAL.to_owned()],
        failure_seen: "5 is not 6".to_owned(),
        evidence: vec![evidence(TOTAL), evidence("file:calc/core.py")],
        confidence: Some(0.8),
        ..RepairAction::default()
    })
}

fn revise() -> ProposalAction {
    ProposalAction::Revise("that drops two numbers".to_owned())
}

/// Plays these steps in the tools' format, with a patch model that answers in this order; what came of it, and
/// whether the checkout is as it was.
async fn play(steps: &[ProposalAction], answers: &[&str]) -> Option<Notes> {
    let answers = answers.iter().map(|answer| (*answer).to_owned());
    play_with(steps, Arc::new(RecordedPatcher::new(answers))).await
}

async fn play_with(steps: &[ProposalAction], model: Arc<dyn PatchModel>) -> Option<Notes> {
    let mut stage = Stage::new(&[]).await?;
    stage.config.planner.format = WireFormat::Tools;
    stage.config.environment.guards.repair_needs_memory = false;
    stage.config.environment.end.max_steps = Some(u32::try_from(steps.len()).unwrap());
    stage.repairer = Some(Arc::new(RepairLoop {
        model,
        settings: LoopSettings::default(),
    }));
    let before = tree(&stage.place.folder());
    let replies: Vec<String> = steps
        .iter()
        .map(|step| Action::new(ActionKind::Proposal(step.clone())))
        .map(|action| write(&action, WireFormat::Tools))
        .collect();
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let notes = stage.play(&replies).await;
    assert_eq!(tree(&stage.place.folder()), before);
    Some(notes)
}

fn errors(notes: &Notes) -> Vec<&str> {
    let steps = notes.steps.iter();
    steps
        .map(|step| step.info["error"].as_str().unwrap_or("-"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proposal_is_shown_untested_revised_and_submitted() {
    let steps = [propose(), revise(), ProposalAction::Submit];
    let Some(notes) = play(&steps, &[WRONG, RIGHT]).await else {
        return;
    };
    assert_eq!(errors(&notes), ["-", "-", "-"]);
    let [first, second, last] = &notes.steps[..] else {
        panic!("{}", notes.steps.len())
    };
    for (step, line) in [(first, "numbers[2:]"), (second, "in numbers:")] {
        let patch = step.info["patch"].as_str().unwrap();
        assert!(patch.contains(line), "{patch}");
        assert!(step.info.get("tests").is_none(), "{}", step.info);
        assert_eq!(step.info["applied"], false);
        assert!(step.observation.contains(line), "{}", step.observation);
    }
    assert_eq!(last.info["tests"]["passed"], true);
    assert_eq!(notes.stop_reason, Some(StopReason::Repaired));
    assert!(notes.resolved && notes.repaired);
    assert_eq!(notes.reward().components["submit"], 1.0);
    assert!(notes.patch.contains("+    for number in numbers:\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_of_what_a_search_found_is_no_other_candidate() {
    let steps = [propose(), ProposalAction::Submit];
    let Some(notes) = play(&steps, &[RIGHT]).await else {
        return;
    };
    let counted = |notes: &Notes| -> Vec<u64> {
        let steps = notes.steps.iter();
        steps
            .map(|step| step.info["candidates"].as_u64().unwrap())
            .collect()
    };
    // Nobody has run the patch of a model before.
    assert_eq!(counted(&notes), [0, 1]);

    let search = Search::new(SearchSettings::default()).unwrap();
    let Some(notes) = play_with(&steps, Arc::new(search)).await else {
        return;
    };
    assert!(notes.resolved, "{:?}", errors(&notes));
    let [found, checked] = counted(&notes)[..] else {
        panic!("{}", notes.steps.len())
    };
    assert!(found > 0);
    assert_eq!((checked, notes.candidates as u64), (0, found));
    assert!(notes.steps[1].info["test_runs"].as_u64().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submitted_proposal_whose_tests_fail_is_undone_and_gone() {
    let steps = [
        propose(),
        ProposalAction::Submit,
        ProposalAction::Submit,
        propose(),
        ProposalAction::Submit,
    ];
    let Some(notes) = play(&steps, &[WRONG, RIGHT]).await else {
        return;
    };
    assert_eq!(
        errors(&notes),
        ["-", "build-failed", "no-proposal", "-", "-"]
    );
    assert_eq!(notes.steps[1].info["no_repair"], true);
    assert!(notes.resolved);
    assert!(!notes.patch.contains("numbers[2:]"), "{}", notes.patch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_proposed_cannot_be_revised_submitted_or_dropped() {
    let steps = [
        revise(),
        ProposalAction::Submit,
        ProposalAction::Discard,
        propose(),
        ProposalAction::Discard,
        ProposalAction::Submit,
    ];
    let Some(notes) = play(&steps, &[RIGHT]).await else {
        return;
    };
    let none = "no-proposal";
    assert_eq!(errors(&notes), [none, none, none, "-", "-", none]);
    assert!(!notes.resolved && notes.patch.is_empty());
    assert_eq!(notes.test_runs, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proposals_that_cannot_be_applied_have_their_codes() {
    let test_file = "--- a/tests/test_core.py\n+++ b/tests/test_core.py\n@@ -1 +1 @@\n-import unittest\n+import os\n";
    let steps = [propose(), propose(), propose(), propose()];
    // The same patch again, after the planner wanted another, is none.
    let steps = [&steps[..], &[revise()]].concat();
    let Some(notes) = play(
        &steps,
        &["I would change line 24.", test_file, "", RIGHT, RIGHT],
    )
    .await
    else {
        return;
    };
    let found = errors(&notes);
    assert_eq!(found[0], "invalid-unified-diff");
    assert_ne!(found[1], "-");
    assert_eq!(found[2], "cgm-empty");
    assert_eq!(found[3..], ["-", "duplicate-patch"]);
    assert!(!notes.resolved);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_waits_for_a_failure_that_was_seen_where_that_is_asked_for() {
    let Some(mut stage) = Stage::new(&[RIGHT]).await else {
        return;
    };
    stage.config.environment.guards.repair_needs_memory = false;
    stage.config.environment.guards.repair_needs_failure = true;
    let ProposalAction::Propose(repair) = propose() else {
        unreachable!()
    };
    let kinds = [
        ActionKind::Repair(repair.clone()),
        ActionKind::RunFailedTest,
        ActionKind::Repair(repair),
        ActionKind::Submit,
    ];
    let replies: Vec<String> = kinds
        .into_iter()
        .map(|kind| write(&Action::new(kind), WireFormat::Text))
        .collect();
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let notes = stage.play(&replies).await;
    assert_eq!(errors(&notes), ["unseen-failure", "-", "-", "-"]);
    assert!(notes.resolved);
}
