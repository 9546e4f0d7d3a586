//! What ordinary programs see in the jail, and what is told about them.

use std::{sync::Arc, time::Duration};

use sandbox::{Config, Job, Limits, RunOutcome, Sandbox, Status};

fn sandbox() -> Sandbox {
    Sandbox::start(Config::new(2)).unwrap()
}

async fn script(sandbox: &Sandbox, source: &str) -> RunOutcome {
    sandbox.run(Job::script(source, Limits::SMALL)).await.unwrap()
}

#[tokio::test]
async fn a_script_prints_and_ends() {
    let sandbox = sandbox();
    let outcome = script(&sandbox, "print('hello')").await;
    assert_eq!(outcome.status, Status::Ok, "{}", outcome.stderr.text());
    assert_eq!(outcome.stdout.text(), "hello\n");
    assert!(outcome.cpu_ms > 0.0 && outcome.peak_memory > 1 << 20);
}
