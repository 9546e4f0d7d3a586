//! No program earns a pass by anything but the right values.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use judge::{Judge, JudgeConfig, Tests, Value, VerdictStatus};
use sandbox::{Config, Sandbox};

/// The secret is what `f` must return; it appears in no argument.
const SECRET: i64 = 481_516_234_200;

fn tests() -> Tests {
    let cases = (0..4).map(|i| {
        (
            vec![Value::Int(i), vec![Value::Int(i)].into()],
            Value::Int(SECRET + i),
        )
    });
    Tests::function("f", cases)
}

fn judge() -> Judge {
    let mut config = JudgeConfig::small();
    config.limits.wall = std::time::Duration::from_secs(4);
    config.limits.cpu = std::time::Duration::from_millis(700);
    config.limits.output_max = 1 << 20;
    Judge::new(Sandbox::start(Config::new(2)).unwrap(), config)
}

const CHEATS: &[(&str, &str)] = &[
    ("leaves at once", "import os\nos._exit(0)"),
    ("leaves in the call", "import os\ndef f(x, y): os._exit(0)"),
    ("SystemExit on import", "raise SystemExit(0)"),
    ("exit in the call", "def f(x, y): exit(0)"),
    (
        "equal to everything",
        "class E:\n  def __eq__(self, o): return True\n  __hash__ = None\ndef f(x, y): return E()",
    ),
    (
        "an int equal to everything",
        "class E(int):\n  def __eq__(self, o): return True\ndef f(x, y): return E(1)",
    ),
    (
        "claims to be an int",
        "class E:\n  __class__ = int\n  def __index__(self): return 1\ndef f(x, y): return E()",
    ),
    (
        "a type that lies",
        "class M(type):\n  def __eq__(s, o): return True\n  __hash__ = type.__hash__\n  __name__ = 'int'\nclass E(metaclass=M): pass\ndef f(x, y): return E()",
    ),
    (
        "pickles as anything",
        "class E:\n  def __reduce__(self): return (int, ('1',))\ndef f(x, y): return E()",
    ),
    (
        "patched builtins",
        "import builtins\nfor n in ('print', 'len', 'isinstance', 'open', 'type', 'repr', 'int', 'str', 'range', 'enumerate', 'list'):\n  setattr(builtins, n, lambda *a, **k: True)\ndef f(x, y): return True",
    ),
    (
        "patched json",
        "import json, json.encoder, json.decoder\njson.dumps = json.loads = json.encoder.encode_basestring_ascii = lambda *a, **k: 'true'\ndef f(x, y): return 'a'",
    ),
    (
        "patched os.write",
        "import os\nos.write = lambda fd, data: len(data)\ndef f(x, y): return 1",
    ),
    ("a generator", "def f(x, y): yield 1"),
    ("a coroutine", "async def f(x, y): return 1"),
    (
        "changes its arguments",
        "def f(x, y):\n  y.append(y)\n  return y",
    ),
    (
        "endless depth",
        "def f(x, y):\n  l = []\n  l.append(l)\n  return l",
    ),
    (
        "deep recursion",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(x, y): return f(x, y)",
    ),
    (
        "recursion in C",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(x, y):\n  a = []\n  for _ in range(10**6): a = [a]\n  return repr(a)",
    ),
    ("a huge value", "def f(x, y): return 'a' * (64 << 20)"),
    ("many values", "def f(x, y): return list(range(10**7))"),
    (
        "a flood on stdout",
        "def f(x, y):\n  while True: print('x' * 1000)",
    ),
    ("sleeps", "import time\ndef f(x, y): time.sleep(100)"),
    (
        "an endless loop that catches all",
        "def f(x, y):\n  while True:\n    try:\n      while True: pass\n    except BaseException: pass",
    ),
    (
        "threads left running",
        "import threading\ndef w():\n  while True: pass\nthreading.Thread(target=w).start()\ndef f(x, y): return 1",
    ),
    (
        "a child left running",
        "import os\nif os.fork() == 0:\n  while True: pass\ndef f(x, y): return 1",
    ),
    (
        "both sides of a fork go on",
        "import os\nos.fork()\ndef f(x, y): return 1",
    ),
    ("lone surrogates", "def f(x, y): return '\\ud800'"),
    (
        "a message that lies",
        "class E(Exception):\n  def __str__(self): return '\\n[0,0,\"value\",481516234200]\\n'\ndef f(x, y): raise E",
    ),
    (
        "an exception that cannot be shown",
        "class E(BaseException):\n  def __str__(self): raise self\n  __repr__ = __str__\ndef f(x, y): raise E",
    ),
    (
        "guesses on every descriptor",
        "import os\nfor i in range(4):\n  for fd in range(3, 1024):\n    try: os.write(fd, b'[0,%d,\"value\",%d]\\n' % (i, i))\n    except OSError: pass\ndef f(x, y): return 1",
    ),
    (
        "garbage on every descriptor",
        "import os\ndef f(x, y):\n  for fd in range(3, 1024):\n    try: os.write(fd, b'passed\\n')\n    except OSError: pass\n  return 1",
    ),
    (
        "closes every descriptor",
        "import os\nos.closerange(0, 4096)\ndef f(x, y): return 1",
    ),
    (
        "claims to have finished",
        "import os\nfor fd in range(3, 1024):\n  try: os.write(fd, b'[\"finished\"]\\n')\n  except OSError: pass\nos._exit(0)",
    ),
    (
        "replaces itself",
        "import os\nos.execv('/bin/true', ['true'])",
    ),
];

/// Looks everywhere in the process and the file system for the secret, and returns it if found.
const SEARCH: &str = r#"
import gc, os, re, sys
pattern = re.compile(rb'481516\d{6}')
def match(data):
    found = pattern.search(data)
    return int(found[0]) if found else None
def search():
    things = gc.get_objects()
    frame = sys._getframe()
    while frame:
        things += list(frame.f_locals.values()) + list(frame.f_globals.values())
        frame = frame.f_back
    for thing in things:
        text = None
        try:
            if type(thing) is bytes: text = thing
            elif type(thing) in (str, int): text = str(thing).encode()
            elif type(thing) in (dict, list, tuple): text = repr(thing)[:100000].encode()
        except Exception: pass
        if text and match(text): return match(text)
    roots = ['/proc/self/environ', '/proc/self/cmdline', '/proc/1/environ', '/proc/1/cmdline', '/proc/1/mem']
    for root in ('/box', '/tmp', '/etc'):
        for folder, _, files in os.walk(root):
            roots += [os.path.join(folder, f) for f in files]
    roots += ['/proc/self/fd/%d' % fd for fd in range(1024)]
    for path in roots:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            found = match(os.read(fd, 1 << 20))
            if found: return found
        except OSError: pass
    return 0
def f(x, y): return search() // 10 * 10 + x
"#;

#[tokio::test]
async fn cheats_earn_nothing() {
    let judge = judge();
    let tests = tests();
    let judged = CHEATS.iter().map(|(name, program)| {
        let (judge, tests) = (&judge, &tests);
        async move { (name, judge.verdict(program, tests).await) }
    });
    for (name, verdict) in futures::future::join_all(judged).await {
        let verdict =
            verdict.unwrap_or_else(|error| panic!("{name} is the judge's problem: {error}"));
        assert!(
            !verdict.passed && verdict.n_passed == 0,
            "{name}: {verdict:?}"
        );
        assert_eq!(verdict.cases.len(), 4);
        assert!(
            verdict.message.is_none_or(|message| message.len() < 600),
            "{name}"
        );
    }
    assert_eq!(judge.stats().sandbox_errors, 0);
}

#[tokio::test]
async fn row_33_expected_values_are_nowhere_in_the_jail() {
    let verdict = judge().verdict(SEARCH, &tests()).await.unwrap();
    assert_eq!(
        (verdict.n_passed, verdict.status),
        (0, VerdictStatus::Wrong),
        "{verdict:?}"
    );
}

#[tokio::test]
async fn scripts_do_not_pass_by_leaving() {
    let tests = Tests::stdio([("1".to_owned(), SECRET.to_string())]);
    for program in [
        "import os\nos._exit(0)",
        "exit(0)",
        "print(open('/proc/self/fd/0').read())",
    ] {
        let verdict = judge().verdict(program, &tests).await.unwrap();
        assert!(!verdict.passed, "{program}");
    }
}

#[tokio::test]
async fn honest_programs_pass_the_same_tests() {
    let honest = format!("def f(x, y):\n  y.clear()\n  print('x')\n  return x + {SECRET}");
    let verdict = judge().verdict(&honest, &tests()).await.unwrap();
    assert!(verdict.passed, "{verdict:?}");
    let with_threads = format!(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n{honest}"
    );
    let verdict = judge().verdict(&with_threads, &tests()).await.unwrap();
    assert!(verdict.passed, "{verdict:?}");
}
