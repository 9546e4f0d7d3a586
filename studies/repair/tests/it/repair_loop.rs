//! Repairs in jails: what mends is kept, what does not is rolled back to the byte, and no reply ends a run.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use crate::loops::repaired;
use crate::place::{Place, path};
use code::{Patch, patch::LineEdit};
use policy::{Conversation, MessagePolicy, PolicyError, Reply};
use proptest::{
    prelude::{Strategy, any},
    strategy::ValueTree,
    test_runner::TestRunner,
};
use record::{LogLine, Sampling, StopReason, TaskId};
use repair::{
    Checks, Issue, Public, Task,
    TestFramework::Unittest,
    patch_model::{
        ChatPatcher, GenerateConfig, GeneratePatcher, PatchModel, PatchRequest, RecordedPatcher,
    },
    repair_loop::{LoopSettings, RepairLoop},
    workplace::Workplace,
};
use rollout::Roles;
use serde_json::json;
use session::Command;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const MENDED: &str = "tests.test_core.TestCore.test_f3";
const KEPT: &str = "tests.test_core.TestCore.test_kept";

async fn begun() -> Option<(Place, Task)> {
    let files = crate::replies::files();
    let fill = |checkout: &Path| {
        for (path, content) in &files {
            let path = checkout.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    };
    let place = Place::fill(Unittest, fill).await?;
    let task = Task {
        id: TaskId("one".to_owned()),
        public: Public {
            repo: "package".to_owned(),
            base_commit: None,
            issue: Issue::default(),
            framework: Unittest,
            max_steps: None,
        },
        place: repair::Place::Folder("unused".into()),
        checks: Checks {
            fail_to_pass: vec![MENDED.to_owned()],
            pass_to_pass: vec![KEPT.to_owned()],
        },
        facts: Default::default(),
        gold: Default::default(),
    };
    Some((place, task))
}

fn looped(model: impl PatchModel + 'static) -> RepairLoop {
    RepairLoop {
        model: Arc::new(model),
        settings: LoopSettings::default(),
    }
}

fn recorded<S: ToString>(replies: &[S]) -> RepairLoop {
    looped(RecordedPatcher::new(
        replies.iter().map(ToString::to_string),
    ))
}

/// Every file with its mode and content, as the session's own commands see it.
async fn tree(workplace: &mut Workplace) -> String {
    let script = "find . -type f -o -type l -o -type d | sort | while read f; do stat -c '%n %a %F' \"$f\"; \
        test -d \"$f\" || md5sum \"$f\"; done";
    let outcome = workplace
        .session()
        .await
        .unwrap()
        .exec(&Command::shell(script, crate::place::LIMITS))
        .await;
    let outcome = outcome.unwrap();
    assert!(outcome.is_ok(), "{}", outcome.stderr.text());
    outcome.stdout.text()
}

fn edit(start: usize, end: usize, new_text: &str) -> serde_json::Value {
    json!({"path": "package/core.py", "start": start, "end": end, "new_text": new_text})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_outside_of_the_plan_is_kept_where_the_plan_is_a_hint() {
    let right = json!({"edits": [edit(10, 10, "    return x * 3\n")]});
    for within_plan in [true, false] {
        let Some((place, task)) = begun().await else {
            return;
        };
        let mut loops = recorded(&[&right]);
        loops.settings.within_plan = within_plan;
        let mut request = crate::replies::request();
        request
            .targets
            .retain(|target| target.path == "package/latin.py");
        let workplace = place.open().await;
        let (records, workplace) =
            repaired(loops, Roles::default(), &task, vec![request], workplace).await;
        assert_eq!(records[0].ok, !within_plan);
        let error = within_plan.then_some("outside-targets");
        assert_eq!(records[0].error.as_deref(), error);
        workplace.close().await.unwrap();
    }
}

const LEFT_BEHIND: &str = "

class TestState(unittest.TestCase):
    def test_1_sets_and_fails(self):
        core.ready = True
        self.fail('whatever is done')

    def test_2_is_ready(self):
        self.assertTrue(core.ready)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_goes_by_others_is_decided_among_all_where_the_lists_are_of_all() {
    let ready = "tests.test_core.TestState.test_2_is_ready";
    for all_tests in [true, false] {
        let Some((place, mut task)) = begun().await else {
            return;
        };
        let tests = place.folder().join("tests/test_core.py");
        let text = fs::read_to_string(&tests).unwrap();
        fs::write(
            &tests,
            format!("from package import core\n{text}{LEFT_BEHIND}"),
        )
        .unwrap();
        task.checks.pass_to_pass.push(ready.to_owned());
        let mut loops = recorded(&[json!({"edits": [edit(10, 10, "    return x * 3\n")]})]);
        loops.settings.all_tests = all_tests;
        let request = crate::replies::request();
        let workplace = place.open().await;
        let (records, workplace) =
            repaired(loops, Roles::default(), &task, vec![request], workplace).await;
        let kept = records[0].tests.as_ref().unwrap().pass_to_pass;
        assert_eq!(
            (records[0].ok, kept.passed, kept.total),
            (all_tests, 1 + usize::from(all_tests), 2)
        );
        workplace.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_patch_that_mends_is_kept_and_the_others_are_told() {
    let Some((place, task)) = begun().await else {
        return;
    };
    let mut workplace = place.open().await;
    let before = tree(&mut workplace).await;
    // One that does not mend, one that breaks what passed, then both in an answer with the right one.
    let useless = edit(10, 10, "    return x + 3 - 0\n");
    let breaking = edit(10, 10, "    return x + 4\n");
    let right = edit(10, 10, "    return x * 3\n");
    let several = json!({"candidates": [
        {"patch": {"edits": [useless]}, "confidence": 0.9},
        {"patch": {"edits": [right], "summary": "times"}, "confidence": 0.3},
        {"patch": {"edits": [right]}, "confidence": 0.2},
        {"patch": {"edits": [breaking]}, "confidence": 0.8},
    ]});
    let loops = recorded(&[
        json!({"edits": [useless]}),
        json!({"edits": [breaking]}),
        several,
    ]);
    let request = crate::replies::request();
    let requests = vec![request.clone(), request.clone(), request];
    let (records, mut workplace) =
        repaired(loops, Roles::default(), &task, requests, workplace).await;

    let (useless, breaking, kept) = (&records[0], &records[1], &records[2]);
    assert!(!useless.ok && !useless.applied && useless.lint_ok);
    assert_eq!(useless.error.as_deref(), Some("build-failed"));
    let tests = useless.tests.as_ref().unwrap();
    assert_eq!(
        (tests.fail_to_pass.passed, tests.fail_to_pass.total),
        (0, 1)
    );
    assert_eq!(tests.failures[0].kind, "AssertionError");
    assert_eq!(tests.failures[0].message, "5 != 6");
    assert_eq!(tests.failures[0].frames, <[String; 0]>::default());
    assert!(useless.patch.contains("+    return x + 3 - 0\n"));
    assert!(useless.feedback[0].detail.contains("0 of 1"));

    assert!(!breaking.ok && !breaking.applied);
    let tests = breaking.tests.as_ref().unwrap();
    assert_eq!(tests.fail_to_pass.passed, 1);
    assert_eq!(
        (tests.pass_to_pass.passed, tests.pass_to_pass.total),
        (0, 1)
    );
    assert_eq!(breaking.test_runs, 2);

    assert!(kept.ok && kept.applied, "{kept:?}");
    assert_eq!(
        (kept.error.as_deref(), kept.message.as_str()),
        (None, "times")
    );
    assert_eq!(
        (kept.n_hunks, kept.added_lines, kept.removed_lines),
        (1, 1, 1)
    );
    assert_eq!(kept.changed_files, ["package/core.py"]);
    // The third is the second once more: it is refused and no candidate.
    assert_eq!((kept.candidates, kept.confidence), (3, 0.3));
    assert!(kept.tests.as_ref().unwrap().passed);
    assert_eq!(workplace.diff().await.unwrap(), kept.patch);
    let log = workplace.take_log();
    assert_eq!(
        log.len(),
        records.iter().map(|record| record.test_runs).sum::<usize>()
    );
    let passed = |line: &LogLine| line.fields["result"]["passed"].clone();
    assert_eq!(passed(log.last().unwrap()), true);
    assert_eq!(
        (passed(&log[0]), &log[0].fields["status"]),
        (false.into(), &"failed".into())
    );
    assert_eq!(log[0].fields["selector"], json!([MENDED]));
    assert_eq!(log[0].fields["failed"], json!([MENDED]));

    // The kept patch taken back gives the tree that was.
    let files = [(
        path("package/core.py"),
        workplace.read(&path("package/core.py")).await.unwrap(),
    )];
    let back = code::patch::unified_diff(
        &path("package/core.py"),
        files[0].1.as_deref(),
        Some(&crate::replies::files()["package/core.py"]),
    );
    workplace
        .apply(&Patch::parse(&back).unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(tree(&mut workplace).await, before);
    assert_eq!(workplace.diff().await.unwrap(), "");
    workplace.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reply_ends_a_run_or_changes_a_byte() {
    let Some((place, task)) = begun().await else {
        return;
    };
    let mut workplace = place.open().await;
    let before = tree(&mut workplace).await;
    // Patches that can be tried are the other tests'.
    let cases: Vec<_> = crate::replies::cases()
        .into_iter()
        .filter(|case| case.code != "ok")
        .collect();
    let replies: Vec<&String> = cases.iter().map(|case| &case.reply).collect();
    let requests = vec![crate::replies::request(); cases.len()];
    let loops = recorded(&replies);
    let (records, mut workplace) =
        repaired(loops, Roles::default(), &task, requests, workplace).await;
    for (case, record) in cases.iter().zip(&records) {
        assert_eq!(
            record.error.as_deref(),
            Some(case.code.as_str()),
            "{}",
            case.name
        );
        assert!(!record.ok && !record.applied && record.patch.is_empty());
        assert!(!record.message.is_empty(), "{}", case.name);
        let told = record.feedback.first().map(|it| &it.outcome);
        assert_eq!(told, record.error.as_ref(), "{}", case.name);
    }
    assert_eq!(tree(&mut workplace).await, before);
    workplace.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tests_leave_and_break_is_rolled_back() {
    let Some((place, task)) = begun().await else {
        return;
    };
    let mut workplace = place.open().await;
    let before = tree(&mut workplace).await;
    // It mends, breaks another, and changes files while the tests run.
    let text = "    open('left', 'w').close(); import os; os.chmod('setup.cfg', 0o600)\n    \
        print(1, file=open('package/long.py', 'a'))\n    return x + 4\n";
    let loops = recorded(&[json!({"edits": [edit(10, 10, text)]})]);
    let request = PatchRequest {
        ..crate::replies::request()
    };
    let (records, mut workplace) = repaired(
        loops,
        Roles::default(),
        &task,
        vec![request.clone()],
        workplace,
    )
    .await;
    assert_eq!(records[0].error.as_deref(), Some("build-failed"));
    assert_eq!(records[0].tests.as_ref().unwrap().fail_to_pass.passed, 1);
    assert_eq!(tree(&mut workplace).await, before);

    // A plan of nothing, and one of files that are not there.
    let nothing = PatchRequest {
        targets: Vec::new(),
        ..request.clone()
    };
    let mut absent = request;
    absent.targets.truncate(1);
    absent.targets[0].path = "gone.py".to_owned();
    let loops = recorded::<&str>(&[]);
    let (records, workplace) = repaired(
        loops,
        Roles::default(),
        &task,
        vec![nothing, absent],
        workplace,
    )
    .await;
    for record in &records {
        assert_eq!(record.error.as_deref(), Some("plan-build-failed"));
    }
    assert!(records[1].message.contains("gone.py"));
    workplace.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_edits_are_applied_and_rolled_back_to_the_byte() {
    let Some((place, _)) = begun().await else {
        return;
    };
    let mut workplace = place.open().await;
    let before = tree(&mut workplace).await;
    let start = workplace.snapshot().await.unwrap();
    let edits = proptest::collection::vec((0..14_usize, any::<bool>(), "[a-z\u{e9}]{0,9}"), 1..6);
    let mut runner = TestRunner::deterministic();
    for _ in 0..8 {
        let edits = edits.new_tree(&mut runner).unwrap().current();
        let edits = edits
            .into_iter()
            .enumerate()
            .map(|(number, (offset, insert, text))| {
                // Apart from each other: four lines for each.
                let line = 4 * number + 1 + offset % 3;
                LineEdit {
                    path: "package/core.py".to_owned(),
                    start: line,
                    end: line - usize::from(insert),
                    new_text: if text.is_empty() { text } else { text + "\n" },
                }
            });
        let patch = Patch::from_edits(edits.collect()).unwrap();
        let expected = patch
            .apply(
                &[(
                    path("package/core.py"),
                    Some(crate::replies::files()["package/core.py"].clone()),
                )]
                .into(),
            )
            .unwrap();
        workplace.apply(&patch).await.unwrap().unwrap();
        let diff = workplace.diff().await.unwrap();
        assert_eq!(diff.is_empty(), expected.changes.is_empty());
        workplace.restore(&start).await.unwrap();
        assert_eq!(tree(&mut workplace).await, before);
        if !diff.is_empty() {
            // The diff says the same as the edits.
            let after = tree_after(&mut workplace, &Patch::parse(diff.as_bytes()).unwrap()).await;
            workplace.restore(&start).await.unwrap();
            assert_eq!(after, tree_after(&mut workplace, &patch).await);
            workplace.restore(&start).await.unwrap();
        }
    }
    workplace.close().await.unwrap();
}

async fn tree_after(workplace: &mut Workplace, patch: &Patch) -> String {
    workplace.apply(patch).await.unwrap().unwrap();
    tree(workplace).await
}

/// Says one thing and keeps what it was asked; it ends at its limit of tokens where what it says is not closed.
struct Says(String, Mutex<Vec<Conversation>>);

impl MessagePolicy for Says {
    fn converse<'a>(
        &'a self,
        conversation: Conversation,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Reply, PolicyError>> + Send + 'a>> {
        self.1.lock().unwrap().push(conversation);
        Box::pin(async {
            Ok(Reply {
                said: record::Said {
                    text: self.0.clone(),
                    ..record::Said::default()
                },
                stop: match self.0.ends_with("```") {
                    true => StopReason::Stop,
                    false => StopReason::Length,
                },
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_chats_is_shown_the_plans_lines() {
    let Some((place, task)) = begun().await else {
        return;
    };
    let workplace = place.open().await;
    let reply = format!(
        "Multiply:\n```json\n{}\n```",
        json!({"edits": [edit(10, 10, "    return x * 3\n")]})
    );
    let cut = reply[..reply.len() - 12].to_owned();
    let says = Arc::new(Says(cut, Mutex::default()));
    let roles = Roles::default().bind_messages("patcher", says, Sampling::greedy(100));
    let (records, workplace) = repaired(
        looped(ChatPatcher::default()),
        roles,
        &task,
        vec![crate::replies::request()],
        workplace,
    )
    .await;
    assert_eq!(records[0].error.as_deref(), Some("reply-cut-off"));
    assert_eq!(records[0].candidates, 0);
    assert!(records[0].feedback[0].detail.contains("limit of tokens"));
    let says = Arc::new(Says(reply, Mutex::default()));
    let roles = Roles::default().bind_messages("patcher", says.clone(), Sampling::greedy(100));
    let loops = looped(ChatPatcher::default());
    let (records, workplace) = repaired(
        loops,
        roles,
        &task,
        vec![crate::replies::request()],
        workplace,
    )
    .await;
    assert!(records[0].ok, "{:?}", records[0]);
    let asked = std::mem::take(&mut *says.1.lock().unwrap());
    let user = &asked[0].messages[1].content;
    for part in [
        "0010:     return x + 3",
        "package/core.py:9-14",
        "- multiply",
        "build-failed",
    ] {
        assert!(user.contains(part), "{part}: {user}");
    }
    workplace.close().await.unwrap();
}

/// Answers one request after the other with the next of `answers`; gives the address and what was asked.
async fn service(
    answers: Vec<(&'static str, String)>,
) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let mut asked = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            loop {
                let read = stream.read(&mut piece).await.unwrap();
                request.extend_from_slice(&piece[..read]);
                let text = String::from_utf8_lossy(&request);
                let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                });
                if text.contains("\r\n\r\n") && rest.len() >= length.unwrap_or(0_usize) {
                    break;
                }
            }
            asked.push(String::from_utf8(request).unwrap());
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        asked
    });
    (url, served)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_service_is_asked_in_its_own_words() {
    let Some((place, task)) = begun().await else {
        return;
    };
    let workplace = place.open().await;
    let right = json!({"patch": {"edits": [edit(10, 10, "    return x * 3\n")], "summary": "times"}, "summary": "times"});
    let (url, served) = service(vec![
        (
            "502 Bad Gateway",
            r#"{"detail": "no edits generated"}"#.to_owned(),
        ),
        (
            "400 Bad Request",
            r#"{"detail": "plan.targets is empty"}"#.to_owned(),
        ),
        ("200 OK", "not JSON".to_owned()),
        ("200 OK", right.to_string()),
    ])
    .await;
    let config = GenerateConfig {
        api_key: Some("secret".to_owned()),
        // As it is written in the service's own guide, or without its end.
        ..GenerateConfig::new(format!("{url}/generate"), "model")
    };
    assert!(!format!("{config:?}").contains("secret"));
    let loops = looped(GeneratePatcher::new(config).unwrap());
    let requests = vec![crate::replies::request(); 4];
    let (records, workplace) = repaired(loops, Roles::default(), &task, requests, workplace).await;
    let errors: Vec<Option<&str>> = records
        .iter()
        .map(|record| record.error.as_deref())
        .collect();
    assert_eq!(
        errors,
        [
            Some("cgm-empty"),
            Some("invalid-payload"),
            Some("invalid-patch-schema"),
            None
        ]
    );
    assert!(records[3].ok);
    let asked = served.await.unwrap();
    assert!(asked[3].starts_with("POST /generate HTTP/1.1\r\n"));
    assert!(
        asked[3]
            .to_ascii_lowercase()
            .contains("authorization: bearer secret")
    );
    let (_, body) = asked[3].split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["plan"]["targets"][0]["path"], "package/core.py");
    assert_eq!(body["plan"]["targets"][0]["start"], 9);
    assert_eq!(body["plan_text"], "multiply");
    assert_eq!(body["constraints"]["max_edits"], 5);
    assert_eq!(body["model_config"]["model"], "model");
    let snippets = body["snippets"].as_array().unwrap();
    let mut lines = snippets
        .iter()
        .flat_map(|snippet| snippet["snippet"].as_array().unwrap());
    assert!(lines.any(|line| line == "def f3(x):"));
    workplace.close().await.unwrap();
}
