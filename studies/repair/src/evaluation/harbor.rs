//! Harbor's tasks: `tests/test.sh` is run, and writes the reward to a file.
//!
//! The tests are put to `/tests` after the patch is applied, so that nothing of it could see them. The script writes
//! a number to `/logs/verifier/reward.txt`, or an object with a `reward` to `reward.json` beside it.
//!
//! A task's own solution is a script too, `solution/solve.sh`: it is run in the place of a patch, from `/solution`, as
//! Harbor's oracle runs it.

use std::{collections::BTreeMap, time::Duration};

use record::Fault;
use sandbox::{Limits, Status};
use serde_json::{Map, Value};
use session::CommandOutcome;

use super::{Evaluated, apply};
use crate::{
    Task,
    grading::{HarborGrader, InstanceReport},
    workplace::{Workplace, infra},
};

const SOLVE: &str = "solution/solve.sh";

/// A reward from which on a task is resolved.
const RESOLVED: f64 = 1.0;

/// Without a reward there is no report, and the notes say why.
pub(super) async fn grade(
    task: &Task,
    grader: &HarborGrader,
    patch: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<(), Fault> {
    if apply::apply(patch, workplace, evaluated).await? {
        verify(task, grader, workplace, evaluated).await?;
    }
    Ok(())
}

/// Runs the task's own solution and then its tests. A solution that says it failed is tested all the same: the tests
/// decide.
pub(super) async fn grade_solution(
    task: &Task,
    grader: &HarborGrader,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<(), Fault> {
    if !grader.has_solution() {
        evaluated.note(format!("the task has no {SOLVE}"));
        return Ok(());
    }
    let work_tree = workplace.testbed().image.work_tree().to_owned();
    let script = solution_script(grader, "", &work_tree);
    let limits = limits(grader, "agent", workplace);
    let outcome = run(&script, limits, workplace).await?;
    let seconds = outcome.wall_ms / 1e3;
    evaluated.note(format!(
        "{SOLVE} ended after {seconds:.1} s: {}\n{}",
        outcome.status.name(),
        outcome.stderr.text()
    ));
    if timed_out(outcome.status) {
        let seconds = limits.wall.as_secs();
        evaluated.note(format!("{SOLVE} timed out after {seconds} seconds"));
        return Ok(());
    }
    verify(task, grader, workplace, evaluated).await
}

/// Without a reward there is no report, and the notes say why.
async fn verify(
    task: &Task,
    grader: &HarborGrader,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<(), Fault> {
    let work_tree = workplace.testbed().image.work_tree().to_owned();
    let script = script(task, grader, "", &work_tree);
    let limits = limits(grader, "verifier", workplace);
    let outcome = run(&script, limits, workplace).await?;
    evaluated.eval_script = Some(script);
    evaluated.test_output = outcome.stderr.text();
    evaluated.note(format!("test runtime: {:.1} s", outcome.wall_ms / 1e3));
    if timed_out(outcome.status) {
        let seconds = limits.wall.as_secs();
        evaluated.note(format!("the tests timed out after {seconds} seconds"));
        return Ok(());
    }
    let written = outcome.stdout.text();
    let Some(reward) = reward(&written) else {
        evaluated.note(match written.trim() {
            "" => "tests/test.sh left no reward in /logs/verifier".to_owned(),
            other => format!("the reward is no number: {other}"),
        });
        return Ok(());
    };
    evaluated.note(format!("reward: {reward}"));
    evaluated.report = Some(InstanceReport {
        patch_exists: true,
        patch_successfully_applied: true,
        resolved: reward >= RESOLVED,
        ..InstanceReport::default()
    });
    Ok(())
}

/// Of one script, with the time that a table of the task's settings gives it.
fn limits(grader: &HarborGrader, whose: &str, workplace: &Workplace) -> Limits {
    let mut limits = Limits {
        output_keep: 64 << 20,
        output_max: 256 << 20,
        ..workplace.testbed().limits
    };
    let seconds = table(&grader.settings, whose).and_then(|it| it.get("timeout_sec")?.as_f64());
    if let Some(asked) = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok()) {
        limits.wall = limits.wall.min(asked);
    }
    limits
}

/// Its standard output is ours alone: what the task's own scripts print goes to the other.
async fn run(
    script: &str,
    limits: Limits,
    workplace: &mut Workplace,
) -> Result<CommandOutcome, Fault> {
    let run = "s=/tmp/verify-$$.sh; cat > \"$s\" && exec sh \"$s\" < /dev/null";
    let command = session::Command::shell(run, limits).with_stdin(script);
    let outcome = workplace.session().await?.exec(&command).await;
    outcome.map_err(infra)
}

fn timed_out(status: Status) -> bool {
    matches!(status, Status::WallTimeout | Status::CpuTimeout)
}

/// Puts the solution in its place and runs it. `root` as for the tests.
fn solution_script(grader: &HarborGrader, root: &str, work_tree: &str) -> String {
    let folder = quoted(&format!("{root}/solution"));
    let mut script = format!(
        "#!/bin/sh\n\
         rm -rf {folder}\n\
         mkdir -p {folder} || {{ echo 'this sandbox has no place for /solution' >&2; exit 1; }}\n"
    );
    script += &written(&grader.solution, root);
    script += &variables(grader, "solution");
    script += &format!(
        "cd {} && chmod +x {folder}/solve.sh\n\
         b=$(command -v bash || echo sh)\n\
         \"$b\" {folder}/solve.sh 1>&2\n",
        quoted(work_tree)
    );
    script
}

/// Lines that write files to below `root`.
fn written(files: &BTreeMap<String, String>, root: &str) -> String {
    let lines = files.iter().map(|(path, content)| {
        let path = quoted(&format!("{root}/{path}"));
        let content = quoted(content);
        format!("mkdir -p \"$(dirname {path})\"\nprintf '%s' {content} > {path}\n")
    });
    lines.collect()
}

/// Lines that set the variables of a table's `env`.
fn variables(grader: &HarborGrader, whose: &str) -> String {
    let mut lines = String::new();
    let variables = table(&grader.settings, whose).and_then(|it| it.get("env")?.as_object());
    for (name, value) in variables.into_iter().flatten() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let (true, Some(value)) = (name.chars().all(is_name), value.as_str()) {
            lines += &format!("export {name}={}\n", quoted(value));
        }
    }
    lines
}

/// Puts the tests in their place, runs them, and prints the reward alone. `root` is empty, or what `/tests` and `/logs`
/// are below.
fn script(task: &Task, grader: &HarborGrader, root: &str, work_tree: &str) -> String {
    let [tests, logs] = ["tests", "logs/verifier"].map(|path| quoted(&format!("{root}/{path}")));
    let mut script = format!(
        "#!/bin/sh\n\
         rm -rf {tests} {logs}\n\
         mkdir -p {tests} {logs} || {{ echo 'this sandbox has no place for /tests' >&2; exit 1; }}\n"
    );
    script += &written(&task.gold.test_files, root);
    script += &variables(grader, "verifier");
    let work_tree = quoted(work_tree);
    script += &format!(
        "cd {work_tree} && chmod +x {tests}/test.sh\n\
         b=$(command -v bash || echo sh)\n\
         \"$b\" {tests}/test.sh 1>&2\n\
         echo \"tests/test.sh ended with code $?\" >&2\n\
         cd {logs} && for f in reward.txt reward.json; do\n    \
         if [ -s \"$f\" ]; then cat \"$f\"; break; fi\n\
         done\n"
    );
    script
}

fn table<'a>(settings: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    settings.get(name)?.as_object()
}

/// As a word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A number, or an object with one.
fn reward(text: &str) -> Option<f64> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let reward = value.as_f64().or_else(|| value.get("reward")?.as_f64());
    reward.filter(|reward| reward.is_finite())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a shell runs the script")]
mod tests {
    use std::{fs, process::Command};

    use serde_json::json;

    use super::*;
    use crate::{Checks, Facts, Gold, Issue, Place, Public, TestFramework};

    /// The reward that the script prints, and what the tests printed; after `solve`, where there is one.
    fn run_after(solve: Option<&str>, test: &str) -> (String, String) {
        let root = tempfile::tempdir().unwrap();
        let work_tree = root.path().join("it's a work tree");
        fs::create_dir(&work_tree).unwrap();
        fs::write(work_tree.join("answer"), "42").unwrap();
        let at = root.path().display().to_string();
        let test = test.replace("ROOT", &at);
        let task = Task {
            id: record::TaskId("made/one".to_owned()),
            public: Public {
                repo: "one".to_owned(),
                base_commit: None,
                issue: Issue::default(),
                framework: TestFramework::Pytest,
                max_steps: None,
            },
            place: Place::Folder(work_tree.clone()),
            checks: Checks::default(),
            facts: Facts::default(),
            gold: Gold {
                test_files: [
                    ("tests/test.sh".to_owned(), test),
                    ("tests/a b/it's.txt".to_owned(), "42".to_owned()),
                ]
                .into(),
                ..Gold::default()
            },
        };
        let settings = json!({
            "verifier": {"env": {"WANTED": "it's $HOME", "not a name": "x"}},
            "solution": {"env": {"ANSWER": "it's 43"}},
        });
        let solution =
            solve.map(|text| ("solution/solve.sh".to_owned(), text.replace("ROOT", &at)));
        let data = ("solution/data/more.txt".to_owned(), "more".to_owned());
        let grader = HarborGrader {
            settings: settings.as_object().unwrap().clone(),
            solution: solution.into_iter().chain([data]).collect(),
        };
        if grader.has_solution() {
            let script = solution_script(&grader, &at, &work_tree.display().to_string());
            let ran = Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(ran.stdout, b"", "what it prints is no reward");
        }
        let script = script(&task, &grader, &at, &work_tree.display().to_string());
        let ran = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(ran.stdout), text(ran.stderr))
    }

    fn run(test: &str) -> (String, String) {
        run_after(None, test)
    }

    #[test]
    fn a_solution_runs_in_the_work_tree_with_its_files_and_variables() {
        let solve = "echo 1\ncat ROOT/solution/data/more.txt > more && printf '%s' \"$ANSWER\" > answer\nexit 3\n";
        let test = "[ \"$(cat answer more)\" = \"it's 43more\" ] && [ -z \"$ANSWER\" ] && r=1 || r=0\n\
             echo $r > ROOT/logs/verifier/reward.txt\n";
        let (printed, log) = run_after(Some(solve), test);
        assert_eq!(reward(&printed), Some(1.0), "{log}");
        assert_eq!(reward(&run(test).0), Some(0.0));
    }

    #[test]
    fn the_reward_is_what_the_script_writes_and_never_what_it_prints() {
        let test = "echo 1\n[ \"$WANTED\" = \"it's \\$HOME\" ] || exit 3\n\
             cmp answer \"ROOT/tests/a b/it's.txt\" && echo 0.5 > ROOT/logs/verifier/reward.txt\n";
        let (printed, log) = run(test);
        assert_eq!(reward(&printed), Some(0.5), "{printed} {log}");
        assert!(
            log.contains("1\n") && log.contains("ended with code 0"),
            "{log}"
        );
        let object = "echo '{\"reward\": 1}' > ROOT/logs/verifier/reward.json; exit 7";
        let (printed, log) = run(object);
        assert_eq!(reward(&printed), Some(1.0), "{log}");
        assert!(log.contains("ended with code 7"), "{log}");
        assert_eq!(run("echo 1").0, "");
    }

    #[test]
    fn rewards_are_numbers_or_objects_with_one() {
        assert_eq!(reward("1\n"), Some(1.0));
        assert_eq!(reward(" 0.5"), Some(0.5));
        assert_eq!(reward("{\"reward\": 1, \"style\": 0.2}"), Some(1.0));
        for none in ["", "passed", "NaN", "{\"style\": 1}", "1 1", "[1]"] {
            assert_eq!(reward(none), None, "{none}");
        }
    }
}
