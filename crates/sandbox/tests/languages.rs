//! Programs of every language that this machine has: what they print, and how they fail.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use std::{path::PathBuf, time::Duration};

use sandbox::{
    Config, Job, Language, Limits, RunOutcome, Sandbox, SandboxError, Status, Tier, TierChoice,
    Toolchains,
};

/// Small programs of one language.
struct Samples {
    language: Language,
    /// Prints `hello` and what it reads.
    echo: &'static str,
    /// Cannot be compiled, or not even parsed.
    broken: &'static str,
    /// Fails when it runs, saying `oops` on standard error.
    failing: &'static str,
}

const SAMPLES: [Samples; 10] = [
    Samples {
        language: Language::Python,
        echo: "print('hello', input())",
        broken: "def f(:",
        failing: "raise SystemError('oops')",
    },
    Samples {
        language: Language::Pytest,
        echo: "def test_it(): print('hello in')",
        broken: "def f(:",
        failing: "import sys\ndef test_it():\n    sys.stderr.write('oops')\n    assert False",
    },
    Samples {
        language: Language::Bash,
        echo: "read -r x; echo \"hello $x\"",
        broken: "if then",
        failing: "echo oops >&2; exit 3",
    },
    Samples {
        language: Language::C,
        echo: "#include <stdio.h>
#include <math.h>
int main(void) { char s[9]; scanf(\"%8s\", s); printf(\"hello %s\\n\", s); return (int)sin(0); }",
        broken: "int main(void) { return undeclared; }",
        failing: "#include <stdio.h>
int main(void) { fputs(\"oops\", stderr); return 3; }",
    },
    Samples {
        language: Language::Cpp,
        echo: "#include <iostream>
int main() { std::string s; std::cin >> s; std::cout << \"hello \" << s << \"\\n\"; }",
        broken: "int main() { return undeclared; }",
        failing: "#include <stdexcept>
int main() { throw std::runtime_error(\"oops\"); }",
    },
    Samples {
        language: Language::Rust,
        echo: "fn main() { println!(\"hello {}\", std::io::stdin().lines().next().unwrap().unwrap()) }",
        broken: "fn main() { undeclared }",
        failing: "fn main() { panic!(\"oops\") }",
    },
    Samples {
        language: Language::Go,
        echo: "package main
import \"fmt\"
func main() { var s string; fmt.Scan(&s); fmt.Println(\"hello\", s) }",
        broken: "package main\nfunc main() { undeclared() }",
        failing: "package main\nfunc main() { panic(\"oops\") }",
    },
    Samples {
        language: Language::Java,
        echo: "import java.util.Scanner;
public class Main {
  public static void main(String[] a) {
    System.out.println(\"hello \" + new Scanner(System.in).next());
  }
}",
        broken: "public class Main { int f() { return undeclared; } }",
        failing: "public class Main {
  public static void main(String[] a) { throw new RuntimeException(\"oops\"); }
}",
    },
    Samples {
        language: Language::JavaScript,
        echo: "console.log('hello', require('fs').readFileSync(0, 'utf8').trim())",
        broken: "function (",
        failing: "throw new Error('oops')",
    },
    Samples {
        language: Language::TypeScript,
        echo: "import { readFileSync } from 'fs';
const text: string = readFileSync(0, 'utf8');
console.log('hello', text.trim())",
        broken: "function (",
        failing: "const reason: string = 'oops';\nthrow new Error(reason)",
    },
];

fn limits() -> Limits {
    Limits {
        wall: Duration::from_secs(60),
        cpu: Duration::from_secs(20),
        memory: 1 << 30,
        processes: 128,
        ..Limits::SMALL
    }
}

/// The folders of PATH.
fn search() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

fn start(toolchains: &Toolchains, slots: usize) -> Sandbox {
    let config = Config {
        search: search(),
        readable: toolchains.readable(),
        ..Config::new(slots)
    };
    Sandbox::start(config).unwrap()
}

fn said(outcome: &RunOutcome) -> String {
    let built = outcome.build.as_ref();
    let built = built.map(|build| {
        format!(
            "\nbuild {:?}: {}{}",
            build.status,
            build.stdout.text(),
            build.stderr.text()
        )
    });
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    format!(
        "{:?}\n{out}\n{err}{}",
        outcome.status,
        built.unwrap_or_default()
    )
}

/// Runs the samples of `language`, or says why not.
async fn check(language: Language) {
    let toolchains = Toolchains::probe(&[language], None, &search());
    let samples = SAMPLES
        .iter()
        .find(|samples| samples.language == language)
        .unwrap();
    match toolchains.job(language, samples.echo, limits()) {
        Ok(_) => {}
        Err(SandboxError::MissingProgram { program, .. }) => {
            eprintln!("SKIPPED, NOTHING PROVEN ABOUT {language}: {program} is not installed");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    let sandbox = start(&toolchains, 1);
    let job = |source: &str| toolchains.job(language, source, limits()).unwrap();
    let outcome = sandbox
        .run(job(samples.echo).with_stdin("in\n"))
        .await
        .unwrap();
    assert_eq!(outcome.status, Status::Ok, "{}", said(&outcome));
    match language {
        Language::Pytest => assert!(
            outcome.stdout.text().contains("1 passed"),
            "{}",
            said(&outcome)
        ),
        _ => assert_eq!(outcome.stdout.text(), "hello in\n", "{}", said(&outcome)),
    }

    let outcome = sandbox.run(job(samples.broken)).await.unwrap();
    assert!(
        matches!(outcome.status, Status::NonZero(_)),
        "{}",
        said(&outcome)
    );
    assert_eq!(
        outcome.program_ran(),
        outcome.build.is_none(),
        "{}",
        said(&outcome)
    );
    let explained = outcome.build.as_deref().unwrap_or(&outcome);
    assert!(
        explained.stderr.total + explained.stdout.total > 0,
        "{}",
        said(&outcome)
    );

    let outcome = sandbox.run(job(samples.failing)).await.unwrap();
    assert!(outcome.program_ran(), "{}", said(&outcome));
    assert!(
        matches!(outcome.status, Status::NonZero(_) | Status::Signal(6)),
        "{}",
        said(&outcome)
    );
    let told = outcome.stderr.text() + &outcome.stdout.text();
    assert!(told.contains("oops"), "{}", said(&outcome));
    assert_eq!(sandbox.stats().errors, 0);
}

#[tokio::test]
async fn python() {
    check(Language::Python).await;
}

#[tokio::test]
async fn pytest() {
    check(Language::Pytest).await;
}

#[tokio::test]
async fn bash() {
    check(Language::Bash).await;
}

#[tokio::test]
async fn c() {
    check(Language::C).await;
}

#[tokio::test]
async fn cpp() {
    check(Language::Cpp).await;
}

#[tokio::test]
async fn rust() {
    check(Language::Rust).await;
}

#[tokio::test]
async fn go() {
    check(Language::Go).await;
}

#[tokio::test]
async fn java() {
    check(Language::Java).await;
}

#[tokio::test]
async fn javascript() {
    check(Language::JavaScript).await;
}

#[tokio::test]
async fn typescript() {
    check(Language::TypeScript).await;
}

/// Programs that take far more memory than they may, in runtimes without an address limit.
#[tokio::test]
async fn runtimes_without_an_address_limit_are_still_bounded() {
    let hogs = [
        (
            Language::JavaScript,
            "const a = []; while (true) a.push(Buffer.alloc(1 << 24, 1))",
        ),
        (
            Language::Java,
            "import java.nio.ByteBuffer;
public class Main {
  public static void main(String[] a) throws Exception {
    java.util.ArrayList<byte[]> all = new java.util.ArrayList<>();
    while (true) all.add(new byte[1 << 24]);
  }
}",
        ),
    ];
    for (language, source) in hogs {
        let toolchains = Toolchains::probe(&[language], None, &search());
        let limits = Limits {
            memory: 256 << 20,
            ..limits()
        };
        let Ok(job) = toolchains.job(language, source, limits) else {
            eprintln!("SKIPPED, NOTHING PROVEN ABOUT {language}: it is not installed");
            continue;
        };
        let outcome = start(&toolchains, 1).run(job).await.unwrap();
        let bounded = [Status::Memory, Status::NonZero(1), Status::Signal(6)];
        assert!(bounded.contains(&outcome.status), "{}", said(&outcome));
        assert!(outcome.peak_memory < 1 << 30, "{}", outcome.peak_memory);
    }
}

/// With a compiler that nobody is kept from reading: the weaker tiers run programs as nobody.
#[tokio::test]
async fn compiled_programs_run_at_every_tier() {
    let toolchains = Toolchains::probe(&[Language::C], None, &search());
    for tier in Tier::ALL {
        let config = Config {
            tier: TierChoice::Exactly(tier),
            allow_weak_tier: true,
            ..Config::new(1)
        };
        let sandbox = match Sandbox::start(config) {
            Ok(sandbox) => sandbox,
            Err(SandboxError::TierUnavailable { detail, .. }) => {
                eprintln!("SKIPPED for {tier}: {detail}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let source = "#include <stdio.h>\nint main(void) { puts(\"hello\"); }";
        let Ok(job) = toolchains.job(Language::C, source, limits()) else {
            eprintln!("SKIPPED, NOTHING PROVEN ABOUT C: it is not installed");
            return;
        };
        let outcome = sandbox.run(job).await.unwrap();
        assert_eq!(
            outcome.stdout.text(),
            "hello\n",
            "{tier}: {}",
            said(&outcome)
        );
    }
}

#[tokio::test]
async fn an_interpreter_behind_a_link_is_the_one_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("python3");
    std::os::unix::fs::symlink("/usr/bin/python3", &link).unwrap();
    let config = Config {
        python: Some(link),
        ..Config::new(1)
    };
    let sandbox = Sandbox::start(config).unwrap();
    let job = Job::script("print(1)", Limits::SMALL);
    assert_eq!(sandbox.run(job).await.unwrap().stdout.text(), "1\n");
}

#[test]
fn what_is_absent_is_named_with_a_way_to_get_it() {
    let none = Toolchains::default();
    for samples in &SAMPLES {
        let language = samples.language;
        let absent = none.job(language, samples.echo, limits()).unwrap_err();
        let SandboxError::MissingProgram { program, .. } = &absent else {
            panic!("{language}: {absent}")
        };
        let text = absent.to_string();
        assert!(text.contains(program) && text.contains("install"), "{text}");
    }
}
