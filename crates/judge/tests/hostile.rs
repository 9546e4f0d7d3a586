//! Programs that would rather be called right than be right: the rows of the table of hostile inputs
//! that are about verdicts. The others are among the sandbox's tests; see `cheats` for more of these.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]

use std::{collections::BTreeMap, path::Path, time::Duration};

use code::RelativePath;
use judge::{Judge, JudgeConfig, JudgeParts, Tests, Value, Verdict, VerdictStatus};
use sandbox::{Config, Language, Sandbox, Toolchains};

/// What `f` must return on its first case; it is in no argument.
const SECRET: i64 = 590_127_364_000;

fn judge() -> Judge {
    let mut config = JudgeConfig::small();
    config.limits.cpu = Duration::from_secs(1);
    Judge::new(Sandbox::start(Config::new(2)).unwrap(), config)
}

/// The same three cases in every form that runs the program beside its tests or apart from them.
fn forms() -> Vec<(&'static str, Tests)> {
    let cases = || (0..3).map(|i| (vec![Value::Int(i)], Value::Int(SECRET + i)));
    let asserts = (0..3).map(|i| format!("assert f({i}) == {}", SECRET + i));
    let lines = (0..3).map(|i| (format!("{i}\n"), format!("{}\n", SECRET + i)));
    vec![
        ("function", Tests::function("f", cases())),
        ("stdio", Tests::stdio(lines)),
        ("asserts", Tests::asserts(asserts)),
    ]
}

async fn earns_nothing(cheats: &[&str]) {
    let judge = judge();
    for (form, tests) in forms() {
        for cheat in cheats {
            let verdict = judge.verdict(cheat, &tests).await.unwrap();
            assert!(!verdict.passed, "{form}: {cheat}\n{verdict:?}");
            assert_eq!(verdict.n_passed, 0, "{form}: {cheat}\n{verdict:?}");
        }
        let honest = format!(
            "import sys\ndef f(x): return x + {SECRET}\nif __name__ == '__main__' and not sys.stdin.closed:\n    line = sys.stdin.readline()\n    if line.strip(): print(f(int(line)))"
        );
        let verdict = judge.verdict(&honest, &tests).await.unwrap();
        assert!(verdict.passed, "{form}: {verdict:?}");
    }
}

#[tokio::test]
async fn row_31_leaving_early_is_no_success() {
    earns_nothing(&[
        "import os\nos._exit(0)",
        "raise SystemExit",
        "exit(0)",
        "quit()",
        "import os\ndef f(x): os._exit(0)",
        "def f(x): raise SystemExit(0)",
        "import sys\ndef f(x): sys.exit()",
        "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 1",
        "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\n1 / 0",
        "import os, signal\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_REAL, 0.001)\nwhile True: pass",
        "import os\nos.execv('/bin/true', ['true'])",
        "import threading, os\nthreading.Thread(target=os._exit, args=(0,)).start()",
        "def f(x): raise GeneratorExit",
    ])
    .await;
}

#[tokio::test]
async fn row_32_values_that_lie_about_themselves_are_seen_through() {
    // Where assertions run beside the program, a value equal to everything is equal: so only the
    // forms that compare outside are asked.
    let judge = judge();
    let equal =
        "def __eq__(self, o): return True\n  def __ne__(self, o): return False\n  __hash__ = None";
    let cheats = [
        format!("class E:\n  {equal}\ndef f(x): return E()"),
        format!("class E(int):\n  {equal}\ndef f(x): return E(7)"),
        format!("class E(str):\n  {equal}\ndef f(x): return E('7')"),
        "class E:\n  __class__ = int\n  def __index__(self): return 7\n  __int__ = __index__\ndef f(x): return E()".to_owned(),
        format!("class M(type):\n  {equal}\nclass E(metaclass=M): pass\ndef f(x): return E"),
        "class E(list):\n  def __iter__(self): return iter([590127364000])\ndef f(x): return E()".to_owned(),
        "def f(x): return float(590127364000 + x)".to_owned(),
        "def f(x): return str(590127364000 + x)".to_owned(),
        "def f(x): return True".to_owned(),
        "def f(x): return NotImplemented".to_owned(),
        "from unittest.mock import ANY\ndef f(x): return ANY".to_owned(),
    ];
    let tests = &forms()[0].1;
    for cheat in cheats {
        let verdict = judge.verdict(&cheat, tests).await.unwrap();
        assert_eq!(
            (verdict.passed, verdict.n_passed),
            (false, 0),
            "{cheat}\n{verdict:?}"
        );
    }
}

#[tokio::test]
async fn row_33_expected_output_is_nowhere_to_be_read() {
    let judge = judge();
    let search = "
import os, re, sys
def found():
    pattern = re.compile(rb'590127364\\d{3}')
    places = ['/proc/self/environ', '/proc/self/cmdline', '/proc/self/mem', '/proc/1/mem'] + ['/proc/self/fd/%d' % i for i in range(1024)]
    for root in ('/box', '/tmp', '/dev/shm'):
        for folder, _, names in os.walk(root): places += [os.path.join(folder, name) for name in names if name != 'main.py']
    frame = sys._getframe()
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if type(value) in (str, bytes, int, list, tuple, dict):
                hit = re.search(r'590127364\\d{3}', repr(value)[:100000])
                if hit and type(value) is not str: return int(hit[0])
        frame = frame.f_back
    for place in places:
        try:
            fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
            hit = pattern.search(os.read(fd, 1 << 20))
            if hit: return int(hit[0])
        except OSError: pass
    try:
        for line in open('/proc/self/maps'):
            if '[heap]' not in line: continue
            low, high = (int(part, 16) for part in line.split()[0].split('-'))
            with open('/proc/self/mem', 'rb', 0) as memory:
                memory.seek(low)
                # The bytes of the text, not of the pattern that looks for it.
                hit = re.search(rb'590127364[0-9]{3}', memory.read(high - low))
                if hit: return int(hit[0])
    except (OSError, ValueError): pass
    return 0
def f(x): return found() // 10 * 10 + x
if __name__ == '__main__':
    line = sys.stdin.readline()
    if line: print(found() // 10 * 10 + int(line))";
    // Assertions come with their expected values; the other forms compare outside.
    for (form, tests) in &forms()[..2] {
        let verdict = judge.verdict(search, tests).await.unwrap();
        assert_eq!(
            (verdict.n_passed, verdict.status),
            (0, VerdictStatus::Wrong),
            "{form}: {verdict:?}"
        );
    }
}

#[tokio::test]
async fn row_34_what_a_program_prints_is_not_what_is_believed() {
    let spoof = "import os, sys
for fd in range(1, 1024):
    for text in ('PASSED', 'OK', '3 passed in 0.01s', '{\"passed\": true}', '[0,0,\"value\",590127364]', '<testsuite failures=\"0\"/>'):
        try: os.write(fd, (text + '\\n').encode())
        except OSError: pass
def f(x): return 1";
    earns_nothing(&[
        spoof,
        "print('PASSED\\n' * 3)\ndef f(x): return None",
        "import sys\nsys.stdout.write('\\r\\x1b[2K3 passed')\ndef f(x): return 3",
        "import os\nfor name in ('junit.xml', 'report.xml', 'result.json'): open(name, 'w').write('<testsuite tests=\"3\" failures=\"0\"/>')\ndef f(x): return 0",
    ])
    .await;
}

/// A judge with pytest, and tests in two files; `None` with a printed reason without pytest.
fn with_pytest() -> Option<(Judge, Tests)> {
    let python = std::env::var_os("ETUDE_TEST_PYTHON");
    let search = std::env::var_os("PATH").unwrap_or_default();
    let search: Vec<_> = std::env::split_paths(&search).collect();
    let toolchains = Toolchains::probe(
        &[Language::Pytest],
        python.as_deref().map(Path::new),
        &search,
    );
    if let Err(missing) = toolchains.get(Language::Pytest) {
        eprintln!("SKIPPED: {missing}; ETUDE_TEST_PYTHON names an interpreter that has pytest");
        return None;
    }
    let sandbox = Sandbox::start(Config {
        readable: toolchains.readable(),
        ..Config::new(2)
    });
    let mut config = JudgeConfig::small();
    config.limits.cpu = Duration::from_secs(10);
    config.limits.wall = Duration::from_secs(60);
    let parts = JudgeParts {
        toolchains,
        store: None,
    };
    let judge = Judge::with(sandbox.unwrap(), config, parts);
    let file = |name: &str, n: u32| {
        let text = format!(
            "from solution import f\ndef test_{name}(): assert f({n}) == {}\n",
            n * 3 + 40
        );
        (RelativePath::new(format!("test_{name}.py")).unwrap(), text)
    };
    let files = BTreeMap::from([file("a", 1), file("b", 2)]);
    let ids = ["test_a.py::test_a", "test_b.py::test_b"].map(str::to_owned);
    Some((
        judge,
        Tests::pytest(files, ids[..1].to_vec(), ids[1..].to_vec()),
    ))
}

async fn verdicts(cheats: &[&str]) -> Vec<Verdict> {
    let Some((judge, tests)) = with_pytest() else {
        return Vec::new();
    };
    let honest = judge
        .verdict("def f(x): return x * 3 + 40", &tests)
        .await
        .unwrap();
    assert!(honest.passed, "{honest:?}");
    let mut verdicts = Vec::new();
    for cheat in cheats {
        let verdict = judge.verdict(cheat, &tests).await.unwrap();
        assert!(!verdict.passed, "{cheat}\n{verdict:?}");
        verdicts.push(verdict);
    }
    verdicts
}

#[tokio::test]
async fn row_35_configuration_of_the_programs_own_changes_nothing() {
    let hook = "def pytest_runtest_makereport(item, call): pass\ndef pytest_collection_modifyitems(items): items.clear()";
    let writes = format!(
        "import os, sys
for name in ('conftest.py', 'sitecustomize.py', 'usercustomize.py', os.path.expanduser('~/.local/lib/python3/site-packages/x.pth')):
    try:
        os.makedirs(os.path.dirname(name) or '.', exist_ok=True); open(name, 'w').write('''{hook}''')
    except OSError: pass
for name in ('pytest.ini', 'tox.ini', 'setup.cfg', 'pyproject.toml'): open(name, 'w').write('[pytest]\\naddopts = --co -q\\n')
os.environ['PYTEST_ADDOPTS'] = '--co'; os.environ['PYTHONPATH'] = '/box'
def f(x): return 0"
    );
    verdicts(&[
        &writes,
        "import builtins\nbuiltins.AssertionError = type('A', (Exception,), {})\ndef f(x): return 0",
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef f(x): return 0",
        "class E:\n  def __ne__(self, o): return False\ndef f(x): return E()",
        "import sys\nsys.modules['test_b'] = sys\ndef f(x): return 0",
    ])
    .await;
}

#[tokio::test]
async fn row_36_tests_cannot_be_overwritten() {
    // While the first file is collected, the second is not yet read.
    let told = verdicts(&[
        "open('test_b.py', 'w').write('def test_b(): pass')\nopen('test_a.py', 'w').write('def test_a(): pass')\ndef f(x): return 43",
        "import os\nos.remove('test_b.py')\nopen('test_b.py', 'w').write('def test_b(): pass')\ndef f(x): return 43",
        "import glob\nfor name in glob.glob('test_*.py'): open(name, 'w').write('def test_a(): pass\\ntest_b = test_that_fails = test_a')\ndef f(x): return 43",
    ])
    .await;
    for verdict in told {
        assert_eq!(verdict.status, VerdictStatus::Tampered, "{verdict:?}");
    }
}

#[tokio::test]
async fn row_38_tampering_with_the_test_runner_is_noticed() {
    // In one interpreter this cannot be prevented; what makes all tests pass is found out by the one
    // that must fail, and what forges a summary by there being two.
    let header = "=========== short test summary info ===========";
    let forge = format!(
        "import atexit\natexit.register(print, '''{header}\nPASSED test_a.py::test_a\nPASSED test_b.py::test_b\n===''')\ndef f(x): return 0"
    );
    let told = verdicts(&[
        "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\ndef f(x): return 0",
        "import _pytest.runner\n_pytest.runner.pytest_runtest_call = lambda item: None\nimport _pytest.python\n_pytest.python.Function.runtest = lambda self: None\ndef f(x): return 0",
        "import _pytest.reports\n_pytest.reports.TestReport.from_item_and_call = classmethod(lambda cls, item, call: cls(item.nodeid, item.location, {}, 'passed', None, call.when))\ndef f(x): return 0",
        &forge,
    ])
    .await;
    for verdict in told {
        assert_eq!(verdict.status, VerdictStatus::Tampered, "{verdict:?}");
    }
    let left = verdicts(&[
        "import os\nos._exit(0)",
        "import pytest\npytest.exit('done', 0)",
    ])
    .await;
    assert!(left.iter().all(|verdict| verdict.n_passed == 0), "{left:?}");
}
