//! Evaluation scripts in a session.

use record::Fault;
use sandbox::{Limits, Status};
use session::Command;

use super::Evaluated;
use crate::workplace::{Workplace, infra};

/// R2E-Gym's images: the hidden tests are linked into the work tree, and the image's own script runs them.
pub(super) const R2E_GYM: &str = "\
#!/bin/bash
export PATH=/testbed/.venv/bin:/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:$PATH
cd /testbed
find . -name '*.pyc' -delete
find . -name '__pycache__' -exec rm -rf {} +
if [ ! -e /testbed/r2e_tests ]; then
    for tests in /root/r2e_tests /r2e_tests; do
        if [ -d \"$tests\" ]; then ln -s \"$tests\" /testbed/r2e_tests; break; fi
    done
fi
for script in /root/run_tests.sh /testbed/run_tests.sh /run_tests.sh; do
    if [ -f \"$script\" ]; then exec bash \"$script\"; fi
done
echo 'no run_tests.sh in the image'
exit 127
";

/// Runs a script with bash to its end; what it prints goes to the test output. False where it was ended at
/// its time limit: then there is nothing to grade.
///
/// # Errors
/// Failures of the machinery.
pub(super) async fn run(
    script: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<bool, Fault> {
    evaluated.eval_script = Some(script.to_owned());
    let limits = Limits {
        // Logs are read as a whole.
        output_keep: 64 << 20,
        output_max: 256 << 20,
        ..workplace.testbed().limits
    };
    // Images without bash have at least a shell.
    let run = "s=/tmp/eval-$$.sh; cat > \"$s\" && b=$(command -v bash || echo sh) && exec \"$b\" \"$s\" 2>&1 < /dev/null";
    let command = Command::shell(run, limits).with_stdin(script);
    let outcome = workplace
        .session()
        .await?
        .exec(&command)
        .await
        .map_err(infra)?;
    evaluated.test_output = outcome.stdout.text();
    evaluated.note(format!("test runtime: {:.1} s", outcome.wall_ms / 1e3));
    let seconds = limits.wall.as_secs();
    match outcome.status {
        Status::WallTimeout | Status::CpuTimeout => {
            let line = format!("\n\nTimeout error: {seconds} seconds exceeded.\n");
            evaluated.test_output.push_str(&line);
            evaluated.note(format!("the tests timed out after {seconds} seconds"));
            Ok(false)
        }
        Status::Memory => {
            evaluated.test_output.push_str("\nCannot allocate memory\n");
            evaluated.note("the tests ran out of memory");
            Ok(true)
        }
        status => {
            evaluated.note(format!("the script ended: {}", status.name()));
            Ok(true)
        }
    }
}
