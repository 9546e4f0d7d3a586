//! Every form of tests against programs that pass, fail and cheat.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::{collections::BTreeMap, path::Path};

use code::RelativePath;
use judge::{
    CaseResult, Comparator, Judge, JudgeConfig, JudgeError, JudgeParts, Scoring, Submission, Tests,
    Value, VerdictStatus,
};
use sandbox::{Config, Language, Sandbox, Toolchains};

fn judge() -> Judge {
    Judge::new(
        Sandbox::start(Config::new(2)).unwrap(),
        JudgeConfig::small(),
    )
}

fn parts(toolchains: Toolchains) -> JudgeParts {
    JudgeParts {
        toolchains,
        store: None,
    }
}

async fn status(judge: &Judge, program: &str, tests: &Tests) -> VerdictStatus {
    judge.verdict(program, tests).await.unwrap().status
}

#[tokio::test]
async fn assertions_compare_as_python_does() {
    let judge = judge();
    let program = "\
from collections import Counter, defaultdict
def double(x): return 2 * x
def pairs(n): return [(i, str(i)) for i in range(n)]
def none(): pass
def count(s): return Counter(s)
def third(): return 1 / 3
";
    let passing = [
        "assert double(2) == 4",
        "assert double(2) == 4.0, 'as a float'",
        "assert 4 == double(2)",
        "assert double('a') == 'aa'",
        "assert pairs(2) == [(0, '0'), (1, '1')]",
        "assert none() is None",
        "assert not none()",
        "assert double(1)",
        "assert count('aab') == {'a': 2, 'b': 1}",
        "assert abs(third() - 0.333) < 0.001",
        "import math\nassert math.isclose(third(), 0.3333333, rel_tol=1e-6)",
        "assert set(pairs(1)) == {(0, '0')}",
        "assert double(2) in (3, 4)",
        "assert double(2) != 5",
        "assert double(10 ** 20) == 200000000000000000000",
        "for i in range(3):\n    assert double(i) == i + i",
        "assert double(double(1)) == double(2)",
    ];
    let verdict = judge
        .verdict(program, &Tests::asserts(passing))
        .await
        .unwrap();
    assert!(verdict.passed, "{verdict:?}");
    assert_eq!(verdict.n_tests, passing.len());
    let failing = [
        "assert double(2) == 5",
        "assert pairs(1) == [[0, '0']]",
        "assert none() == False",
        "assert double(1) is True",
        "assert double(2) == '4'",
        "assert double(0)",
        "assert missing(0)",
        "for i in range(3):\n    assert double(i) == i",
    ];
    let verdict = judge
        .verdict(program, &Tests::asserts(failing))
        .await
        .unwrap();
    assert_eq!(verdict.n_passed, 0, "{verdict:?}");
    assert_eq!(verdict.reward(Scoring::PassRate), 0.0);
    let mixed = [passing[0], failing[0]];
    let verdict = judge
        .verdict(program, &Tests::asserts(mixed))
        .await
        .unwrap();
    assert_eq!(verdict.cases, [CaseResult::Passed, CaseResult::Wrong]);
    assert_eq!(
        [Scoring::AllPass, Scoring::PassRate].map(|scoring| verdict.reward(scoring)),
        [0.0, 0.5]
    );
}

/// As HumanEval has them.
const CHECK: &str = "\
def check(candidate):
    assert candidate(1) == 2
    assert candidate([]) == []
check(candidate)
";

/// Each form of tests that compares what a program returns, with `expected` for the argument 3.
fn returning(expected: &str, value: Value) -> Vec<Tests> {
    vec![
        Tests::asserts([format!("assert f(3) == {expected}")]),
        // Of these, one runs beside the program.
        Tests::asserts([format!("assert f(*(3, 'inspect')[:1]) == {expected}")]),
        Tests::assert_script(format!("assert f(3) == {expected}\n"), None),
        Tests::calls("f", [(vec![Value::Int(3)], value)]),
    ]
}

#[tokio::test]
async fn numbers_of_libraries_are_the_numbers_that_they_equal() {
    let judge = judge();
    let ones = |value: Value| Value::List(vec![value.clone(), value]);
    let mut right = vec![
        (
            "fractions import Fraction",
            "Fraction(x)",
            "3",
            Value::Int(3),
        ),
        (
            "fractions import Fraction",
            "Fraction(x, 2)",
            "1.5",
            Value::Float(1.5),
        ),
        ("decimal import Decimal", "Decimal(x)", "3", Value::Int(3)),
        (
            "decimal import Decimal",
            "[Decimal('0.5')] * 2",
            "[0.5, 0.5]",
            ones(Value::Float(0.5)),
        ),
        (
            "decimal import Decimal",
            "Decimal('Infinity')",
            "float('inf')",
            Value::Float(f64::INFINITY),
        ),
    ];
    let mut wrong = vec![
        (
            "fractions import Fraction",
            "Fraction(1, x)",
            "0.3333333333333333",
            Value::Float(1.0 / 3.0),
        ),
        (
            "decimal import Decimal",
            "Decimal('0.1')",
            "0.1",
            Value::Float(0.1),
        ),
        (
            "fractions import Fraction",
            "Fraction(x)",
            "4",
            Value::Int(4),
        ),
    ];
    let anything = Tests::asserts(["assert True"]);
    if judge
        .verdict("import numpy", &anything)
        .await
        .unwrap()
        .passed
    {
        right.extend([
            ("numpy import int64", "int64(x)", "3", Value::Int(3)),
            (
                "numpy import float64",
                "float64(x) / 2",
                "1.5",
                Value::Float(1.5),
            ),
            (
                "numpy import array",
                "list(array([x, x]) * 2)",
                "[6, 6]",
                ones(Value::Int(6)),
            ),
            (
                "numpy import bool_",
                "bool_(x > 2)",
                "True",
                Value::Bool(true),
            ),
            (
                "numpy import array",
                "(array([x, x]) * 2).tolist()",
                "[6, 6]",
                ones(Value::Int(6)),
            ),
        ]);
        wrong.extend([
            ("numpy import int64", "int64(x)", "4", Value::Int(4)),
            ("numpy import str_", "str_(x)", "3", Value::Int(3)),
        ]);
    } else {
        println!("numpy is not here: its numbers were not tried");
    }
    for (cases, passes) in [(right, true), (wrong, false)] {
        for (module, returned, expected, value) in cases {
            let program = format!("from {module}\ndef f(x): return {returned}");
            for tests in returning(expected, value) {
                let verdict = judge.verdict(&program, &tests).await.unwrap();
                assert_eq!(verdict.passed, passes, "{program}: {tests:?}: {verdict:?}");
            }
        }
    }
    // A number that equals `True` is not `True`.
    let program = "from fractions import Fraction\ndef f(x): return Fraction(1)";
    for (text, passes) in [
        ("assert f(0) == True", true),
        ("assert f(0) is True", false),
    ] {
        let verdict = judge
            .verdict(program, &Tests::asserts([text]))
            .await
            .unwrap();
        assert_eq!(verdict.passed, passes, "{text}: {verdict:?}");
    }
}

#[tokio::test]
async fn values_that_say_what_they_are_when_asked_pass_no_test() {
    let judge = judge();
    // Each is taken for a number of a library by its name, and equals whatever it is asked about.
    let program = "\
class int64:
    __module__ = 'numpy'
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def item(self): return self
    def tolist(self): return self
    def as_integer_ratio(self): return (3, 1)
int64.__qualname__ = 'int64'
def f(x): return int64()";
    for tests in returning("3", Value::Int(3)) {
        let verdict = judge.verdict(program, &tests).await.unwrap();
        assert!(!verdict.passed, "{tests:?}: {verdict:?}");
    }
}

#[tokio::test]
async fn methods_of_leet_codes_class_are_called_by_their_names() {
    let judge = judge();
    let program = "\
class Solution:
    def __init__(self):
        self.calls = 0
    def double(self, values: List[int]) -> List[int]:
        self.calls += 1
        assert self.calls == 1
        return [self.twice(value) for value in values][: max(len(values), 1)]
    def max(self, values):
        return 7
    @staticmethod
    def twice(value):
        return 2 * value";
    let tests = Tests::asserts(["assert double([1, 2]) == [2, 4]", "assert double([]) == []"]);
    let verdict = judge.verdict(program, &tests).await.unwrap();
    assert!(verdict.passed, "{verdict:?}");
    let beside = Tests::asserts(["assert double([1]) == [2], 'inspect'"]);
    assert!(judge.verdict(program, &beside).await.unwrap().passed);
    // What the program says by that name counts before the method, and no method that is not there is called.
    let own = format!("{program}\ndef double(values): return []");
    assert!(!judge.verdict(&own, &tests).await.unwrap().passed);
    let missing = Tests::asserts(["assert triple([1]) == [3]"]);
    let verdict = judge.verdict(program, &missing).await.unwrap();
    assert!(verdict.message.unwrap().contains("NameError"));
}

#[tokio::test]
async fn scripts_pass_when_they_come_to_their_end() {
    let judge = judge();
    let tests = Tests::assert_script(CHECK, Some("f".to_owned()));
    let right = "def f(x): return x + 1 if type(x) is int else x";
    assert_eq!(status(&judge, right, &tests).await, VerdictStatus::Passed);
    for wrong in [
        "def f(x): return x",
        "def g(x): return x + 1",
        "def f(x): raise ValueError",
        "def f(x",
    ] {
        let verdict = judge.verdict(wrong, &tests).await.unwrap();
        assert_eq!(verdict.status, VerdictStatus::Error, "{wrong}");
        assert!(verdict.message.is_some());
    }
}

#[tokio::test]
async fn no_exit_and_no_lie_passes_a_script() {
    let judge = judge();
    let forms = [
        Tests::assert_script(CHECK, Some("f".to_owned())),
        Tests::asserts(["assert f(1) == 2", "for x in [1]:\n    assert f(x) == 2"]),
    ];
    let cheats = [
        "import os\nos._exit(0)",
        "raise SystemExit",
        "def f(x):\n    import os\n    os._exit(0)",
        "def f(x):\n    raise SystemExit",
        "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 0",
        "class E:\n    def __eq__(self, o): return True\ndef f(x): return E()",
        "class E(int):\n    def __eq__(self, o): return True\ndef f(x): return E(0)",
        "class E(list):\n    def __eq__(self, o): return True\ndef f(x): return E()",
        "class E(int):\n    def __eq__(self, o): return type(o) is int or o == []\ndef f(x): return E(0)",
        "class M(type):\n    def __eq__(s, o): return True\n    __hash__ = type.__hash__\nclass E(metaclass=M):\n    def __eq__(self, o): return True\ndef f(x): return E()",
        "class E:\n    def __eq__(self, o): return True\ndef f(x): return [E()][0]",
        "import builtins\nbuiltins.AssertionError = Warning\ndef f(x): return 0",
        "import builtins, sys\nsys.excepthook = lambda *a: None\nbuiltins.exec = builtins.eval = lambda *a: None\ndef f(x): return 0",
        "def check(c): pass\ndef f(x): return 0",
        "import os\nfor fd in range(3, 1000):\n    for i in range(3):\n        try: os.write(fd, b'[0,%d,\"done\",null]\\n' % i)\n        except OSError: pass\nos._exit(0)",
        "import os\nfor i in range(3):\n    try: os.write(900, b'[0,%d,\"done\",null]\\n' % i)\n    except OSError: pass\nos.write(900, b'[\"finished\"]\\n')\nos._exit(0)",
    ];
    for tests in &forms {
        for cheat in cheats {
            let verdict = judge.verdict(cheat, tests).await.unwrap();
            assert!(!verdict.passed, "{cheat}\n{verdict:?}");
        }
    }
    // Classes that compare honestly are no lie.
    let honest = "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return isinstance(o, P) and self.x == o.x\ndef f(x): return P(x)";
    let tests = Tests::assert_script("p = f(1)\nq = f(1)\nassert p == q", None);
    assert_eq!(status(&judge, honest, &tests).await, VerdictStatus::Passed);
}

#[tokio::test]
async fn calls_are_judged_as_live_code_bench_judges_them() {
    let judge = judge();
    let int = Value::Int;
    let tests = Tests::calls(
        "add",
        [
            (vec![int(1), int(2)], int(3)),
            (vec![int(1), Value::Float(0.5)], Value::Float(1.5)),
        ],
    );
    for right in [
        "def add(a, b): return a + b",
        "class Solution:\n    def add(self, a: int, b: int) -> List[int]:\n        return reduce(lambda x, y: x + y, [a, b])",
        "\"Sums.\"\nfrom __future__ import annotations\ndef add(a: Unknown, b): return floor(a) + b",
    ] {
        assert_eq!(
            status(&judge, right, &tests).await,
            VerdictStatus::Passed,
            "{right}"
        );
    }
    let wrong = "class Solution:\n    def add(self, a, b): return a - b";
    assert_eq!(status(&judge, wrong, &tests).await, VerdictStatus::Wrong);
    let list = |items: Vec<Value>| Value::List(items);
    let nested = Tests::calls("f", [(vec![], list(vec![list(vec![int(1)]), int(2)]))]);
    let tuples = "def f(): return ([1], 2)";
    assert_eq!(status(&judge, tuples, &nested).await, VerdictStatus::Passed);
    let only = Tests::calls("f", [(vec![], list(vec![int(7)]))]);
    assert_eq!(
        status(&judge, "def f(): return 7", &only).await,
        VerdictStatus::Passed
    );
    // With exact function tests a tuple is no list.
    let exact = Tests::function("f", [(vec![], list(vec![list(vec![int(1)]), int(2)]))]);
    assert_eq!(status(&judge, tuples, &exact).await, VerdictStatus::Wrong);
}

#[tokio::test]
async fn outputs_are_compared_by_the_rule_of_the_tests() {
    let judge = judge();
    let tests = Tests::stdio([(String::new(), "1.5 2\n".to_owned())]);
    let program = "print('1.50   2')";
    let by = |rule| tests.clone().compared_by(rule);
    for (rule, expected) in [
        (Comparator::Exact, VerdictStatus::Wrong),
        (Comparator::CommonOj, VerdictStatus::Wrong),
        (Comparator::LiveCodeBench, VerdictStatus::Passed),
    ] {
        assert_eq!(
            status(&judge, program, &by(rule)).await,
            expected,
            "{rule:?}"
        );
    }
}

/// In each language: twice the number on standard input.
const DOUBLERS: [(Language, &str); 7] = [
    (Language::Python, "print(int(input()) * 2)"),
    (Language::Bash, "read n; echo $((n * 2))"),
    (
        Language::C,
        "#include <stdio.h>\nint main() { int n; scanf(\"%d\", &n); printf(\"%d\\n\", n * 2); }",
    ),
    (
        Language::Cpp,
        "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n * 2; }",
    ),
    (
        Language::Rust,
        "fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap(); println!(\"{}\", s.trim().parse::<i64>().unwrap() * 2); }",
    ),
    (
        Language::Java,
        "class Main { public static void main(String[] a) { System.out.println(new java.util.Scanner(System.in).nextInt() * 2); } }",
    ),
    (
        Language::JavaScript,
        "console.log(Number(require('fs').readFileSync(0, 'utf8')) * 2)",
    ),
];

fn search() -> Vec<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

#[tokio::test]
async fn outputs_are_judged_in_every_language_that_is_here() {
    let toolchains = Toolchains::probe(&DOUBLERS.map(|(language, _)| language), None, &search());
    let sandbox = Sandbox::start(Config {
        readable: toolchains.readable(),
        ..Config::new(2)
    });
    let mut config = JudgeConfig::small();
    config.limits.cpu = std::time::Duration::from_secs(10);
    let judge = Judge::with(sandbox.unwrap(), config, parts(toolchains.clone()));
    let cases = [2, 21, 300].map(|n| (format!("{n}\n"), format!("{}\n", n * 2)));
    let tests = Tests::stdio(cases);
    for (language, source) in DOUBLERS {
        let verdict = judge
            .verdict_of(&Submission::new(language, source), &tests)
            .await;
        match toolchains.get(language) {
            Ok(_) => assert!(verdict.as_ref().unwrap().passed, "{language}: {verdict:?}"),
            Err(missing) => {
                eprintln!("skipped: {missing}");
                assert!(matches!(verdict, Err(JudgeError::Sandbox(_))));
                continue;
            }
        }
        let broken = Submission::new(language, format!("{source} ((("));
        let verdict = judge.verdict_of(&broken, &tests).await.unwrap();
        assert_eq!(
            verdict.status,
            VerdictStatus::Error,
            "{language}: {verdict:?}"
        );
        assert_eq!(verdict.n_passed, 0);
    }
    let calls = Tests::asserts(["assert f(1) == 2"]);
    let refused = judge
        .verdict_of(&Submission::new(Language::Bash, "echo"), &calls)
        .await;
    assert!(matches!(refused, Err(JudgeError::NotPython { .. })));
}

#[tokio::test]
async fn a_script_of_the_tests_author_decides_by_its_exit_code() {
    let judge = judge();
    let script = "import subprocess, sys\nout = subprocess.run([sys.executable, 'program'], capture_output=True, text=True).stdout\nsys.exit(out != 'hello\\n')";
    let tests = Tests::script(Language::Python, script);
    assert_eq!(
        status(&judge, "print('hello')", &tests).await,
        VerdictStatus::Passed
    );
    assert_eq!(
        status(&judge, "print('bye')", &tests).await,
        VerdictStatus::Wrong
    );
    assert_eq!(
        status(&judge, "import os; os._exit(0)", &tests).await,
        VerdictStatus::Wrong
    );
}

const TEST_FILE: &str = "\
import pytest
from solution import add
def test_add():
    assert add(1, 2) == 3
@pytest.mark.parametrize('n', [1, 2])
def test_zero(n):
    assert add(n, 0) == n
@pytest.mark.skip(reason='elsewhere')
def test_skipped():
    pass
@pytest.mark.xfail
def test_known():
    assert add(0, 0) == 1
";

#[tokio::test]
async fn tests_count_by_their_node_ids() {
    let python = std::env::var_os("ETUDE_TEST_PYTHON");
    let python = python.as_deref().map(Path::new);
    let toolchains = Toolchains::probe(&[Language::Pytest], python, &search());
    if let Err(missing) = toolchains.get(Language::Pytest) {
        eprintln!("skipped: {missing}; ETUDE_TEST_PYTHON names an interpreter that has pytest");
        return;
    }
    let sandbox = Sandbox::start(Config {
        readable: toolchains.readable(),
        ..Config::new(2)
    });
    let mut config = JudgeConfig::small();
    config.limits.cpu = std::time::Duration::from_secs(10);
    let judge = Judge::with(sandbox.unwrap(), config, parts(toolchains));
    let ids = |names: &[&str]| -> Vec<String> {
        names
            .iter()
            .map(|name| format!("test_it.py::{name}"))
            .collect()
    };
    let path = RelativePath::new("test_it.py").unwrap();
    let tests = Tests::pytest(
        BTreeMap::from([(path, TEST_FILE.to_owned())]),
        ids(&["test_add", "test_zero[1]"]),
        ids(&["test_zero[2]", "test_skipped", "test_known"]),
    );
    let right = "def add(a, b): return a + b";
    let verdict = judge.verdict(right, &tests).await.unwrap();
    assert!(verdict.passed, "{verdict:?}");
    let verdict = judge
        .verdict("def add(a, b): return a", &tests)
        .await
        .unwrap();
    assert_eq!(
        (verdict.passed, verdict.n_passed),
        (false, 4),
        "{verdict:?}"
    );
    let header = "=========== short test summary info ===========";
    let cheats = [
        "import os\nos._exit(0)".to_owned(),
        "raise SystemExit".to_owned(),
        format!("import atexit\natexit.register(print, '''{header}\nPASSED test_it.py::test_add\nPASSED test_it.py::test_zero[1]''')\ndef add(a, b): return 0"),
        "import pytest\npytest.fail = lambda *a: None\ndef add(a, b):\n    import _pytest.python\n    _pytest.python.Function.runtest = lambda self: None\n    return 0".to_owned(),
        "import builtins\nbuiltins.AssertionError = type('A', (Exception,), {})\ndef add(a, b): return 0".to_owned(),
    ];
    for cheat in cheats {
        let verdict = judge.verdict(&cheat, &tests).await.unwrap();
        assert!(!verdict.passed, "{cheat}\n{verdict:?}");
    }
}
