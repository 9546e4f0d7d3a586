//! Ctrl-C, a request to terminate and a kill in every kind of phase: what was committed stays.

use std::{
    path::Path,
    process::{Child, Command, Output},
};

use tempfile::TempDir;

use crate::{
    etude::{
        assert_success, committed, etude, last_step, learning_recipe, resume_to_end, stderr,
        wait_while_running,
    },
    processes::{assert_all_end, descendants, signal},
    runs::{RL, assert_same_metrics, files, final_weights, uninterrupted},
};

#[test]
fn interrupted_in_every_phase_a_run_ends_as_if_it_had_not_been() {
    let directory = TempDir::new().unwrap();
    let scratch = directory.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let run = directory.path().join("run");
    let begin = || {
        let mut command = etude(&scratch, ["train".as_ref(), learning_recipe().as_os_str()]);
        command.args(["--run".as_ref(), run.as_os_str()]);
        command
    };
    let go_on = || {
        etude(
            &scratch,
            ["train".as_ref(), "--resume".as_ref(), run.as_os_str()],
        )
    };

    let output = interrupt(begin(), "INT", &run, "sft/critic/1", 70);
    assert_stopped(&output, &run);
    let kept = last_step(&run, "sft/critic/1");
    assert!(kept >= 70);

    let output = interrupt(go_on(), "KILL", &run, "sft/reviser/1", 70);
    assert!(!output.status.success() && output.status.code().is_none());
    assert!(committed(&run).phase_ended("sft/critic/1").is_some());

    let output = interrupt(go_on(), "TERM", &run, RL, 3);
    assert_stopped(&output, &run);
    assert!(last_step(&run, RL) >= 3);

    let output = interrupt(go_on(), "INT", &run, RL, 9);
    assert_stopped(&output, &run);

    assert_success(&resume_to_end(&scratch, &run));
    let expected = uninterrupted();
    assert_same_metrics(&run, expected);
    assert!(final_weights(&run) == final_weights(expected));
    assert_eq!(files(&run), files(expected));
    assert_eq!(
        files(&scratch),
        Vec::<std::path::PathBuf>::new(),
        "temporary files are left"
    );
}

/// Starts `command` and sends a signal once a phase has committed `step` steps.
fn interrupt(mut command: Command, name: &str, run: &Path, phase: &str, step: u64) -> Output {
    let mut child: Child = command.spawn().unwrap();
    let reached = wait_while_running(&mut child, || last_step(run, phase) >= step);
    assert!(
        reached,
        "the run ended before step {step} of {phase}: {:?}",
        child.wait_with_output()
    );
    let children = descendants(child.id());
    assert!(!children.is_empty(), "the sandbox has no process");
    signal(name, child.id());
    let output = child.wait_with_output().unwrap();
    assert_all_end(&children);
    output
}

fn assert_stopped(output: &Output, run: &Path) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let advice = format!("etude train --resume {}", run.display());
    assert!(said.lines().last().unwrap().contains(&advice), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(!committed(run).finished());
}
