//! `etude repair`, `etude data check` and `etude data mutate` as somebody asks them for the first time.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    chat_server::ChatServer,
    etude::{assert_says, assert_success, etude, package, stderr},
    repair::broken,
};

const TESTS: &str = "tests/test_price.py";
const TOTAL: &str = "tests.test_price.TestPrice.test_total";

fn shop(scratch: &Path) -> String {
    let folder = scratch.join("shop");
    broken(&folder);
    folder.to_str().unwrap().to_owned()
}

fn repair(scratch: &Path, repository: &str, more: &[&str]) -> Output {
    let arguments = [
        "repair",
        "--repo",
        repository,
        "--issue",
        "the total is off",
    ];
    let mut command = etude(scratch, arguments);
    command.args(more).output().unwrap()
}

fn append(repository: &str, text: &str) {
    let path = Path::new(repository).join(TESTS);
    let before = fs::read_to_string(&path).unwrap();
    fs::write(path, before + text).unwrap();
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits on a terminal of its own for the question, answers by Ctrl-C and then by yes, and prints the exit code.
const TERMINAL: &str = "
import os, pty, sys
pid, screen = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b''
try:
    while b'[y/N]' not in said:
        said += os.read(screen, 4096)
    os.write(screen, b'\\x03')
    os.write(screen, b'y\\n')
    while os.read(screen, 4096):
        pass
except OSError:
    pass
print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]) if b'[y/N]' in said else said)
";

#[test]
fn an_interrupted_question_writes_nothing() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let source = Path::new(&repository).join("shop/price.py");
    let before = fs::read(&source).unwrap();
    let asked = etude(
        scratch.path(),
        [
            "repair",
            "--repo",
            &repository,
            "--issue",
            "the total is off",
        ],
    );
    let mut terminal = Command::new("python3");
    terminal
        .args(["-c", TERMINAL])
        .arg(asked.get_program())
        .args(asked.get_args())
        .env("TMPDIR", scratch.path());
    let output = terminal.output().unwrap();
    assert_eq!(stdout(&output).trim(), "130", "{}", stderr(&output));
    assert_eq!(fs::read(&source).unwrap(), before);
}

#[test]
fn plan_candidates_tests_and_diff_are_told() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let here = ["repair", "--repo", ".", "--issue", "the total is off"];
    let mut command = etude(scratch.path(), here);
    let output = command.arg("--apply").current_dir(&repository).output();
    let output = output.unwrap();
    assert_says(
        &output,
        0,
        &[
            "     plan: ",
            "     candidate 1: ",
            "shop/price.py:4: passes",
            "1 test now passes, 2 still do.",
            "/shop.\n",
        ],
    );
    assert!(stdout(&output).contains("+        amount += price"));
}

#[test]
fn replies_that_are_refused_are_counted() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let server = ChatServer::start(|_| "I would rather not.".to_owned());
    // It has no room at first.
    server.refuse_after(0, 429, "later");
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            while server.asked() == 0 {
                thread::sleep(Duration::from_millis(10));
            }
            server.come_back();
        });
        repair(
            scratch.path(),
            &repository,
            &["--model", &server.name, "--json"],
        )
    });
    assert_says(
        &output,
        0,
        &[
            "answered 429 Too Many Requests: later; it is asked again in ",
            "by rule: the model's reply was refused",
            "were refused; rules chose in their place",
        ],
    );
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        server.asked() > 0 && said["fallbacks"] == said["steps"],
        "{said}"
    );
}

#[test]
fn a_patch_that_mends_some_is_shown_and_not_written() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    append(
        &repository,
        "\n    def test_weather(self):\n        self.assertEqual('rain', 'sun')\n",
    );
    let output = repair(scratch.path(), &repository, &["--apply", "--budget", "30"]);
    let again = format!("--test '{TOTAL}'");
    assert_says(&output, 1, &["mends 1 of 2 failing tests", &again]);
    assert!(stdout(&output).contains("+        amount += price"));
    let source = fs::read_to_string(Path::new(&repository).join("shop/price.py")).unwrap();
    assert!(source.contains("amount -= price"));
}

#[test]
fn of_several_failures_the_one_that_the_issue_or_the_user_names_is_repaired() {
    let named = [
        ("test_total does not pass any more", ""),
        ("something is off", "tests.test_price.TestPrice.test_total"),
        ("something is off", "tests.test_price.TestPrice"),
    ];
    for (issue, test) in named {
        let scratch = TempDir::new().unwrap();
        let repository = shop(scratch.path());
        append(
            &repository,
            "\n\nclass TestWeather(unittest.TestCase):\n    def test_weather(self):\n        \
             self.assertEqual('rain', 'sun')\n",
        );
        let mut command = etude(
            scratch.path(),
            ["repair", "--repo", &repository, "--issue", issue, "--apply"],
        );
        let is_about = issue.contains("test_total");
        if !is_about {
            command.args(["--test", test]);
        }
        let output = command.output().unwrap();
        assert_says(&output, 0, &["1 test now passes, 2 still do."]);
        let about = format!("the issue is about 1 of the 2 failing tests, {TOTAL}");
        assert_eq!(stderr(&output).contains(&about), is_about, "{issue}");
    }
}

#[test]
fn why_nothing_was_found_is_said() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let output = repair(scratch.path(), &repository, &["--max-steps", "1"]);
    assert_says(&output, 1, &["(--max-steps)"]);
    // The plan of a repair that is refused is told once.
    let block = |name: &str, params: &str| format!("<function={name}>{params}</function>");
    let param = |name: &str, value: &str| format!("<param name=\"{name}\">{value}</param>");
    let plan = param("subplan", "1) add up") + &param("focus_ids", "[\"func:x.py:x:1\"]");
    let replies = [
        block("explore", &param("query", "symbol:total")),
        block("memory", &param("intent", "commit")),
        block("repair", &plan),
    ];
    let next = AtomicUsize::new(0);
    let server = ChatServer::start(move |_| replies[next.fetch_add(1, SeqCst)].clone());
    let more = ["--model", &server.name, "--max-steps", "3"];
    let output = repair(scratch.path(), &repository, &more);
    assert_says(&output, 1, &["unknown-node"]);
    assert_eq!(stderr(&output).matches("plan: ").count(), 1);
    // So is that of a second attempt at the same place, as far as it is the same.
    let patch = "{\"edits\": [{\"path\": \"tests/test_price.py\", \"start\": 1, \"end\": 1, \"new_text\": \"x\\n\"}]}";
    let server = ChatServer::start(|_| patch.to_owned());
    let output = repair(
        scratch.path(),
        &repository,
        &["--patch-model", &server.name],
    );
    assert_says(
        &output,
        1,
        &[
            "patch refused: guarded-test: ",
            "plan: Another patch than before: guarded-test",
            "patch refused: duplicate-patch: this very patch was refused before",
            "the planner had nothing left to try. 0 candidates",
        ],
    );
    let said = stderr(&output);
    assert_eq!(said.matches("plan: Mend: ").count(), 1, "{said}");
    // Sources that nobody can edit are named.
    let source = Path::new(&repository).join("shop/price.py");
    let text = fs::read_to_string(&source).unwrap();
    let latin = format!("# -*- coding: latin-1 -*-\n# Pr\u{fc}fung\n{text}");
    let latin: Vec<u8> = latin.chars().map(|letter| letter as u8).collect();
    fs::write(&source, latin).unwrap();
    let output = repair(scratch.path(), &repository, &["--json"]);
    let said = "what no patch can change: shop/price.py (it is no UTF-8 text)";
    assert_says(&output, 1, &[said]);
    let outside = scratch.path().join("price.py");
    fs::rename(&source, &outside).unwrap();
    symlink(&outside, &source).unwrap();
    let output = repair(scratch.path(), &repository, &[]);
    assert_says(
        &output,
        2,
        &[
            "cannot import shop.price: shop/price.py is a symbolic link to",
            "which is not in the repository",
        ],
    );
}

#[test]
fn what_no_edit_mends_is_not_searched_for() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let test = Path::new(&repository).join(TESTS);
    let tests = fs::read_to_string(&test).unwrap();
    fs::write(&test, format!("import zebra_crossing.stripes\n{tests}")).unwrap();
    let output = repair(scratch.path(), &repository, &[]);
    assert_says(
        &output,
        2,
        &["No module named 'zebra_crossing'", "--python"],
    );
    fs::write(&test, tests).unwrap();
    fs::write(
        Path::new(&repository).join("shop/price.py"),
        "def total(:\n",
    )
    .unwrap();
    let output = repair(scratch.path(), &repository, &[]);
    assert_says(&output, 2, &["SyntaxError", "that Python cannot read"]);
    assert!(stderr(&output).contains("--patch-model"));
    append(&repository, "\ndef broken(:\n");
    let output = repair(scratch.path(), &repository, &[]);
    assert_says(
        &output,
        2,
        &[&format!(
            "{TESTS} is a file of tests that Python cannot read"
        )],
    );
    assert!(!stderr(&output).contains("--patch-model"));
}

#[test]
fn tests_that_do_not_fail_every_time_or_never_end_are_named() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let source = Path::new(&repository).join("shop/price.py");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("-= price", "+= price")).unwrap();
    append(
        &repository,
        "\n    def test_z(self):\n        self.assertEqual(cheapest.__dict__.setdefault('n', 1), 1)\n\n    \
         def test_y(self):\n        cheapest.n = 2\n",
    );
    let output = repair(scratch.path(), &repository, &[]);
    assert_says(
        &output,
        2,
        &[
            "test_z failed and passed when it was run again",
            "fails every time",
        ],
    );
    append(
        &repository,
        "\n    def test_sleep(self):\n        import time\n        time.sleep(1000)\n",
    );
    let output = repair(scratch.path(), &repository, &["--test-timeout", "10"]);
    assert_says(
        &output,
        1,
        &[
            "tests.test_price.TestPrice.test_sleep was running then",
            "--test-timeout",
        ],
    );
}

#[test]
fn what_is_asked_wrongly_is_said_before_the_tests_run() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let folder = scratch.path().to_str().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--test", " "], "--test is empty"),
        (&["--traces", file.to_str().unwrap()], "it is no folder"),
        (&["--model", "foo"], "--model: "),
        (&["--patch-model", "foo"], "--patch-model: "),
        (
            &[
                "--model",
                "openai:http://127.0.0.1:9/v1#m",
                "--api-key-env",
                "ETUDE_NO_SUCH_KEY",
            ],
            "ETUDE_NO_SUCH_KEY",
        ),
        (&["--traces", "/proc/nope"], "--traces /proc/nope"),
        (&["--issue", folder], "this is a folder"),
        (&["--issue", "missing.md"], "there is no file missing.md"),
        (
            &["--python", "nowhere/python"],
            "--python nowhere/python: there is no such program",
        ),
    ];
    for (more, said) in cases {
        let mut arguments = vec!["repair", "--repo", &repository];
        if !more.contains(&"--issue") {
            arguments.extend(["--issue", "the total is off"]);
        }
        arguments.extend(more);
        let output = etude(scratch.path(), &arguments).output().unwrap();
        assert_says(&output, 2, &[said]);
        assert!(!stderr(&output).contains("Running the tests"), "{more:?}");
    }
    let output = repair(scratch.path(), &repository, &["--test", "test_total"]);
    assert_says(&output, 2, &[&format!("is it {TOTAL}?")]);
    let untested = scratch.path().join("untested");
    fs::create_dir(&untested).unwrap();
    fs::write(untested.join("a.py"), "def a():\n    return 1\n").unwrap();
    let output = repair(
        scratch.path(),
        untested.to_str().unwrap(),
        &["--framework", "unittest"],
    );
    assert_says(&output, 2, &["no tests were found"]);
}

#[test]
fn a_program_of_a_relative_path_runs_the_tests() {
    let scratch = TempDir::new().unwrap();
    let repository = shop(scratch.path());
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", "venv"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    assert_success(&made);
    let arguments = [
        "repair",
        "--repo",
        &repository,
        "--issue",
        "the total is off",
    ];
    let mut command = etude(scratch.path(), arguments);
    command
        .args(["--python", "venv/bin/python3"])
        .current_dir(scratch.path());
    assert_success(&command.output().unwrap());
}

fn task(id: &str, gold: &str) -> Value {
    json!({
        "id": id, "place": {"folder": "shop"},
        "public": {"repo": "shop", "issue": {"title": "off", "body": ""}, "framework": "unittest"},
        "checks": {"fail_to_pass": [TOTAL], "pass_to_pass": ["tests.test_price.TestPrice.test_cheapest"]},
        "gold": {"patch": gold},
    })
}

fn gold(line: &str) -> String {
    format!(
        "--- a/shop/price.py\n+++ b/shop/price.py\n@@ -4 +4 @@\n-        amount -= price\n+        {line}\n"
    )
}

#[test]
fn tasks_are_checked_by_their_gold_patches() {
    let scratch = TempDir::new().unwrap();
    shop(scratch.path());
    let file = scratch.path().join("tasks.jsonl");
    let check = |tasks: &[Value]| {
        let lines: String = tasks.iter().map(|task| format!("{task}\n")).collect();
        fs::write(&file, lines).unwrap();
        let mut command = etude(scratch.path(), ["data", "check", file.to_str().unwrap()]);
        command.output().unwrap()
    };
    let good = task("good", &gold("amount += price"));
    let output = check(std::slice::from_ref(&good));
    assert_success(&output);
    let said = stdout(&output);
    assert!(
        said.contains("1 task of repair, 1 package, 0 bad rows"),
        "{said}"
    );
    let idle = task("idle", &gold("amount -= 2 * price"));
    let output = check(&[good, idle]);
    assert_says(
        &output,
        1,
        &["idle: with its gold patch", TOTAL, "1 task is not solved"],
    );
    let elsewhere = gold("amount += price").replace("-= price", "*= price");
    let output = check(&[task("elsewhere", &elsewhere)]);
    assert_says(&output, 1, &["gold.patch", "does not fit the sources"]);
}

#[test]
fn tasks_in_images_ask_for_containers() {
    let scratch = TempDir::new().unwrap();
    let mut task = task("boxed", "");
    task["place"] = json!({"image": {"name": "shop:1", "work_tree": "/testbed"}});
    let file = scratch.path().join("tasks.jsonl");
    fs::write(&file, format!("{task}\n")).unwrap();
    let recipe = package("../../recipes/repair/smoke.toml");
    let arguments = ["eval".as_ref(), recipe.as_os_str()];
    let mut command = etude(scratch.path(), arguments);
    command
        .arg("--dataset")
        .arg(&file)
        .args(["--limit", "1"])
        .current_dir(scratch.path());
    let output = command.output().unwrap();
    assert_says(&output, 2, &["boxed", "--sandbox-backend docker"]);
}

#[test]
fn a_folder_without_python_leaves_no_copy() {
    let scratch = TempDir::new().unwrap();
    let folder = scratch.path().join("notes");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "nothing").unwrap();
    let out = scratch.path().join("tasks.jsonl");
    let arguments = [
        "data",
        "mutate",
        folder.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ];
    let output = etude(scratch.path(), arguments).output().unwrap();
    assert_says(&output, 2, &["has no file of Python"]);
    assert!(!scratch.path().join("tasks.sources").exists());
}
