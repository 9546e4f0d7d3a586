//! The script that runs an instance's tests in its container (spec of the repair study, section 11.2).

use super::{
    instance::Instance,
    test_log::{END_OF_TESTS, START_OF_TESTS, TEST_EXIT_CODE},
};

/// What stands first in a script: every command is shown, and none that fails ends it.
const HEAD: [&str; 2] = ["#!/bin/bash", "set -uxo pipefail"];
/// Keeps the exit code of the tests' command until the marker of their end is written.
const CODE: &str = "SWEBENCH_TEST_EXIT_CODE";

/// The script of an instance: its row's own, or one that is made. Either records the exit code of the
/// command that runs the tests.
pub fn eval_script(instance: &Instance) -> String {
    let lines = match &instance.eval_script {
        Some(script) => script.trim().split('\n').map(str::to_owned).collect(),
        None => made(instance),
    };
    let lines = lines
        .into_iter()
        .filter(|line| !HEAD.contains(&line.as_str()));
    let mut script: Vec<String> = HEAD.map(str::to_owned).to_vec();
    let mut recorded = false;
    for line in lines {
        if recorded || !line.contains(END_OF_TESTS) {
            script.push(line);
            continue;
        }
        recorded = true;
        script.push(format!("{CODE}=$?"));
        script.push(line);
        script.push(format!("echo \"{TEST_EXIT_CODE}: ${CODE}\""));
    }
    script.join("\n") + "\n"
}

fn made(instance: &Instance) -> Vec<String> {
    let touched = touched_files(&instance.test_patch);
    let quoted = |wanted: bool| -> Vec<String> {
        let files = touched.iter().filter(|file| file.is_new == wanted);
        files.map(|file| quote(&file.path)).collect()
    };
    let (old, new) = (quoted(false), quoted(true));
    let mut reset = Vec::new();
    if !old.is_empty() {
        reset.push(format!(
            "git checkout {} {}",
            quote(&instance.base_commit),
            old.join(" ")
        ));
    }
    if !new.is_empty() {
        reset.push(format!("rm -f {}", new.join(" ")));
    }
    let mut lines = vec![
        "source /opt/miniconda3/bin/activate".to_owned(),
        "conda activate testbed".to_owned(),
        "cd /testbed".to_owned(),
    ];
    lines.extend(surroundings(&instance.repo).iter().map(|&line| line.into()));
    lines.push("git config --global --add safe.directory /testbed".to_owned());
    lines.push("git status".to_owned());
    lines.push("git show".to_owned());
    lines.push(format!(
        "git -c core.fileMode=false diff {}",
        quote(&instance.base_commit)
    ));
    lines.push("source /opt/miniconda3/bin/activate".to_owned());
    lines.push("conda activate testbed".to_owned());
    lines.push("python -m pip install -e .".to_owned());
    lines.extend(reset.iter().cloned());
    if !instance.test_patch.is_empty() {
        let end = end_of_text(&instance.test_patch);
        lines.push(format!("git apply -v - <<'{end}'"));
        lines.push(instance.test_patch.trim_end_matches('\n').to_owned());
        lines.push(end);
    }
    lines.push(format!(": '{START_OF_TESTS}'"));
    let command = test_command(&instance.repo);
    let directives: Vec<String> = directives(instance)
        .iter()
        .map(|name| quote(name))
        .collect();
    lines.push(format!("{command} {}", directives.join(" ")));
    lines.push(format!(": '{END_OF_TESTS}'"));
    lines.extend(reset);
    lines
}

/// How a repository's tests are run. The tests themselves stand behind it.
fn test_command(repo: &str) -> &'static str {
    match repo {
        "django/django" => "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
        "sympy/sympy" => {
            "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose"
        }
        "sphinx-doc/sphinx" => "tox --current-env -epy39 -v --",
        "astropy/astropy" => "pytest -rA -vv -o console_output_style=classic --tb=no",
        "mwaskom/seaborn" => "pytest --no-header -rA",
        _ => "pytest -rA",
    }
}

/// What a repository's tests need before them.
fn surroundings(repo: &str) -> &'static [&'static str] {
    match repo {
        "django/django" => &[
            "sed -i '/en_US.UTF-8/s/^# //g' /etc/locale.gen && locale-gen",
            "export LANG=en_US.UTF-8",
            "export LANGUAGE=en_US:en",
            "export LC_ALL=en_US.UTF-8",
        ],
        _ => &[],
    }
}

/// Files of a patch with these endings are data of tests, not tests.
const NO_TESTS: [&str; 11] = [
    ".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml",
];

/// What the runner is told to run: the test files of the test patch, for Django as modules.
pub fn directives(instance: &Instance) -> Vec<String> {
    let files = touched_files(&instance.test_patch).into_iter();
    let tests = files.map(|file| file.path).filter(|path| {
        let is_data = NO_TESTS.iter().any(|end| path.ends_with(end));
        !is_data
    });
    match instance.repo.as_str() {
        "django/django" => tests.map(|path| module(&path)).collect(),
        _ => tests.collect(),
    }
}

fn module(path: &str) -> String {
    let path = path.strip_suffix(".py").unwrap_or(path);
    path.strip_prefix("tests/")
        .unwrap_or(path)
        .replace('/', ".")
}

/// A file that a patch changes.
struct Touched {
    path: String,
    /// The patch makes it.
    is_new: bool,
}

fn touched_files(patch: &str) -> Vec<Touched> {
    let mut files: Vec<Touched> = Vec::new();
    for line in patch.lines() {
        if let Some(paths) = line.strip_prefix("diff --git a/") {
            let path = paths.split_once(" b/").map_or(paths, |(_, path)| path);
            files.push(Touched {
                path: path.to_owned(),
                is_new: false,
            });
        } else if let (Some(file), true) = (files.last_mut(), line.starts_with("new file mode ")) {
            file.is_new = true;
        }
    }
    files
}

/// A word that no line of `text` is.
fn end_of_text(text: &str) -> String {
    let mut end = "END_OF_TEST_PATCH".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    end
}

/// A word of a shell's command as it is.
fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_PATCH: &str = "\
diff --git a/tests/model_fields/test_a.py b/tests/model_fields/test_a.py
--- a/tests/model_fields/test_a.py
+++ b/tests/model_fields/test_a.py
@@ -1 +1 @@
-old
+new
diff --git a/tests/data/b.json b/tests/data/b.json
--- a/tests/data/b.json
+++ b/tests/data/b.json
@@ -1 +1 @@
-{}
+[]
diff --git a/tests/it's new.py b/tests/it's new.py
new file mode 100644
--- /dev/null
+++ b/tests/it's new.py
@@ -0,0 +1 @@
+END_OF_TEST_PATCH
";

    fn instance(repo: &str) -> Instance {
        Instance {
            repo: repo.to_owned(),
            instance_id: "a__b-1".to_owned(),
            base_commit: "0123abcd".to_owned(),
            test_patch: TEST_PATCH.to_owned(),
            ..Instance::default()
        }
    }

    #[test]
    fn directives_are_the_patches_test_files_and_modules_for_django() {
        assert_eq!(
            directives(&instance("a/b")),
            ["tests/model_fields/test_a.py", "tests/it's new.py"]
        );
        assert_eq!(
            directives(&instance("django/django")),
            ["model_fields.test_a", "it's new"]
        );
    }

    #[test]
    fn a_script_is_made_of_the_row() {
        let script = eval_script(&instance("mwaskom/seaborn"));
        let at = |text: &str| {
            script
                .find(text)
                .unwrap_or_else(|| panic!("{text}\n{script}"))
        };
        let order = [
            at("#!/bin/bash\nset -uxo pipefail\n"),
            at("conda activate testbed"),
            at("python -m pip install -e ."),
            at("git checkout 0123abcd tests/model_fields/test_a.py tests/data/b.json\n"),
            at(r"rm -f 'tests/it'\''s new.py'"),
            at("<<'END_OF_TEST_PATCH'\n"),
            at("\n+END_OF_TEST_PATCH\nEND_OF_TEST_PATCH\n"),
            at(START_OF_TESTS),
            at("pytest --no-header -rA tests/model_fields/test_a.py "),
            at("SWEBENCH_TEST_EXIT_CODE=$?\n"),
            at(END_OF_TESTS),
            at("echo \">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE\""),
        ];
        assert!(order.is_sorted(), "{order:?}");
        assert_eq!(script.matches("git checkout 0123abcd").count(), 2);
    }

    #[test]
    fn a_rows_own_script_records_the_exit_code_once() {
        let own = "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n: '>>>>> Start Test Output'\nnpm test\n\
                   : '>>>>> End Test Output'\necho '>>>>> End Test Output'\ngit checkout x";
        let row = Instance {
            eval_script: Some(own.to_owned()),
            ..instance("a/b")
        };
        let script = eval_script(&row);
        let expected = "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n: '>>>>> Start Test Output'\nnpm test\n\
                        SWEBENCH_TEST_EXIT_CODE=$?\n: '>>>>> End Test Output'\n\
                        echo \">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE\"\n\
                        echo '>>>>> End Test Output'\ngit checkout x\n";
        assert_eq!(script, expected);
        let unmarked = Instance {
            eval_script: Some("make test".to_owned()),
            ..instance("a/b")
        };
        assert_eq!(
            eval_script(&unmarked),
            "#!/bin/bash\nset -uxo pipefail\nmake test\n"
        );
    }
}
