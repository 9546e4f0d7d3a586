//! Whole episodes: by a model in both formats, and by rules.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use policy::{Conversation, MessagePolicy, PolicyError, ToolChoice};
use record::Said;
use repair::{
    action::{
        Action, ActionKind, Explore, MemoryAction, Operation, RepairAction, Selection, tool_schemas,
    },
    environment::{ObservationForm, StopReason},
    planner::PlannerKind,
    play::{Notes, StepNote},
    wire::{Reading, WireFormat, tool_call, write},
};

use crate::planner::stage::{MARKER, RIGHT, Stage, WRONG, block, task, tree};

/// See the failure, find, look around, read, keep, repair, submit.
fn actions() -> Vec<Action> {
    let explore = |explore| ActionKind::Explore(explore);
    let total = "func:calc/core.py:total:21".to_owned();
    let kinds = vec![
        ActionKind::RunFailedTest,
        explore(Explore {
            query: "symbol:total".to_owned(),
            ..Explore::default()
        }),
        explore(Explore {
            op: Operation::Expand,
            anchors: vec![code::graph::Anchor::id(&total)],
            ..Explore::default()
        }),
        explore(Explore {
            op: Operation::Read,
            nodes: vec![total.clone()],
            ..Explore::default()
        }),
        ActionKind::Memory(MemoryAction {
            target: code::graph::MemoryTarget::Explore,
            intent: code::graph::MemoryIntent::Commit,
            selection: Selection {
                select_ids: vec![total.clone()],
                note: Some("the slice drops the first".to_owned()),
                ..Selection::default()
            },
        }),
        ActionKind::Repair(RepairAction {
            plan: vec!["take all numbers".to_owned(), "not from 1 on".to_owned()],
            focus_ids: vec![total],
            ..RepairAction::default()
        }),
        ActionKind::Submit,
    ];
    kinds.into_iter().map(Action::new).collect()
}

fn script(format: WireFormat) -> Vec<String> {
    let actions = actions();
    actions.iter().map(|action| write(action, format)).collect()
}

fn errors(notes: &Notes) -> Vec<&str> {
    let steps = notes.steps.iter();
    steps
        .filter_map(|step| step.info["error"].as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_repairs_in_both_formats() {
    let mut played = Vec::new();
    for format in [WireFormat::Text, WireFormat::Tools] {
        let Some(mut stage) = Stage::new(&[RIGHT]).await else {
            return;
        };
        stage.config.planner.format = format;
        let before = tree(&stage.place.folder());
        let replies = script(format);
        let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
        let notes = stage.play(&replies).await;
        assert_eq!(errors(&notes), Vec::<&str>::new());
        assert!(notes.resolved && notes.repaired && !notes.gave_up);
        assert_eq!(notes.stop_reason, Some(StopReason::Submitted));
        let diff = format!("diff --git a/calc/core.py b/calc/core.py\n{RIGHT}");
        assert_eq!(notes.patch, diff);
        assert_eq!((notes.candidates, notes.test_runs), (1, 3));
        assert_eq!(notes.steps.len(), 7);
        let reward = notes.reward();
        assert!(
            (reward.total - (1.0 - 6.0 * 0.01)).abs() < 1e-9,
            "{reward:?}"
        );
        assert_eq!(reward.components["submit"], 1.0);
        assert_eq!(reward.components["resolved"], 1.0);
        // The repository of this machine is as it was, and nothing was written beside it.
        assert_eq!(tree(&stage.place.folder()), before);
        played.push((stage.patches.clone(), notes));
    }
    let [(text_patches, text), (tool_patches, tools)] = &played[..] else {
        unreachable!()
    };
    for (one, two) in text.steps.iter().zip(&tools.steps) {
        assert_eq!((&one.info, &one.observation), (&two.info, &two.observation));
        assert_eq!(one.action, two.action);
    }
    let asked = text_patches.asked.lock().unwrap();
    assert_eq!(
        asked[0].targets,
        tool_patches.asked.lock().unwrap()[0].targets
    );
    // Targets have paths and lines; the patch model has the code of what is kept, and the plan.
    let target = &asked[0].targets[0];
    assert_eq!(
        (target.path.as_str(), target.start, target.end),
        ("calc/core.py", 21, 26)
    );
    assert_eq!(target.why, "planner-focus");
    let plan = [
        "take all numbers",
        "not from 1 on",
        "Note: the slice drops the first",
    ];
    assert_eq!(asked[0].plan, plan);
    assert!(
        asked[0]
            .snippets
            .iter()
            .any(|it| it.text.contains("numbers[1:]"))
    );
    let kept = asked[0].graph.nodes.values().next().unwrap();
    assert!(kept.snippet_lines.join("\n").contains("numbers[1:]"));
}

/// Calls tools apart from its text, as servers of OpenAI's API do; or, where `in_text`, as those that know nothing of
/// tools.
struct Calls {
    in_text: bool,
    asked: Mutex<Vec<Conversation>>,
}

impl MessagePolicy for Calls {
    fn converse<'a>(
        &'a self,
        conversation: Conversation,
    ) -> BoxFuture<'a, Result<policy::Reply, PolicyError>> {
        let mut asked = self.asked.lock().unwrap();
        let action = &actions()[asked.len()];
        asked.push(conversation);
        let said = match self.in_text {
            true => Said {
                text: write(action, WireFormat::Tools),
                ..Said::default()
            },
            false => Said {
                text: "So be it.".to_owned(),
                tool_calls: vec![tool_call(action)],
                ..Said::default()
            },
        };
        let stop = record::StopReason::Stop;
        Box::pin(async move { Ok(policy::Reply { said, stop }) })
    }
}

/// Says the same each time, and ends at its limit of tokens where it is asked a second time.
struct Mumbles(Mutex<Vec<Conversation>>);

impl MessagePolicy for Mumbles {
    fn converse<'a>(
        &'a self,
        conversation: Conversation,
    ) -> BoxFuture<'a, Result<policy::Reply, PolicyError>> {
        let mut asked = self.0.lock().unwrap();
        let stop = match asked.len() {
            0 => record::StopReason::Stop,
            _ => record::StopReason::Length,
        };
        asked.push(conversation);
        let said = Said {
            text: "Let me think.".to_owned(),
            ..Said::default()
        };
        Box::pin(async move { Ok(policy::Reply { said, stop }) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_is_offered_tools_is_told_of_tool_calls_and_of_its_limit() {
    let Some(mut stage) = Stage::new(&[RIGHT]).await else {
        return;
    };
    let mumbles = Arc::new(Mumbles(Mutex::default()));
    stage.planner = Some(mumbles.clone());
    stage.config.planner.format = WireFormat::Tools;
    stage.config.planner.instructions = true;
    stage.config.environment.end.max_steps = Some(3);
    let notes = stage.play(&[]).await;
    let codes = ["missing-function-tag", "reply-cut-off", "reply-cut-off"];
    assert_eq!(errors(&notes), codes);
    let asked = std::mem::take(&mut *mumbles.0.lock().unwrap());
    let told = |at: usize| &asked[at].messages.last().unwrap().content;
    assert!(
        told(1).contains("the reply has no `tool_calls`"),
        "{}",
        told(1)
    );
    assert!(
        told(2).contains("cut off at its limit of tokens"),
        "{}",
        told(2)
    );
    for message in asked.iter().flat_map(|asked| &asked.messages) {
        assert!(!message.content.contains("<tool_call>"), "{message:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_behind_an_endpoint_is_given_tools_and_calls_them() {
    let mut played = Vec::new();
    for in_text in [false, true] {
        let Some(mut stage) = Stage::new(&[RIGHT]).await else {
            return;
        };
        let asked = Mutex::default();
        let calls = Arc::new(Calls { in_text, asked });
        stage.planner = Some(calls.clone());
        stage.config.planner.format = WireFormat::Tools;
        stage.config.planner.instructions = true;
        let notes = stage.play(&[]).await;
        assert_eq!(errors(&notes), Vec::<&str>::new());
        assert_eq!(notes.stop_reason, Some(StopReason::Submitted));
        let asked = std::mem::take(&mut *calls.asked.lock().unwrap());
        assert_eq!(asked.len(), notes.steps.len());
        for conversation in &asked {
            assert_eq!(conversation.tools, tool_schemas());
            assert_eq!(conversation.tool_choice, ToolChoice::Required);
            let system = &conversation.messages[0].content;
            assert!(system.contains("exactly one call"));
            let mut told = conversation.messages.iter();
            assert!(in_text || !told.any(|it| it.content.contains("<tool_call>")));
            assert!(!system.contains("<tool_call>"));
        }
        played.push(notes);
    }
    // What was called is told as if it had been written.
    for (apart, written) in played[0].steps.iter().zip(&played[1].steps) {
        assert_eq!(apart.action, written.action);
        let written = written.reply.as_ref().unwrap();
        assert_eq!(apart.reply, Some(format!("So be it.\n{written}")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observations_have_their_sections_in_order_and_their_budget() {
    let Some(mut stage) = Stage::new(&[RIGHT]).await else {
        return;
    };
    let replies = script(WireFormat::Text);
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let notes = stage.play(&replies).await;
    let headings = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(headings(&notes.begin), ["Issue", "Guidance"]);
    let found = &notes.steps[1].observation;
    let expected = [
        "Issue",
        "Recent steps",
        "Last result",
        "Guidance",
        "Candidates",
        "Working graph",
        "Snippets",
    ];
    assert_eq!(headings(found), expected);
    for part in [
        "2. find symbol:total: ",
        "func:calc/core.py:total:21 function calc/core.py:21-26 score=",
        "0024:     for number in numbers[1:]:",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
    let kept = &notes.steps[4].observation;
    assert!(
        kept.contains("[session:1]: the slice drops the first"),
        "{kept}"
    );
    assert!(kept.contains("M func:calc/core.py:total:21"), "{kept}");
    assert!(!headings(kept).contains(&"Guidance".to_owned()));
    // What a failing test says is shown; the test is not.
    let failed = &notes.steps[0].observation;
    assert!(
        failed.contains("AssertionError") && failed.contains("5 != 6"),
        "{failed}"
    );
    assert!(!serde_json::to_string(&notes).unwrap().contains(MARKER));

    for form in [ObservationForm::Prose, ObservationForm::Json] {
        for tokens in [400, 900, 4096] {
            stage.config.environment.observation.form = form;
            stage.config.environment.observation.tokens = tokens;
            let notes = stage.play(&replies[..5]).await;
            for step in &notes.steps {
                // One byte is one token of this policy.
                assert_eq!(step.observation_tokens, step.observation.len());
                assert!(step.observation_tokens <= tokens, "{}", step.observation);
            }
        }
    }
    let notes = stage.play(&replies[..2]).await;
    let text = &notes.steps[1].observation;
    let inside = text.strip_prefix("<observation for=\"explore\">").unwrap();
    let inside = inside.strip_suffix("</observation>").unwrap();
    let value: serde_json::Value = serde_json::from_str(inside).unwrap();
    assert_eq!(value["step"], 2);
    assert_eq!(
        value["candidates"][0].as_str().unwrap().split(' ').next(),
        Some("func:calc/core.py:total:21")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_repair_without_a_model_and_go_on_after_a_failure() {
    let Some(mut stage) = Stage::new(&[WRONG, WRONG, WRONG, RIGHT]).await else {
        return;
    };
    stage.config.planner.kind = PlannerKind::Rules;
    let notes = stage.play(&[]).await;
    let names: Vec<&str> = notes
        .steps
        .iter()
        .map(|step| step.action.as_ref().unwrap()["type"].as_str().unwrap())
        .collect();
    let round = ["memory", "explore", "repair"];
    let expected = [
        &["run_failed_test", "explore", "explore"][..],
        &round,
        &["repair", "repair", "explore"],
        &round,
        &["submit"],
    ];
    assert_eq!(names, expected.concat());
    assert!(notes.resolved && notes.stop_reason == Some(StopReason::Submitted));
    assert_eq!(notes.faults, [("test-failed".to_owned(), 3)].into());
    let asked = stage.patches.asked.lock().unwrap();
    assert_eq!(asked[0].targets[0].id, "func:calc/core.py:total:21");
    assert!(asked[0].feedback.is_empty());
    assert_eq!(asked[1].feedback[0].outcome, "test-failed");
    // Who wrote a patch of a place is asked for another one of it, and told what became of the first.
    assert_eq!(asked[1].targets, asked[0].targets);
    assert_eq!(asked[2].targets, asked[0].targets);
    let before = "Another patch than before: test-failed: the tests still fail";
    assert!(asked[1].plan.iter().any(|line| line == before));
    assert!(!asked[0].plan.iter().any(|line| line == before));
    assert_eq!(asked[2].feedback.len(), 2);
    // In the end what was tried is not the focus again.
    let ids =
        |at: usize| -> Vec<&str> { asked[at].targets.iter().map(|it| it.id.as_str()).collect() };
    assert!(
        ids(3).iter().all(|id| !ids(0).contains(id)),
        "{:?} {:?}",
        ids(0),
        ids(3)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_give_up_when_nothing_is_left() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.config.planner.kind = PlannerKind::Rules;
    let notes = stage.play(&[]).await;
    assert!(notes.gave_up && !notes.resolved && notes.patch.is_empty());
    assert!(notes.steps.len() < 40, "{}", notes.steps.len());
    assert_eq!(notes.steps.last().unwrap().components["failure"], -1.0);
    assert!(notes.reward().total < 0.0);
    assert!(notes.faults["cgm-empty"] > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_stand_in_only_where_asked_and_are_told() {
    let Some(mut stage) = Stage::new(&[RIGHT]).await else {
        return;
    };
    stage.config.environment.end.max_steps = Some(4);
    let notes = stage.play(&["no action"]).await;
    assert_eq!(errors(&notes), ["missing-function-tag"; 4]);
    assert!(notes.steps.iter().all(|step| step.fallback.is_none()));
    assert_eq!(notes.reward().components["invalid"], -0.2);
    stage.config.planner.rule_fallback = true;
    stage.config.environment.end.max_steps = None;
    let notes = stage.play(&["no action"]).await;
    assert!(notes.resolved, "{:?}", errors(&notes));
    for step in &notes.steps {
        let told = step.fallback.as_deref().unwrap();
        assert!(told.starts_with("missing-function-tag"), "{told}");
        assert!(step.reply.is_some() && step.call.is_some());
    }
    // Where rules have nothing left to try, they end nothing: the model is asked to its last step.
    let Some(mut hopeless) = Stage::new(&[]).await else {
        return;
    };
    hopeless.config.planner.rule_fallback = true;
    let notes = hopeless.play(&["no action"]).await;
    assert_eq!(notes.stop_reason, Some(StopReason::MaxSteps));
    let is_by_rule = |step: &StepNote| step.fallback.is_some();
    assert!(notes.steps.first().is_some_and(is_by_rule));
    let last = notes.steps.last().unwrap();
    assert!(!is_by_rule(last) && last.action.is_none() && last.call.is_some());
    let submits = |step: &StepNote| step.info["submit"] == true;
    assert!(!notes.gave_up && !notes.steps.iter().any(submits));
    stage.config.planner.rule_fallback = false;
    stage.config.planner.reading = Reading::Tolerant;
    stage.config.environment.end.max_steps = Some(2);
    let notes = stage.play(&["no action"]).await;
    assert_eq!(errors(&notes), Vec::<&str>::new());
    assert_eq!(notes.steps[0].info["kind"], "noop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_that_fails_leaves_all_as_it_was_and_one_that_works_moves_the_graph() {
    let Some(mut stage) = Stage::new(&[WRONG, RIGHT]).await else {
        return;
    };
    stage.config.environment.end.verified_repair = true;
    let commit = block(
        "memory",
        &[
            ("intent", "commit"),
            ("selector", "[\"func:calc/core.py:total\"]"),
        ],
    );
    let repair = block("repair", &[("subplan", "take all")]);
    let grep = block(
        "explore",
        &[
            ("op", "grep"),
            ("pattern", "numbers["),
            ("path_glob", "calc/*.py"),
        ],
    );
    let noted = block("repair", &[("subplan", "take all"), ("apply", "no")]);
    let replies = [&commit, &noted, &repair, &grep, &repair].map(String::as_str);
    let notes = stage.play(&replies).await;
    let infos: Vec<_> = notes.steps.iter().map(|step| &step.info).collect();
    assert_eq!(infos[1]["summary"], "the plan is noted");
    assert_eq!(infos[2]["error"], "test-failed");
    assert_eq!(infos[2]["no_repair"], true);
    assert_eq!(infos[2]["plan_targets"][0]["why"], "memory");
    // Rolled back: the line is what it was.
    assert_eq!(infos[3]["matches"][0]["line"], 24);
    assert_eq!(infos[3]["n_matches"], 1);
    assert_eq!(
        (infos[4]["success"].clone(), infos[4]["stop_reason"].clone()),
        (true.into(), "repaired".into())
    );
    assert_eq!(notes.steps.len(), 5);
    assert_eq!(notes.steps[4].components["submit"], 1.0);
    assert!(notes.resolved);

    // Without that ending, what is read after a repair is what the repair wrote.
    stage.config.environment.end.verified_repair = false;
    stage.patches = crate::planner::stage::Patches::of(&[RIGHT]);
    let read = block(
        "explore",
        &[("op", "read"), ("nodes", "func:calc/core.py:total")],
    );
    let notes = stage
        .play(&[&commit, &repair, &read, &grep].map(String::as_str))
        .await;
    let seen = notes.steps[2].info["results"][0]["snippet"].to_string();
    assert!(seen.contains("in numbers:"), "{seen}");
    assert_eq!(notes.steps[3].info["n_matches"], 0);
    // It was kept and never submitted: the tests were asked at the end.
    assert!(notes.resolved && notes.stop_reason == Some(StopReason::MaxSteps));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_are_no_targets_and_success_is_what_tests_say() {
    let Some(stage) = Stage::new(&[WRONG]).await else {
        return;
    };
    let commit = block(
        "memory",
        &[
            ("intent", "commit"),
            ("selector", "[\"func:calc/core.py:total\"]"),
        ],
    );
    let on = |id: &str| block("repair", &[("subplan", "mend"), ("focus_ids", id)]);
    let submit = block("submit", &[]);
    let replies = [
        commit,
        on("file:tests/test_counter.py"),
        on("file:tests/test_core.py"),
        on("func:calc/none.py:x"),
        submit.clone(),
        submit,
    ];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let notes = stage.play(&replies).await;
    let expected = ["guarded-test", "guarded-test", "unknown-node"];
    assert_eq!(errors(&notes)[..3], expected);
    assert_eq!(stage.patches.asked.lock().unwrap().len(), 0);
    // A submit whose tests fail costs, does not end the episode, and is no success.
    for at in [4, 5] {
        assert_eq!(notes.steps[at].reward, -1.0);
        assert_eq!(notes.steps[at].info["tests"]["passed"], false);
        assert_eq!(notes.steps[at].info["done"], false);
    }
    assert!(!notes.resolved);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn episodes_at_the_same_time_have_worlds_of_their_own_and_the_same_notes_again() {
    let other = [
        ("calc/other.py", "def only_here():\n    return 1\n"),
        ("tests/test_core.py", ""),
    ];
    let (Some(one), Some(two)) = (Stage::new(&[RIGHT]).await, Stage::of(&other, &[]).await) else {
        return;
    };
    let find = block("explore", &[("query", "symbol:only_here")]);
    let replies = script(WireFormat::Text);
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let (task_one, task_two) = (task("one"), task("two"));
    let two_replies = [find.as_str()];
    let (first, second) = tokio::join!(
        one.play_task(&task_one, &replies),
        two.play_task(&task_two, &two_replies),
    );
    assert!(first.resolved);
    assert_eq!(
        second.steps[0].info["candidates"][0],
        "func:calc/other.py:only_here:1"
    );
    let stage = Stage::new(&[RIGHT]).await.unwrap();
    assert_eq!(stage.play(&replies).await, first);
    // Without the word of the other repository.
    let notes = stage.play(&two_replies).await;
    assert_eq!(notes.steps[0].info["n_candidates"], 0);
}
