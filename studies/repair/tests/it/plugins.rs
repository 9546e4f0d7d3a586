//! Plugins of pytest that are installed: loaded for the tests that ask for them, and kept from what cannot be watched.

use std::time::Duration;

use crate::place::{Place, all, only, with};
use judge::pytest::TestStatus::{Error, Failed, Passed};
use repair::{
    TestFramework::Pytest,
    workplace::{Ended, TestRequest, TestRun},
};

/// A fixture, a mark that decides what becomes of a test, a setting of its own, and a word on its being here.
const PLUGIN: &str = "\
import os
import pytest

os.environ['PLUGIN'] = 'loaded'


@pytest.fixture
def two():
    return 2


def pytest_addoption(parser):
    parser.addini('double_mode', 'nothing')
    parser.addoption('--numprocesses', default=None)
    parser.addoption('--dist', default='no')
    parser.addoption('--tx', action='append', default=[])


def pytest_configure(config):
    config.addinivalue_line('markers', 'halved: passes where it is half')
    assert config.option.dist == 'no' and config.option.tx == []


@pytest.fixture(autouse=True)
def halved(request):
    if request.node.get_closest_marker('halved'):
        request.node.obj.__globals__['FACTOR'] = 1
    yield
    request.node.obj.__globals__['FACTOR'] = 2
";

/// As a package is installed, in the work tree, from where modules are read too.
const INSTALLED: [(&str, &str); 3] = [
    ("plug.py", PLUGIN),
    ("plug-1.0.dist-info/METADATA", "Name: plug\nVersion: 1.0\n"),
    (
        "plug-1.0.dist-info/entry_points.txt",
        "[pytest11]\nplug = plug\n",
    ),
];

/// That no plugin is loaded, or that it is.
const BARE: &str = "\
import os


def test_bare():
    assert 'PLUGIN' not in os.environ
";
const ASKING: &str = "\
import os


def test_two(two):
    assert two == 2


def test_beside():
    assert 'PLUGIN' in os.environ
";

async fn place(more: &[(&str, &str)]) -> Option<Place> {
    let mut files = INSTALLED.to_vec();
    files.extend([("test_asking.py", ASKING), ("test_bare.py", BARE)]);
    files.extend(more);
    Place::new(Pytest, &files).await
}

async fn run(place: &Place, request: TestRequest) -> TestRun {
    let mut workplace = place.open().await;
    let run = workplace.run_tests(&[request]).await.unwrap().remove(0);
    workplace.close().await.unwrap();
    assert_eq!(run.ended, Ended::Finished, "{}", run.output);
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixture_that_nobody_defines_has_the_plugins_loaded() {
    let Some(place) = place(&[]).await else {
        return;
    };
    let whole = run(&place, all()).await;
    assert_eq!(whole.statuses["test_asking.py::test_two"], Passed);
    assert_eq!(whole.statuses["test_asking.py::test_beside"], Passed);
    assert_eq!(whole.statuses["test_bare.py::test_bare"], Failed);
    assert_eq!(
        whole.order.len(),
        3,
        "what the first attempt said is forgotten"
    );
    assert!(whole.with_plugins);
    // Runs that ask for none are without them, and each says the same whatever ran before it.
    let bare = only(&["test_bare.py"]);
    let asking = only(&["test_asking.py"]);
    let mut workplace = place.open().await;
    let requests = [asking.clone(), bare.clone(), asking, bare];
    for run in workplace.run_tests(&requests).await.unwrap() {
        assert!(
            run.statuses.values().all(|status| *status == Passed),
            "{run:?}"
        );
    }
    // Whoever has seen the run of all has the others made alike.
    workplace.load_plugins(whole.with_plugins);
    for run in workplace.run_tests(&requests).await.unwrap() {
        let bare = run.statuses.get("test_bare.py::test_bare");
        assert!(
            run.with_plugins && bare.is_none_or(|status| *status == Failed),
            "{run:?}"
        );
    }
    workplace.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_settings_options_and_what_cannot_be_read_are_asked_for_too() {
    let cases = [
        (
            "test_bare.py",
            "import pytest\nFACTOR = 2\n\n\n@pytest.mark.halved\ndef test_bare():\n    assert FACTOR == 1\n",
        ),
        (
            "test_bare.py",
            "import os\n\n\ndef test_beside():\n    assert 'PLUGIN' in os.environ\n\n\nasync def test_bare():\n    pass\n",
        ),
        (
            "test_bare.py",
            "import os\n\nos.environ['PLUGIN']\n\n\ndef test_bare():\n    pass\n",
        ),
        ("pytest.ini", "[pytest]\ndouble_mode = on\n"),
        (
            "pytest.ini",
            "[pytest]\naddopts = --numprocesses 4 --dist load --tx 4*popen\n",
        ),
    ];
    for (file, text) in cases {
        let Some(place) = place(&[]).await else {
            return;
        };
        for stop_at_failure in [false, true] {
            let request = TestRequest {
                ids: vec!["test_bare.py".to_owned()],
                stop_at_failure,
                ..with(file, text)
            };
            let run = run(&place, request).await;
            let (name, expected) = match file {
                "pytest.ini" => ("test_bare", Failed),
                _ if text.contains("beside") => ("test_beside", Passed),
                _ => ("test_bare", Passed),
            };
            let status = run.statuses.get(&format!("test_bare.py::{name}"));
            assert_eq!(status, Some(&expected), "{file}: {text}: {run:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_provides_fails_as_before() {
    let absent = "def test_absent(of_nobody):\n    pass\n\n\ndef test_other():\n    pass\n";
    let options = ("pytest.ini", "[pytest]\naddopts = --of-nobody\n");
    let Some(place) = place(&[("test_absent.py", absent), options]).await else {
        return;
    };
    let run = run(&place, only(&["test_absent.py"])).await;
    assert_eq!(run.statuses["test_absent.py::test_absent"], Error);
    assert_eq!(run.statuses["test_absent.py::test_other"], Passed);
    assert_eq!(
        run.failures["test_absent.py::test_absent"].kind,
        "FixtureLookupError"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_and_limits_hold_with_plugins() {
    let Some(place) = place(&[("source.py", "def double(x):\n    return 2 * x\n")]).await else {
        return;
    };
    let text = "import source\n\n\ndef test_double(two):\n    assert source.double(two) == 4\n";
    let request = TestRequest {
        trace: true,
        wall: Duration::from_secs(20),
        ids: vec!["test_bare.py".to_owned()],
        ..with("test_bare.py", text)
    };
    let run = run(&place, request).await;
    assert_eq!(run.lines["test_bare.py::test_double"]["source.py"], [2]);
    assert_eq!(run.lines[""]["source.py"], [1]);
}
