//! What explorations show, and what they never show.

use serde_json::Value;

use crate::planner::stage::{MARKER, Stage, block};

async fn infos(stage: &Stage, replies: &[String]) -> Vec<Value> {
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let notes = stage.play(&replies).await;
    assert!(!serde_json::to_string(&notes).unwrap().contains(MARKER));
    notes.steps.into_iter().map(|step| step.info).collect()
}

fn ids(info: &Value) -> Vec<&str> {
    let list = info["candidates"].as_array().unwrap();
    list.iter().map(|id| id.as_str().unwrap()).collect()
}

const TOTAL: &str = "func:calc/core.py:total:21";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn find_expand_read_and_grep_do_what_they_say() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    stage.config.environment.end.max_steps = Some(18);
    let explore = |params: &[(&str, &str)]| block("explore", params);
    let anchor = format!("[{{\"id\": \"{TOTAL}\"}}]");
    let expand = |more: &[(&str, &str)]| {
        let base = [("op", "expand"), ("anchors", anchor.as_str())];
        explore(&[&base, more].concat())
    };
    let replies = [
        explore(&[("query", "symbol:later")]),
        explore(&[("anchors", "[{\"kind\": \"class\", \"text\": \"Counter\"}]")]),
        explore(&[("query", "nothing is called so"), ("path_glob", "calc/*")]),
        explore(&[("query", "+absent symbol:total")]),
        expand(&[("hop", "0")]),
        expand(&[("hop", "1"), ("max_per_anchor", "3")]),
        expand(&[("hop", "2")]),
        expand(&[("expand_mode", "callers")]),
        explore(&[
            ("op", "expand"),
            ("nodes", "func:calc/report.py:mean"),
            ("expand_mode", "callees"),
        ]),
        explore(&[("op", "read"), ("nodes", TOTAL), ("limit", "900")]),
        explore(&[("op", "read"), ("nodes", TOTAL), ("view", "around_line:3")]),
        explore(&[
            ("op", "read"),
            ("nodes", "class:calc/core.py:Counter:4"),
            ("view", "header"),
        ]),
        explore(&[
            ("op", "read"),
            ("nodes", "file:calc/core.py"),
            ("view", "file_window:21-22"),
        ]),
        explore(&[
            ("op", "grep"),
            ("pattern", "def \\w+\\(numbers"),
            ("regex", "yes"),
            ("context_lines", "0"),
        ]),
        explore(&[("op", "grep"), ("pattern", "("), ("regex", "true")]),
        explore(&[("op", "read"), ("nodes", "func:calc/core.py:nobody")]),
        explore(&[("query", "number"), ("find_type", "method")]),
        explore(&[
            ("query", "step value up"),
            ("find_type", "method"),
            ("class_name", "Counter"),
        ]),
    ];
    let infos = infos(&stage, &replies).await;
    // Async functions are there too.
    assert_eq!(ids(&infos[0])[0], "func:calc/core.py:later:17");
    assert_eq!(infos[0]["frontier_anchor_id"], "func:calc/core.py:later:17");
    assert_eq!(infos[0]["seeded_working_ids"].as_array().unwrap().len(), 1);
    assert_eq!(infos[0]["delta_working_nodes"], 1);
    assert_eq!(ids(&infos[1]), ["class:calc/core.py:Counter:4"]);
    assert_eq!(infos[3]["query_relaxed"]["from"], "+absent symbol:total");
    assert_eq!(ids(&infos[3])[0], TOTAL);
    let counts: Vec<usize> = infos[4..7].iter().map(|info| ids(info).len()).collect();
    assert_eq!(counts[..2], [1, 3], "{counts:?}");
    assert!(
        counts[2] > 3 && ids(&infos[6]).contains(&"func:calc/report.py:line:8"),
        "{counts:?}"
    );
    let callers = ids(&infos[7]);
    assert!(
        callers.contains(&"func:calc/report.py:mean:4"),
        "{callers:?}"
    );
    assert!(
        callers.contains(&"func:calc/core.py:later:17"),
        "{callers:?}"
    );
    assert_eq!(ids(&infos[8]), [TOTAL]);
    let read = &infos[9]["results"][0];
    assert_eq!(
        (read["start"].clone(), read["node_id"].clone()),
        (18.into(), TOTAL.into())
    );
    assert_eq!(read["abs_path"], "/testbed/calc/core.py");
    assert_eq!(read["snippet"][3], "0021: def total(numbers):");
    assert_eq!(infos[9]["capped_fields"]["limit"], 900);
    assert_eq!(
        (infos[9]["capped"].clone(), infos[9]["warnings"][0].clone()),
        (true.into(), "value-capped".into())
    );
    assert_eq!(infos[10]["results"][0]["end"], 13);
    assert_eq!(
        infos[11]["results"][0]["snippet"].as_array().unwrap().len(),
        3
    );
    assert_eq!(
        infos[12]["results"][0]["snippet"][0],
        "0021: def total(numbers):"
    );
    let lines: Vec<i64> = infos[13]["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["line"].as_i64().unwrap())
        .collect();
    assert_eq!(lines, [17, 21, 4]);
    assert_eq!(infos[14]["error"], "invalid-pattern");
    assert_eq!(infos[15]["error"], "unknown-node");
    assert!(
        ids(&infos[17]).iter().all(|id| id.contains("Counter.")),
        "{:?}",
        ids(&infos[17])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tests_that_decide_are_in_no_graph_no_source_and_no_memory() {
    let Some(stage) = Stage::new(&[]).await else {
        return;
    };
    let read = |id: &str| block("explore", &[("op", "read"), ("nodes", id)]);
    let replies = [
        read("file:tests/test_core.py"),
        read("tests/test_core.py"),
        read("/testbed/tests/test_core.py"),
        read("func:tests/test_core.py:TestTotal.test_total:6"),
        block(
            "explore",
            &[("op", "expand"), ("nodes", "file:tests/test_core.py")],
        ),
        block(
            "explore",
            &[(
                "anchors",
                "[{\"kind\": \"file\", \"text\": \"tests/test_core.py\"}]",
            )],
        ),
        block(
            "explore",
            &[
                ("op", "grep"),
                ("pattern", "assert"),
                ("path_glob", "tests/test_core.py"),
            ],
        ),
        block(
            "memory",
            &[
                ("intent", "commit"),
                ("selector", "[\"file:tests/test_core.py\"]"),
            ],
        ),
        block("explore", &[("op", "grep"), ("pattern", "marker")]),
        block("explore", &[("query", "symbol:test_total path:test_core")]),
        block("explore", &[("op", "grep"), ("pattern", "Counter().up()")]),
        read("file:tests/test_counter.py"),
        block("run_failed_test", &[]),
    ];
    let infos = infos(&stage, &replies).await;
    for info in &infos[..8] {
        assert_eq!(info["error"], "guarded-test", "{info}");
    }
    assert_eq!(infos[8]["n_matches"], 0);
    assert!(ids(&infos[9]).iter().all(|id| !id.contains("test_core")));
    // Tests that do not decide may be read.
    assert_eq!(infos[10]["matches"][0]["path"], "tests/test_counter.py");
    assert_eq!(infos[11]["summary"], "1 read");
    // Results are told, names are not.
    assert_eq!(infos[12]["tests"]["fail_to_pass"]["passed"], 0);
    assert!(
        !infos[12].to_string().contains("test_total"),
        "{}",
        infos[12]
    );
}
