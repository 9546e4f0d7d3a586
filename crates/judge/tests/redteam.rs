//! Programs that would be rewarded without computing what is asked, against every kind of tests.
//!
//! Each folder of `cases` holds programs of one way to cheat, but for the first, whose programs are honest
//! and pass: a suite that refuses everything proves nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use code::RelativePath;
use futures::StreamExt;
use judge::{Judge, JudgeConfig, JudgeParts, Tests, Value};
use sandbox::{Config, Language, Limits, Sandbox, Toolchains};

/// What `f` must return for 0; it is in no argument. Programs that search for it put the digits together,
/// so that they do not find themselves.
const SECRET: i64 = 590_127_364_000;

/// What makes a script of a program that defines `f`.
const AS_SCRIPT: &str = "\nimport sys\nprint(f(int(sys.stdin.readline())))\n";

/// Programs that run at the same time.
const SLOTS: usize = 16;

struct Form {
    name: &'static str,
    tests: Tests,
    is_script: bool,
    /// The folders that are tried; all of them by default. Tests of kinds that do not withstand cheats
    /// are not rewarded from, and notice some of them.
    only: Option<&'static [&'static str]>,
}

/// What depends on how a script compares.
const EQUALITY: Option<&[&str]> = Some(&["001_honest", "003_equal_to_everything"]);

fn forms(with_pytest: bool) -> Vec<Form> {
    let cases = || (0..3).map(|x| (vec![Value::Int(x)], Value::Int(SECRET + x)));
    let lines = (0..3).map(|x| (format!("{x}\n"), format!("{}\n", SECRET + x)));
    let asserts = (0..3).map(|x| format!("assert f({x}) == {}", SECRET + x));
    let looped = format!("for x in range(3):\n    assert f(x) == {SECRET} + x\n");
    let near = format!(
        "import math\nfor x in range(3):\n    assert math.fabs(f(x) - ({SECRET} + x)) < 0.5\n"
    );
    let beside = format!("import builtins\n{looped}");
    let with_candidate = format!(
        "def check(candidate):\n    for x in range(3):\n        assert candidate(x) == {SECRET} + x\ncheck(f)\n"
    );
    let script = format!(
        "import subprocess, sys\nfor x in range(3):\n    run = subprocess.run([sys.executable, 'program'], input=str(x), capture_output=True, text=True)\n    if run.returncode or run.stdout.strip() != str({SECRET} + x): sys.exit(1)\n"
    );
    let form = |name, tests| Form {
        name,
        tests,
        is_script: false,
        only: None,
    };
    let mut forms = vec![
        form("function", Tests::function("f", cases())),
        form("calls", Tests::calls("f", cases())),
        form("asserts", Tests::asserts(asserts)),
        form("assert_script", Tests::assert_script(looped, None)),
        Form {
            only: EQUALITY,
            ..form(
                "assert_script of differences",
                Tests::assert_script(near, None),
            )
        },
        Form {
            only: EQUALITY,
            ..form(
                "assert_script with a candidate",
                Tests::assert_script(with_candidate, Some("f".to_owned())),
            )
        },
        form("assert_script beside", Tests::assert_script(beside, None)),
        Form {
            is_script: true,
            ..form("stdio", Tests::stdio(lines))
        },
        Form {
            is_script: true,
            only: Some(&["001_honest", "002_leaves", "005_prints"]),
            ..form("script", Tests::script(Language::Python, script))
        },
    ];
    if with_pytest {
        let path = RelativePath::new("test_a.py").unwrap();
        let text = format!(
            "from solution import f\n\ndef test_all():\n    for x in range(3):\n        assert f(x) == {SECRET} + x\n"
        );
        forms.push(Form {
            only: Some(&["001_honest", "002_leaves", "004_patches", "005_prints"]),
            ..form(
                "pytest",
                Tests::pytest(
                    BTreeMap::from([(path, text)]),
                    vec!["test_a.py::test_all".to_owned()],
                    vec![],
                ),
            )
        });
    }
    forms
}

fn judge() -> (Judge, bool) {
    let python = std::env::var_os("ETUDE_TEST_PYTHON");
    let search = std::env::var_os("PATH").unwrap_or_default();
    let search: Vec<_> = std::env::split_paths(&search).collect();
    let wanted = [Language::Pytest];
    let toolchains = Toolchains::probe(&wanted, python.as_deref().map(Path::new), &search);
    let missing = toolchains.get(Language::Pytest).err();
    if let Some(missing) = &missing {
        eprintln!(
            "SKIPPED for pytest: {missing}; ETUDE_TEST_PYTHON names an interpreter that has it"
        );
    }
    let with_pytest = missing.is_none();
    let sandbox = Sandbox::start(Config {
        readable: toolchains.readable(),
        // Many of the programs do nothing but wait for their end.
        ..Config::new(SLOTS)
    });
    let mut config = JudgeConfig::small();
    config.limits.cpu = Duration::from_millis(600);
    config.limits.wall = Duration::from_millis(1200);
    config.limits.output_max = 1 << 20;
    let parts = JudgeParts {
        toolchains,
        store: None,
    };
    (Judge::with(sandbox.unwrap(), config, parts), with_pytest)
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_programs_that_compute_are_rewarded() {
    let (judge, with_pytest) = judge();
    let forms = forms(with_pytest);
    let folders = listed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"));
    let programs: Vec<PathBuf> = folders.iter().flat_map(|folder| listed(folder)).collect();
    let runs = programs
        .iter()
        .flat_map(|path| forms.iter().map(move |form| (path, form)));
    let told: Vec<Option<String>> = futures::stream::iter(runs)
        .map(|(path, form)| judged(&judge, path, form))
        .buffered(SLOTS)
        .collect()
        .await;
    let faults: Vec<String> = told.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(judge.stats().sandbox_errors, 0);
    for form in forms {
        let apart = !["pytest", "script"].contains(&form.name);
        assert_eq!(form.tests.withstand_cheats(), apart, "{}", form.name);
    }
}

/// What is wrong with the verdict on a program, if anything is.
async fn judged(judge: &Judge, path: &Path, form: &Form) -> Option<String> {
    let case = path.parent().unwrap().file_name().unwrap();
    let case = case.to_str().unwrap();
    if form.only.is_some_and(|only| !only.contains(&case)) {
        return None;
    }
    let text = fs::read_to_string(path).unwrap();
    let is_honest = case == "001_honest"
        // Printed, a number and its text are the same.
        || form.is_script && path.ends_with("009_values_alike/text.py");
    let program = match form.is_script {
        true => text + AS_SCRIPT,
        false => text,
    };
    let small = JudgeConfig::small().limits;
    let judge = match form.name {
        "pytest" | "script" => judge.within(Limits {
            cpu: Duration::from_secs(5),
            ..small
        }),
        _ if is_honest => judge.within(small),
        _ => judge.clone(),
    };
    let verdict = judge.verdict(&program, &form.tests).await.unwrap();
    let rewarded = verdict.passed || !is_honest && verdict.n_passed > 0;
    let told = || format!("{} under {}: {verdict:?}", path.display(), form.name);
    (rewarded != is_honest).then(told)
}
