//! Programs that mention a slow module find it imported; the others never see it.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use sandbox::{Config, Job, Limits, Sandbox, Tier, TierChoice};

/// In the standard library, and imported by no interpreter at its start.
const MODULE: &str = "xml.dom.minidom";
const MENTIONS: &str = "import sys; print('xml.dom.minidom' in sys.modules)";
const DOES_NOT: &str = "import sys; print('xml.dom.' + 'minidom' in sys.modules)";

fn sandbox(tier: Tier, modules: &[&str]) -> Sandbox {
    Sandbox::start(Config {
        tier: TierChoice::Exactly(tier),
        allow_weak_tier: true,
        preload_on_mention: modules.iter().map(|&module| module.to_owned()).collect(),
        ..Config::new(1)
    })
    .unwrap()
}

async fn output(sandbox: &Sandbox, source: &str) -> String {
    let outcome = sandbox
        .run(Job::script(source, Limits::SMALL))
        .await
        .unwrap();
    assert!(outcome.is_ok(), "{}", outcome.stderr.text());
    outcome.stdout.text()
}

#[tokio::test]
async fn a_mentioned_module_is_there_in_every_tier() {
    for tier in Tier::ALL {
        let sandbox = sandbox(tier, &[MODULE, "no_such_module"]);
        for _ in 0..2 {
            assert_eq!(output(&sandbox, DOES_NOT).await, "False\n", "{tier}");
            assert_eq!(output(&sandbox, MENTIONS).await, "True\n", "{tier}");
        }
    }
}

#[tokio::test]
async fn a_module_that_is_not_installed_is_the_programs_affair() {
    let sandbox = sandbox(Tier::Namespaces, &["no_such_module"]);
    let source = "try:\n    import no_such_module\nexcept ImportError as error:\n    print(error)";
    assert_eq!(
        output(&sandbox, source).await,
        "No module named 'no_such_module'\n"
    );
}

#[tokio::test]
async fn an_idle_second_interpreter_is_no_process_of_a_run() {
    let sandbox = sandbox(Tier::Landlock, &[MODULE]);
    output(&sandbox, MENTIONS).await;
    // Long enough for the watchdog to look, and to kill what it takes for the run's.
    let slow = "import time; time.sleep(0.1); print('done')";
    assert_eq!(output(&sandbox, slow).await, "done\n");
    assert_eq!(output(&sandbox, MENTIONS).await, "True\n");
    assert_eq!(sandbox.stats().slots_started, 1);
}

#[tokio::test]
async fn numpy_draws_the_same_numbers_in_every_run() {
    let sandbox = sandbox(Tier::Namespaces, &["numpy"]);
    let source = "try:\n    import numpy\n    print(numpy.random.rand())\nexcept ImportError:\n    print('absent')";
    let first = output(&sandbox, source).await;
    if first == "absent\n" {
        eprintln!("skipped: numpy is not installed for the sandbox's interpreter");
        return;
    }
    assert_eq!(output(&sandbox, source).await, first);
}
