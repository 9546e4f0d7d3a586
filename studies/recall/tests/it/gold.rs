//! Nothing that a policy sees or a memory keeps was made from gold.

use std::sync::Arc;

use recall::{ChunkQuestion, Dialogue, Granularity, Notes, Question, Session, Task, Utterance};
use serde_json::json;

use crate::fixture::{chat, config, play, study};

const CANARY: &str = "kanarienvogel";

fn task(granularity: Granularity) -> Vec<Arc<Task>> {
    let session = |number: usize| Session {
        session_id: Some(format!("s{number}")),
        timestamp: Some("8 May 2023".to_owned()),
        utterances: vec![Utterance {
            source_id: Some(format!("u{number}")),
            speaker: Some("Ann".to_owned()),
            text: "I have a bird. It sings every day.".to_owned(),
        }],
    };
    let mut metadata = serde_json::Map::new();
    metadata.insert("answer".to_owned(), json!(CANARY));
    let dialogue = Dialogue {
        sample_id: "0".to_owned(),
        data_source: "birds".to_owned(),
        split: "test".to_owned(),
        document: CANARY.to_owned(),
        metric: None,
        sessions: (0..3).map(session).collect(),
        questions: vec![
            Question::new("q0", "Which bird?", CANARY, vec![CANARY.to_owned()])
                .with_evidence(vec![CANARY.to_owned(), "u1".to_owned()]),
            Question::new("q1", "Which cat?", "none", Vec::new()),
        ],
        chunk_questions: vec![ChunkQuestion {
            session: 1,
            question: Question::new("c0", "Which fish?", CANARY, vec![CANARY.to_owned()]),
        }],
        metadata,
    };
    Task::of_dialogue(&dialogue, granularity)
        .into_iter()
        .map(Arc::new)
        .collect()
}

/// What every role might say; none of it knows the canary.
fn say(role: &str, _: &str) -> Option<String> {
    let text = match role {
        "memory" => "add: Ann has a bird.\ncore: Ann sings.",
        "extract" => "[{\"text\": \"Ann has a bird.\"}]",
        "fact_split" => "important: Ann has a bird.\nunimportant: It sings.",
        "long_mem" => "add",
        "short_mem" => "It sings.",
        _ => "a robin",
    };
    Some(text.to_owned())
}

#[test]
fn no_prompt_and_no_memory_knows_the_answer() {
    let memories = ["none", "chunk", "rule", "model", "policy", "four_roles"]
        .map(|extraction| json!({ "memory": { "extraction": extraction } }));
    let baselines = ["no_memory", "full_context", "last_k", "raw_chunks"]
        .map(|baseline| json!({ "baseline": baseline }));
    let visible = json!({
        "memory": { "extraction": "policy", "compression": "rolling", "remember_answers": true },
        "prompt": { "query_visible_during_history": true },
        "step_rewards": { "chunk_qa": { "weight": 1.0, "ask": true } },
    });
    let chat = chat();
    for settings in memories.into_iter().chain(baselines).chain([visible]) {
        let study = study(config(settings.clone()));
        for granularity in [Granularity::Qa, Granularity::Sample] {
            for group in play(&study, &task(granularity), 1, say, 2) {
                let episode = &group.episodes[0];
                let mut calls = 0;
                for call in &episode.calls {
                    let prompt = chat.tokenizer().decode(&call.completion.prompt).unwrap();
                    assert!(!prompt.contains(CANARY), "{settings}: {prompt}");
                    calls += 1;
                }
                assert!(calls > 0, "{settings}: nobody was asked");
                let notes = Notes::of(episode).unwrap();
                let kept = json!([notes.facts, notes.core, notes.summary]).to_string();
                assert!(!kept.contains(CANARY), "{settings}: {kept}");
            }
        }
    }
}
