//! Gold is seen by nobody who could learn from it: not in a prompt, not in a call, not in the jail.

use std::collections::BTreeSet;

use critique::{
    Purpose, Task,
    prompts::{critique_prompt, revision_prompt},
    tiny::Split,
};
use judge::Judge;
use serde_json::{Value, json};

use crate::stage::{all, chat, judge, made, play};

const CANARY: &str = "kanarienvogel";

/// The task with a canary in every leaf of its gold and its facts that is not needed to run the
/// tests: expected values, the right critique, the probes, family, bug and function.
fn with_canaries(task: &Task) -> Task {
    let mut json = serde_json::to_value(task).unwrap();
    for case in json["gold"]["tests"]["cases"].as_array_mut().unwrap() {
        case["expected"] = json!(format!("{CANARY}-expected"));
    }
    json["gold"]["right_critique"] = json!(format!("{CANARY}-critique"));
    for probe in json["gold"]["probes"].as_object_mut().unwrap().values_mut() {
        *probe = json!(format!("{CANARY}-probe"));
    }
    for fact in ["family", "bug", "function"] {
        json["facts"][fact] = json!(format!("{CANARY}-{fact}"));
    }
    assert_eq!(
        count(&json),
        20 + 1 + 11 + 3,
        "gold has grown, and so must this test"
    );
    serde_json::from_value(json).unwrap()
}

fn count(value: &Value) -> usize {
    value.to_string().matches(CANARY).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gold_reaches_a_prompt_or_a_call() {
    let judge = judge();
    let tasks = canaries(&judge, 12).await;
    let chat = chat();
    for task in &tasks {
        let public = serde_json::to_string(&task.public).unwrap();
        assert!(!public.contains(CANARY));
        for chat_of in [
            critique_prompt(&task.public),
            revision_prompt(&task.public, "a critique"),
        ] {
            let ids = chat.render(&chat_of, true).unwrap().tokens;
            let shown = chat.tokenizer().decode(&ids).unwrap();
            assert!(shown.contains(&task.public.program), "{shown}");
            assert!(!shown.contains(CANARY), "{shown}");
        }
    }
    let judged = "Overall judgment: Incorrect".to_owned();
    let episodes = play(
        &judge,
        Purpose::Training,
        &tasks,
        all(&tasks, |_| judged.clone()),
        all(&tasks, |task| task.public.program.clone()),
    )
    .await;
    assert_eq!(episodes.len(), tasks.len());
    for (episode, _) in episodes {
        assert_eq!(episode.calls.len(), 2);
        for call in &episode.calls {
            for ids in [&call.completion.prompt, &call.completion.response] {
                assert!(!chat.tokenizer().decode(ids).unwrap().contains(CANARY));
            }
        }
    }
}

/// A program that searches everything it can reach for a word, and says where it found it. The word is
/// put together so that the program does not find itself.
fn searching_program(word: &str) -> String {
    let (head, tail) = word.split_at(4);
    format!(
        r#"
import gc, sys, os

def found(word):
    places = []
    frame = sys._getframe()
    while frame is not None:
        for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
            try:
                if name != "word" and word in repr(value):
                    places.append("frame:" + name)
            except Exception:
                pass
        frame = frame.f_back
    for thing in gc.get_objects():
        try:
            if isinstance(thing, (dict, list, tuple)) and any(type(x) in (str, bytes) and x is not word and word in (x if type(x) is str else x.decode("latin1")) for x in (thing.values() if isinstance(thing, dict) else thing)):
                places.append("gc")
        except Exception:
            pass
    for path in ["/proc/self/environ", "/proc/self/cmdline"]:
        try:
            if word in open(path, "rb").read().decode("latin1"):
                places.append(path)
        except Exception:
            pass
    for root, _, names in os.walk("."):
        for name in names:
            try:
                if word in open(os.path.join(root, name), "rb").read().decode("latin1"):
                    places.append(name)
            except Exception:
                pass
    return places

outcome = None

def f(*arguments):
    global outcome
    if outcome is None:
        # Once, as a second search would find what the first one has left behind.
        places = found("".join(["{head}", "{tail}"]))
        outcome = "found in " + ",".join(sorted(set(places))) if places else "clean"
    raise ValueError(outcome)
"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gold_is_in_the_jail() {
    let judge = judge();
    let tasks = canaries(&judge, 3).await;
    let critiques = all(&tasks, |_| "Overall judgment: Incorrect".to_owned());
    let programs = all(&tasks, |_| searching_program(CANARY));
    for (_, notes) in play(&judge, Purpose::Training, &tasks, critiques, programs).await {
        let verdict = notes.verdict.unwrap();
        let said = verdict.message.as_deref().unwrap_or_default();
        assert!(said.starts_with("ValueError: clean"), "{verdict:?}");
        let told = serde_json::to_string(&verdict).unwrap();
        assert!(
            !told.contains(CANARY),
            "a verdict tells what was expected: {told}"
        );
    }

    // What is no gold, an argument, is found: the search works.
    let mut json = serde_json::to_value(&tasks[0]).unwrap();
    json["gold"]["tests"]["cases"][0]["args"] = json!([["wellensittich"]]);
    let open: Task = serde_json::from_value(json).unwrap();
    let critiques = all(std::slice::from_ref(&open), |_| {
        "Overall judgment: Incorrect".to_owned()
    });
    let programs = all(std::slice::from_ref(&open), |_| {
        searching_program("wellensittich")
    });
    let played = play(&judge, Purpose::Training, &[open], critiques, programs).await;
    let message = played[0]
        .1
        .verdict
        .as_ref()
        .unwrap()
        .message
        .clone()
        .unwrap();
    assert!(
        message.contains("found in") && message.contains("frame:arguments"),
        "{message}"
    );
}

async fn canaries(judge: &Judge, n: usize) -> Vec<Task> {
    made(judge, Split::Train, n, 0.3)
        .await
        .iter()
        .map(|made| with_canaries(&made.task))
        .collect()
}

/// By function and by instance of a bug: the same wrong fragment in the same function.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn training_and_held_out_tasks_share_nothing() {
    let judge = judge();
    let train = made(&judge, Split::Train, 400, 0.3).await;
    let held_out = made(&judge, Split::HeldOut, 150, 0.3).await;
    let functions = |tasks: &[critique::Made]| -> BTreeSet<String> {
        tasks
            .iter()
            .map(|made| made.task.facts.function.clone())
            .collect()
    };
    let statements = |tasks: &[critique::Made]| -> BTreeSet<String> {
        tasks
            .iter()
            .map(|made| made.task.public.statement.clone())
            .collect()
    };
    let programs = |tasks: &[critique::Made]| -> BTreeSet<(String, String)> {
        let public = tasks.iter().map(|made| &made.task.public);
        public
            .map(|public| (public.statement.clone(), public.program.clone()))
            .collect()
    };
    let bugs = |tasks: &[critique::Made]| -> BTreeSet<String> {
        let wrong = tasks.iter().filter(|made| !made.task.facts.initially_right);
        wrong
            .map(|made| format!("{} {:?}", made.task.facts.function, made.draft.choices))
            .collect()
    };
    assert!(functions(&train).len() > 100 && functions(&held_out).len() > 50);
    assert!(
        functions(&train).is_disjoint(&functions(&held_out)),
        "a function is in both"
    );
    assert!(
        statements(&train).is_disjoint(&statements(&held_out)),
        "a statement is in both"
    );
    assert!(
        programs(&train).is_disjoint(&programs(&held_out)),
        "a program is in both"
    );
    assert!(
        bugs(&train).is_disjoint(&bugs(&held_out)),
        "an instance of a bug is in both"
    );
    let ids: BTreeSet<_> = train
        .iter()
        .chain(&held_out)
        .map(|made| made.task.id.clone())
        .collect();
    assert_eq!(ids.len(), 550, "two tasks have one name");
    for split in [&train, &held_out] {
        assert_eq!(programs(split).len(), split.len(), "a task is there twice");
        assert!(split.iter().any(|made| made.task.facts.initially_right));
        let families: BTreeSet<&String> =
            split.iter().map(|made| &made.task.facts.family).collect();
        let bugs: BTreeSet<&Option<String>> =
            split.iter().map(|made| &made.task.facts.bug).collect();
        assert!(
            families.len() >= 5 && bugs.len() >= 6,
            "{families:?} {bugs:?}"
        );
    }
}
