//! What episodes keep.

use repair::play::Notes;

use crate::planner::stage::{RIGHT, Stage, block, tree};

fn memory(intent: &str, selector: &str) -> String {
    block("memory", &[("intent", intent), ("selector", selector)])
}

fn nodes(notes: &Notes) -> Vec<&str> {
    let nodes = notes.memory["nodes"].as_array().unwrap();
    nodes.iter().map(|id| id.as_str().unwrap()).collect()
}

const TOTAL: &str = "func:calc/core.py:total:21";
const MEAN: &str = "func:calc/report.py:mean:4";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_notes_and_deletions_do_what_they_say() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    let replies = [
        memory("commit", ""),
        memory("forget", "latest"),
        block("explore", &[("query", "symbol:mean")]),
        memory("commit", "latest"),
        memory(
            "save",
            &format!("{{\"ids\": [\"{TOTAL}\"], \"note\": \"the slice\", \"tag\": \"guess\"}}"),
        ),
        block(
            "memory",
            &[
                ("intent", "commit"),
                ("target", "observation"),
                ("selector", "{\"note\": \"mind the empty list\"}"),
            ],
        ),
        block("explore", &[("query", "slice")]),
        memory("delete", &format!("{{\"ids\": [\"{MEAN}\"]}}")),
        memory("delete", "guess"),
        memory("delete", "unknown-tag"),
        memory("commit", "[\"func:calc/none.py:x\"]"),
        memory("commit", &format!("[\"{TOTAL}\"]")),
        block("memory", &[("intent", "delete"), ("target", "observation")]),
    ];
    stage.config.environment.end.max_steps = Some(replies.len() as u32);
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let notes = stage.play(&replies).await;
    let info = |at: usize| &notes.steps[at].info;
    assert_eq!(info(0)["error"], "missing-explore");
    assert_eq!(info(1)["error"], "nothing-to-delete");
    assert_eq!(notes.steps[1].reward, -0.1);
    assert_eq!(info(3)["selected_for_memory"][0], MEAN);
    assert_eq!(
        (info(3)["auto_selected"].clone(), info(3)["tag"].clone()),
        (true.into(), "session:1".into())
    );
    assert_eq!(
        (
            info(4)["applied"]["graph_nodes"].clone(),
            info(4)["applied"]["text_chunks"].clone()
        ),
        (1.into(), 1.into())
    );
    // Both ends of the call are kept, so the edge is.
    assert_eq!(info(4)["applied"]["graph_edges"], 1);
    assert_eq!(info(4)["delta_memory_edges"], 1);
    // Notes are recalled by searches, and shown.
    assert_eq!(info(6)["recalled_notes"][0]["text"], "the slice");
    assert!(notes.steps[6].observation.contains("recalled: the slice"));
    assert_eq!(info(7)["delta_memory_nodes"], -1);
    assert_eq!(info(8)["delta_memory_nodes"], -1);
    assert_eq!(info(9)["error"], "nothing-to-delete");
    assert_eq!(info(10)["error"], "empty-explore");
    assert_eq!(info(12)["applied"]["text_chunks"], 1);
    assert_eq!(nodes(&notes), [TOTAL]);
    let versions: Vec<u64> = notes
        .steps
        .iter()
        .filter_map(|step| step.info["version"].as_u64())
        .collect();
    assert!(
        versions.windows(2).all(|pair| pair[0] < pair[1]),
        "{versions:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_exceeds_a_cap_is_refused_whole_and_caps_keep_their_defaults() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    // One cap is set, the others are still there.
    stage.config.environment = serde_json::from_str("{\"memory\": {\"nodes\": 1}}").unwrap();
    assert_eq!(stage.config.environment.memory.cgm_tokens, Some(16_000));
    let both = format!("[\"{TOTAL}\", \"{MEAN}\"]");
    let replies = [
        memory("commit", &both),
        memory("commit", &format!("[\"{TOTAL}\"]")),
        memory("commit", &format!("[\"{MEAN}\"]")),
    ];
    stage.config.environment.end.max_steps = Some(3);
    let notes = stage
        .play(&replies.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let refused = &notes.steps[0].info;
    assert_eq!(refused["error"], "over-budget");
    assert_eq!(
        (refused["ok"].clone(), refused["rejected"].clone()),
        (false.into(), true.into())
    );
    assert_eq!(refused["exceeded"][0], "nodes");
    assert_eq!(
        (
            refused["size_before"]["nodes"].clone(),
            refused["size_after"]["nodes"].clone()
        ),
        (0.into(), 2.into())
    );
    assert_eq!(refused["delta_memory_nodes"], 0);
    assert_eq!(notes.steps[2].info["error"], "over-budget");
    assert_eq!(nodes(&notes), [TOTAL]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subgraphs_are_written_where_asked_and_taken_up_again() {
    let Some(mut stage) = Stage::new(&[RIGHT]).await else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let replies = [
        block("explore", &[("query", "symbol:mean")]),
        memory("commit", &format!("[\"{TOTAL}\"]")),
    ];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    stage.config.environment.end.max_steps = Some(2);
    let before = tree(&stage.place.folder());
    stage.play(&replies).await;
    assert_eq!(tree(&stage.place.folder()), before);
    stage.config.environment.subgraphs = Some(scratch.path().to_owned());
    stage.play(&replies).await;
    let written = tree(scratch.path());
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].0, ".aci/subgraphs/one.json");
    assert_eq!(tree(&stage.place.folder()), before);
    // The next episode begins with it.
    let repair = block("repair", &[("subplan", "take all numbers")]);
    let notes = stage.play(&[repair.as_str(), &block("submit", &[])]).await;
    assert!(
        notes.resolved && notes.begin.contains(&format!("M {TOTAL}")),
        "{}",
        notes.begin
    );
    // Both graphs after every step, and nothing else.
    let traces = tempfile::tempdir().unwrap();
    stage.config.environment.traces = Some(traces.path().to_owned());
    let notes = stage.play(&replies).await;
    let written = tree(traces.path());
    let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "one.step_0001.memory.json",
        "one.step_0001.working.json",
        "one.step_0002.memory.json",
        "one.step_0002.working.json",
    ];
    assert_eq!(names, expected);
    let kept: serde_json::Value = serde_json::from_slice(&written[2].1).unwrap();
    let kept = kept["nodes"].as_array().unwrap().iter();
    let kept: Vec<&str> = kept.map(|node| node["id"].as_str().unwrap()).collect();
    assert_eq!(kept, nodes(&notes));
    // A file that is no subgraph is said to be none, and an empty one is taken.
    std::fs::write(scratch.path().join(".aci/subgraphs/one.json"), "{").unwrap();
    let notes = stage.play(&["x"]).await;
    assert!(notes.begin.contains("one.json: line"), "{}", notes.begin);
    assert_eq!(notes.steps[0].info["memory_stats"]["n_nodes"], 0);
}
