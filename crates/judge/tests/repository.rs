//! Tests of a repository in a session: honest patches pass, and patches that go for the tests do not.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

use std::{fs, path::PathBuf};

use code::RelativePath;
use judge::{
    CaseResult,
    pytest::{Graded, Pristine, in_session},
};
use sandbox::{Language, Limits, Toolchains};
use session::{
    Backend, Command, Image,
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
};

const TESTS: &str = "from package import double\n\n\n\
    def test_double():\n    assert double(2) == 4\n\n\n\
    def test_zero():\n    assert double(0) == 0\n";

/// What becomes of a script that changes the work tree, graded by the task's tests.
async fn graded(script: &str) -> Option<Graded> {
    graded_by(script, TESTS, &[]).await
}

/// The same by other tests, in a work tree that has more files.
async fn graded_by(script: &str, tests: &str, more: &[(&str, &str)]) -> Option<Graded> {
    let asked = std::env::var_os("ETUDE_TEST_PYTHON").map(PathBuf::from);
    let search: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
    let toolchains = Toolchains::probe(&[Language::Pytest], asked.as_deref(), &search);
    let job = toolchains.job(Language::Pytest, "", Limits::SMALL);
    let Ok(sandbox::Program::Exec { argv }) = job.map(|job| job.program) else {
        eprintln!(
            "SKIPPED: there is no pytest; ETUDE_TEST_PYTHON names an interpreter that has it"
        );
        return None;
    };
    let python = argv[0].clone();
    let place = tempfile::tempdir().unwrap();
    let checkout = place.path().join("checkout");
    fs::create_dir_all(checkout.join("tests")).unwrap();
    fs::write(
        checkout.join("package.py"),
        "def double(x):\n    return x\n",
    )
    .unwrap();
    for (path, text) in more {
        let path = checkout.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let old = tests.split("def test_double").next().unwrap();
    fs::write(checkout.join("tests/test_package.py"), old).unwrap();
    fs::write(checkout.join("tests/conftest.py"), "# nothing\n").unwrap();
    let leases = Leases::open(place.path().join("leases"), TIME_TO_LIVE).unwrap();
    let config = LocalConfig {
        search,
        readable: toolchains.readable(),
        ..LocalConfig::new(leases, place.path().join("work"))
    };
    let backend = LocalBackend::open(config).await.unwrap();
    let mut session = backend.start(&Image::checkout(checkout)).await.unwrap();
    let s = session.as_mut();
    let ids = ["double", "zero"].map(|name| format!("tests/test_package.py::test_{name}"));
    let pristine = Pristine::take(s, ids.iter().map(String::as_str))
        .await
        .unwrap()
        // As a task brings it: the repository does not have the test yet.
        .with_file(
            RelativePath::new("tests/test_package.py").unwrap(),
            tests.into(),
        );
    let changed = s
        .exec(&Command::shell(script, Limits::SMALL))
        .await
        .unwrap();
    assert!(changed.is_ok(), "{}", changed.stderr.text());
    let [double, zero] = ids.map(|id| vec![id]);
    let graded = in_session(s, &python, &pristine, &double, &zero, Limits::SMALL).await;
    let left = s.exec(&Command::shell("ls", Limits::SMALL)).await.unwrap();
    assert!(!left.stdout.text().contains("test_"), "the canary stays");
    session.stop().await.unwrap();
    Some(graded.unwrap().0)
}

const FIX: &str = "printf 'def double(x):\n    return x * 2\n' > package.py";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_honest_patch_is_graded_by_its_tests() {
    let Some(before) = graded("true").await else {
        return;
    };
    assert_eq!(before.fail_to_pass, [CaseResult::Wrong]);
    assert_eq!(before.pass_to_pass, [CaseResult::Passed]);
    assert!(!before.tampered && !before.resolved());
    assert!(graded(FIX).await.unwrap().resolved());
}

/// A plugin as it is installed, with a fixture.
const PLUGIN: [(&str, &str); 3] = [
    (
        "plug.py",
        "import pytest\n\n\n@pytest.fixture\ndef two():\n    return 2\n",
    ),
    ("plug-1.0.dist-info/METADATA", "Name: plug\nVersion: 1.0\n"),
    (
        "plug-1.0.dist-info/entry_points.txt",
        "[pytest11]\nplug = plug\n",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_are_loaded_where_tests_ask_for_them_and_patches_bring_none() {
    let tests = TESTS
        .replace("test_double()", "test_double(two)")
        .replace("double(2)", "double(two)");
    let Some(fixed) = graded_by(FIX, &tests, &PLUGIN).await else {
        return;
    };
    assert!(fixed.resolved(), "{fixed:?}");
    let wrong = graded_by("true", &tests, &PLUGIN).await.unwrap();
    assert_eq!(wrong.fail_to_pass, [CaseResult::Wrong]);
    let unread = [(
        "pytest.ini",
        "[pytest]\naddopts = --of-a-plugin-that-is-not-here\n",
    )];
    assert!(graded_by(FIX, TESTS, &unread).await.unwrap().resolved());
    // Plugins are there for those too whose options cannot be read.
    let both = [&PLUGIN[..], &unread[..]].concat();
    assert!(graded_by(FIX, &tests, &both).await.unwrap().resolved());
    // A file of tests that cannot be imported without the plugin.
    let reads = TESTS.replace(
        "\n\n\ndef test_double",
        "\nimport os\n\nos.environ['PLUG']\n\n\ndef test_double",
    );
    let sets = ("plug.py", "import os\n\nos.environ['PLUG'] = 'loaded'\n");
    let here = [sets, PLUGIN[1], PLUGIN[2]];
    assert!(graded_by(FIX, &reads, &here).await.unwrap().resolved());
    // Without the plugin's metadata the fixture is nobody's; a patch that brings it changes nothing.
    let brought = format!(
        "{FIX}; mkdir plug-1.0.dist-info; printf 'Name: plug\nVersion: 1.0\n' > plug-1.0.dist-info/METADATA; \
         printf '[pytest11]\nplug = plug\n' > plug-1.0.dist-info/entry_points.txt"
    );
    let graded = graded_by(&brought, &tests, &PLUGIN[..1]).await.unwrap();
    assert!(
        matches!(graded.fail_to_pass[..], [CaseResult::Error(_)]),
        "{graded:?}"
    );
    assert!(!graded.resolved());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_patch_does_to_the_tests_is_undone() {
    for script in [
        // The tests themselves.
        "echo 'def test_double(): pass\ndef test_zero(): pass' > tests/test_package.py",
        // What pytest says of them.
        "printf 'import pytest\n@pytest.hookimpl(hookwrapper=True)\n\
         def pytest_runtest_makereport():\n    told = yield\n    told.get_result().outcome = \"passed\"\n' \
         | tee conftest.py > tests/conftest.py",
        // Where it looks for them.
        "mkdir other; printf 'def test_double(): pass\n' > other/test_package.py; \
         printf '[pytest]\naddopts = --deselect tests/test_package.py::test_double\n' > pytest.ini",
        "rm tests/test_package.py; printf 'def test_double(): pass\n' > here.py; \
         ln -s ../here.py tests/test_package.py",
    ] {
        let Some(graded) = graded(script).await else {
            return;
        };
        assert_eq!(graded.fail_to_pass, [CaseResult::Wrong], "{script}");
        assert!(!graded.resolved(), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_that_change_while_they_run_have_not_passed() {
    for script in [
        // The program writes over its tests when they import it, and leaves a conftest for later.
        "printf 'import pathlib\npathlib.Path(\"tests/test_package.py\").write_text(\"\")\n\
         def double(x):\n    return x * 2\n' > package.py",
        "printf 'open(\"conftest.py\", \"w\").close()\ndef double(x):\n    return x * 2\n' > package.py",
        // Nothing can be put where a folder stands.
        "mkdir -p conftest.py/full",
        "rm -r tests; ln -s /tmp tests",
    ] {
        let Some(graded) = graded(script).await else {
            return;
        };
        assert!(graded.tampered, "{script}");
        assert_eq!(graded.fail_to_pass, [CaseResult::Missing], "{script}");
        assert_eq!(graded.pass_to_pass, [CaseResult::Missing], "{script}");
    }
}
