//! Episodes through the real repair loop and the search: from an issue to a verified patch.

use std::{collections::BTreeSet, sync::Arc};

use record::LineLog;
use repair::{
    Issue,
    environment::StopReason,
    patch_model::RecordedPatcher,
    planner::PlannerKind,
    repair_loop::{LoopSettings, RepairLoop},
    repairer::Repairer,
    search::{Search, SearchSettings},
};

use super::stage::{CORE, Stage, block, files, task, tree};

fn searching(budget: usize) -> Arc<dyn Repairer> {
    let settings = SearchSettings {
        budget,
        ..SearchSettings::default()
    };
    Arc::new(RepairLoop {
        model: Arc::new(Search::new(settings).unwrap()),
        settings: LoopSettings::default(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_and_search_mend_what_the_tests_show() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.repairer = Some(searching(60));
    stage.config.planner.kind = PlannerKind::Rules;
    let before = tree(&stage.place.folder());
    let notes = stage.play(&[]).await;
    assert!(
        notes.resolved && notes.repaired,
        "{:?}",
        notes.steps.last().unwrap().info
    );
    assert_eq!(notes.stop_reason, Some(StopReason::Submitted));
    assert!(
        notes.patch.contains("-    for number in numbers[1:]:\n"),
        "{}",
        notes.patch
    );
    assert!((1..=60).contains(&notes.candidates), "{}", notes.candidates);
    assert!(notes.test_runs > notes.candidates);
    assert_eq!(tree(&stage.place.folder()), before);
    // The same again, to the last word; every run of tests has a line, and every candidate at least one.
    let (again, lines) = stage.play_logged(&task("one"), &[]).await;
    assert_eq!(again, notes);
    let of = |log: LineLog| lines.iter().filter(move |line| line.log == log);
    assert_eq!(of(LineLog::TestRuns).count(), notes.test_runs);
    let numbers: BTreeSet<u64> = of(LineLog::TestRuns)
        .filter_map(|line| line.fields.get("candidate")?["number"].as_u64())
        .collect();
    assert_eq!(numbers, (1..=notes.candidates as u64).collect());
    let kinds: Vec<&str> = of(LineLog::Events).map(|line| line.kind.as_str()).collect();
    assert_eq!(kinds.len(), notes.steps.len() + 1);
    assert_eq!(kinds.last(), Some(&"planner_ended"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_look_at_what_is_used_most_where_the_issue_says_nothing() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.repairer = Some(searching(60));
    stage.config.planner.kind = PlannerKind::Rules;
    let mut silent = task("silent");
    silent.public.issue = Issue::default();
    let notes = stage.play_task(&silent, &[]).await;
    assert!(notes.resolved, "{:?}", notes.steps.last().unwrap().info);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_that_has_no_more_candidates_ends_the_episode() {
    // Two mistakes in one function: no single edit mends both.
    let twice = CORE.replace("result = 0", "result = 7");
    let mut files = files();
    for (path, text) in &mut files {
        if *path == "calc/core.py" {
            *text = &twice;
        }
    }
    let Some(mut stage) = Stage::of(&files, &[]).await else {
        return;
    };
    stage.config.planner.kind = PlannerKind::Rules;
    let ends = [
        (5, StopReason::BudgetSpent, "budget-spent"),
        (
            5000,
            StopReason::CandidatesExhausted,
            "candidates-exhausted",
        ),
    ];
    for (budget, stop_reason, code) in ends {
        stage.repairer = Some(searching(budget));
        let notes = stage.play(&[]).await;
        assert_eq!(notes.stop_reason, Some(stop_reason));
        assert!(!notes.resolved && notes.patch.is_empty());
        let repairs = notes
            .steps
            .iter()
            .filter(|step| step.info["kind"] == "repair");
        assert_eq!(repairs.count(), 1);
        assert_eq!(notes.faults[code], 1);
        assert_eq!(notes.candidates == budget, budget == 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_that_is_refused_is_followed_by_candidates_that_were_not_run() {
    // Two mistakes, each with a failing test: what mends one is proposed, and refused, as both have to pass.
    let twice = CORE.replace("step = 1", "step = 2");
    let mut files = files();
    for (path, text) in &mut files {
        if *path == "calc/core.py" {
            *text = &twice;
        }
    }
    let Some(mut stage) = Stage::of(&files, &[]).await else {
        return;
    };
    stage.repairer = Some(searching(5000));
    stage.config.planner.kind = PlannerKind::Rules;
    let mut both = task("both");
    let checks = &mut both.checks;
    checks.fail_to_pass.append(&mut checks.pass_to_pass);
    let (notes, lines) = stage.play_logged(&both, &[]).await;
    assert!(!notes.resolved);
    let steps = notes
        .steps
        .iter()
        .filter(|step| step.info["kind"] == "repair");
    let steps: Vec<_> = steps.map(|step| &step.info).collect();
    assert!(steps.len() > 1, "{steps:?}");
    assert!(steps.iter().all(|info| info["error"] != "duplicate-patch"));
    // Of a step, and of the episode to its end.
    let mut so_far = 0;
    for info in &steps {
        so_far += info["candidates"].as_u64().unwrap();
        assert_eq!(info["candidates_so_far"], so_far);
    }
    assert_eq!(notes.candidates as u64, so_far);
    // Only what mends a failing test is run a second time, against the others.
    let unmended = lines.iter().filter_map(|line| {
        let candidate = line.fields.get("candidate")?;
        (candidate["fate"] == "unmended").then(|| candidate["number"].as_u64().unwrap())
    });
    let unmended: Vec<u64> = unmended.collect();
    let different: BTreeSet<&u64> = unmended.iter().collect();
    assert_eq!(different.len(), unmended.len(), "{unmended:?}");
    let patches: Vec<&serde_json::Value> = steps.iter().map(|info| &info["patch"]).collect();
    let kept = patches.iter().filter(|patch| **patch != "").count();
    let different: BTreeSet<String> = patches
        .iter()
        .filter(|patch| **patch != "")
        .map(ToString::to_string)
        .collect();
    assert_eq!(different.len(), kept, "{patches:?}");
    // The same again, to the last word.
    assert_eq!(stage.play_task(&both, &[]).await, notes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repairs_one_after_the_other_are_one_patch() {
    // The second mistake is in what only the other test runs.
    let twice = CORE.replace("step = 1", "step = 2");
    let mut files = files();
    for (path, text) in &mut files {
        if *path == "calc/core.py" {
            *text = &twice;
        }
    }
    let Some(stage) = Stage::of(&files, &[FIRST, SECOND]).await else {
        return;
    };
    let mut lenient = task("twice");
    lenient.checks.pass_to_pass.clear();
    let repair = block(
        "repair",
        &[
            ("subplan", "mend"),
            ("focus_ids", "[\"file:calc/core.py\"]"),
        ],
    );
    let find = block("explore", &[("query", "symbol:total")]);
    let commit = block("memory", &[("intent", "commit")]);
    let replies = [&find, &commit, &repair, &repair, &block("submit", &[])];
    let replies: Vec<&str> = replies.iter().map(|reply| reply.as_str()).collect();
    let notes = stage.play_task(&lenient, &replies).await;
    assert!(notes.resolved);
    assert_eq!(notes.patch.matches("--- a/calc/core.py").count(), 1);
    assert_eq!(notes.patch.matches("\n@@ ").count(), 2, "{}", notes.patch);
    let patch = code::Patch::parse(notes.patch.as_bytes()).unwrap();
    let path = code::RelativePath::new("calc/core.py").unwrap();
    let known = [(path, Some(twice.clone().into_bytes()))].into();
    let applied = patch.apply(&known).unwrap();
    let [code::patch::FileChange::Write { content, .. }] = applied.changes.as_slice() else {
        panic!("{:?}", applied.changes);
    };
    let right = CORE.replace("numbers[1:]", "numbers");
    assert_eq!(String::from_utf8_lossy(content), right);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_that_is_refused_again_is_told_as_that_and_is_no_candidate() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.config.planner.kind = PlannerKind::Rules;
    let refused =
        r#"{"edits": [{"path": "calc/cor.py", "start": 24, "end": 24, "new_text": "x = 1\n"}]}"#;
    stage.repairer = Some(Arc::new(RepairLoop {
        model: Arc::new(RecordedPatcher::new(vec![refused.to_owned(); 40])),
        settings: LoopSettings::default(),
    }));
    let notes = stage.play(&[]).await;
    let errors = notes.steps.iter();
    let errors = errors.filter_map(|step| step.info["error"].as_str());
    let errors: Vec<&str> = errors.filter(|code| *code != "unknown-node").collect();
    let again = "duplicate-patch";
    // One to each round of the rules, which give up after so many.
    assert_eq!(errors, ["path-missing", again, again, again]);
    assert!(notes.gave_up && notes.candidates == 0);
    let told = notes
        .steps
        .iter()
        .find(|step| step.info["error"] == again)
        .unwrap();
    let detail = told.info["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("this very patch was refused before, path-missing"),
        "{detail}"
    );
}

const FIRST: &str = "\
--- a/calc/core.py
+++ b/calc/core.py
@@ -24,3 +24,3 @@
-    for number in numbers[1:]:
+    for number in numbers:
         result += number
     return result
";

const SECOND: &str = "\
--- a/calc/core.py
+++ b/calc/core.py
@@ -5,3 +5,3 @@
     \"\"\"Counts up.\"\"\"
\x20
-    step = 2
+    step = 1
";
