//! Planners that turn in circles.

use repair::environment::GuardConfig;

use crate::planner::stage::{Stage, block};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_over_and_over_is_refused_or_replaced() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.config.environment.guards = GuardConfig::default();
    let find = |query: &str| block("explore", &[("query", query)]);
    let thinking = block("noop", &[("thought", "again")]);
    let replies = [
        block("noop", &[]),
        thinking.clone(),
        thinking.clone(),
        thinking,
        find("symbol:total"),
        find("symbol:total"),
        find("symbol:qqqq path:zzzz"),
        find("symbol:qqqq path:zzzz"),
        block("repair", &[("subplan", "mend it")]),
    ];
    stage.config.environment.end.max_steps = Some(replies.len() as u32);
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let notes = stage.play(&replies).await;
    let info = |at: usize| &notes.steps[at].info;
    // The third in a row, whatever was thought; and the fourth.
    let errors: Vec<Option<&str>> = (0..4).map(|at| info(at)["error"].as_str()).collect();
    let repeated = Some("repeated-action");
    assert_eq!(errors, [None, None, repeated, repeated]);
    assert_eq!(notes.steps[2].reward, -0.1);
    assert_eq!(info(5)["replaced"]["skipped_reason"], "repeated_find");
    assert_eq!(info(5)["op"], "expand");
    assert_eq!(info(6)["n_candidates"], 0);
    assert_eq!(info(7)["replaced"]["skipped_reason"], "repeated_empty_find");
    assert_eq!(info(7)["replaced"]["to"], "find qqqq zzzz");
    assert_eq!(
        info(8)["replaced"]["skipped_reason"],
        "empty_memory_subgraph"
    );
    assert_eq!(
        info(8)["replaced"]["to"],
        "find total leaves out the first number"
    );
    assert_eq!(info(8)["candidates"][0], "func:calc/core.py:total:21");
    assert!(notes.steps[8].observation.contains("empty_memory_subgraph"));
    assert!(stage.patches.asked.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_that_bring_nothing_new_lead_on() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.config.environment.guards = GuardConfig::default();
    let find = |query: &str| block("explore", &[("query", query)]);
    let expand = block(
        "explore",
        &[
            ("op", "expand"),
            ("nodes", "func:calc/core.py:total"),
            ("hop", "0"),
        ],
    );
    let replies = [
        find("symbol:total"),
        find("total sum"),
        expand.clone(),
        find("total number"),
    ];
    let more = [find("sum total"), expand, find("numbers total")];
    let replies: Vec<&str> = replies.iter().chain(&more).map(String::as_str).collect();
    stage.config.environment.end.max_steps = Some(replies.len() as u32);
    let notes = stage.play(&replies).await;
    let third = &notes.steps[3].info;
    assert_eq!(
        third["replaced"]["skipped_reason"], "nothing_new",
        "{third}"
    );
    assert_eq!(
        (third["kind"].clone(), third["delta_memory_nodes"].clone()),
        ("memory".into(), 1.into())
    );
    // With something in memory, another candidate is expanded.
    let last = &notes.steps[6].info;
    assert_eq!(last["op"], "find", "one candidate has no other: {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_was_read_is_kept_where_that_is_asked_for() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.config.environment.guards.commit_needs_read = true;
    stage.config.environment.end.max_steps = Some(3);
    let commit = block(
        "memory",
        &[
            ("intent", "commit"),
            ("selector", "[\"func:calc/core.py:total\"]"),
        ],
    );
    let read = block(
        "explore",
        &[("op", "read"), ("nodes", "func:calc/core.py:total:21")],
    );
    let notes = stage
        .play(&[&commit, &read, &commit].map(String::as_str))
        .await;
    assert_eq!(notes.steps[0].info["error"], "unread-node");
    assert_eq!(notes.steps[2].info["delta_memory_nodes"], 1);
}
