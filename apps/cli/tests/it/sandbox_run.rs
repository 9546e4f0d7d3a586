//! `etude sandbox run`: what people and scripts see of one program.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    etude::{etude, stderr, wait_until},
    processes::{assert_all_end, descendants, signal},
};

fn run(folder: &Path, file: &str, source: &[u8], more: &[&str]) -> Output {
    let path = folder.join(file);
    fs::write(&path, source).unwrap();
    let mut arguments = vec!["sandbox", "run", path.to_str().unwrap()];
    arguments.extend(more);
    etude(folder, arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        text.trim_end().lines().count(),
        1,
        "{text}{}",
        stderr(output)
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_the_program_writes_is_passed_on_byte_for_byte() {
    let folder = TempDir::new().unwrap();
    let source = b"import sys; sys.stdout.buffer.write(b'\\xff\\0\\n'); sys.stderr.write('e')";
    let output = run(folder.path(), "a.py", source, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        (&output.stdout[..], &output.stderr[..]),
        (&b"\xff\0\n"[..], &b"e"[..])
    );
}

#[test]
fn a_failed_program_is_exit_code_1_and_a_line() {
    let folder = TempDir::new().unwrap();
    let output = run(folder.path(), "a.sh", b"echo out; exit 7", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(
        stderr(&output),
        "etude: the program ended with exit code 7\n"
    );
    let output = run(
        folder.path(),
        "a.py",
        b"while True: pass",
        &["--timeout", "0.3"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "etude: the program was ended at its time limit\n"
    );
}

#[test]
fn input_comes_from_a_file_or_from_the_command() {
    let folder = TempDir::new().unwrap();
    let input = folder.path().join("input");
    fs::write(&input, "from a file").unwrap();
    let source = b"import sys; print(sys.stdin.read(), sys.argv[1:])";
    let more = ["--stdin", input.to_str().unwrap(), "--", "-x", "y"];
    let output = run(folder.path(), "a.py", source, &more);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "from a file ['-x', 'y']\n"
    );

    let program = folder.path().join("a.py");
    let arguments = ["sandbox", "run", "--stdin", "-", program.to_str().unwrap()];
    let mut child = etude(folder.path(), arguments)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"typed").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "typed []\n");
}

#[test]
fn the_json_object_tells_how_it_ended_and_what_held_it() {
    let folder = TempDir::new().unwrap();
    let check = |source: &str, more: &[&str], status: &str| {
        let more = [&["--json"], more].concat();
        let output = run(folder.path(), "a.py", source.as_bytes(), &more);
        let object = json(&output);
        assert_eq!(object["status"], status, "{object}");
        assert_eq!(
            output.status.code(),
            Some(i32::from(status != "ok")),
            "{object}"
        );
        for field in ["wall_ms", "cpu_ms", "peak_memory_mb"] {
            assert!(
                object[field].as_f64().is_some_and(|number| number > 0.0),
                "{object}"
            );
        }
        for limit in ["wall_s", "cpu_s", "memory_mb", "processes", "disk_mb"] {
            let limit = &object["limits"][limit];
            assert!(
                limit["limit"].as_f64().is_some_and(|number| number > 0.0),
                "{object}"
            );
        }
        for (name, limit) in object["limits"].as_object().unwrap() {
            let by = limit["enforced_by"].as_array().unwrap();
            assert!(!by.is_empty(), "{name}: {object}");
        }
        assert_eq!(object["limits"]["network"]["enforced_by"][0], "namespace");
        assert_eq!(object["tier"], "namespaces");
        object
    };
    let object = check("print('hello')", &[], "ok");
    assert_eq!(
        (&object["stdout"], &object["exit_code"]),
        (&"hello\n".into(), &0.into())
    );
    assert_eq!(
        (&object["truncated"], &object["build"]),
        (&false.into(), &Value::Null)
    );
    let object = check("exit(3)", &[], "non_zero");
    assert_eq!(object["exit_code"], 3);
    let object = check("import os; os.abort()", &[], "signal");
    assert_eq!(
        (&object["signal"], &object["exit_code"]),
        (&6.into(), &Value::Null)
    );
    check(
        "import time; time.sleep(9)",
        &["--timeout", "0.2"],
        "wall_timeout",
    );
    check("while True: pass", &["--cpu", "0.2"], "cpu_timeout");
    check("'x' * (1 << 28)", &["--memory", "128"], "memory");
    let object = check("while True: print('x' * 4096)", &[], "output");
    assert_eq!(object["truncated"], true);
    assert!(object["stdout_bytes"].as_u64().unwrap() > 1 << 24);
    check("open('f', 'wb').write(bytes(1 << 27))", &[], "disk");
}

#[test]
fn compiled_programs_tell_how_their_build_went() {
    let folder = TempDir::new().unwrap();
    let source = b"#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }";
    let output = run(folder.path(), "a.c", source, &["--json"]);
    let object = json(&output);
    if object["error"]
        .as_str()
        .is_some_and(|error| error.contains("gcc"))
    {
        eprintln!("SKIPPED, NOTHING PROVEN ABOUT BUILDS: gcc is not installed");
        return;
    }
    assert_eq!(
        (&object["status"], &object["stdout"]),
        (&"ok".into(), &"hello\n".into())
    );
    assert_eq!(object["build"]["status"], "ok");

    let broken = b"int main(void) { return undeclared; }";
    let output = run(folder.path(), "a.c", broken, &["--json"]);
    let object = json(&output);
    assert_eq!(
        (&object["status"], &object["exit_code"]),
        (&"non_zero".into(), &1.into())
    );
    assert_eq!(object["build"]["status"], "non_zero");
    assert!(
        object["build"]["stderr"]
            .as_str()
            .unwrap()
            .contains("undeclared"),
        "{object}"
    );
    let output = run(folder.path(), "a.c", broken, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let last = said.lines().last().unwrap();
    assert_eq!(
        last,
        "etude: the program was not run: its build ended with exit code 1"
    );
    assert!(said.contains("undeclared"), "{said}");
}

#[test]
fn interrupted_it_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("a.py");
    let source = "import os, time\nos.fork()\nprint('up', flush=True)\ntime.sleep(600)";
    fs::write(&program, source).unwrap();
    let arguments = [
        "sandbox",
        "run",
        "--timeout",
        "600",
        program.to_str().unwrap(),
    ];
    let child = etude(folder.path(), arguments).spawn().unwrap();
    // Supervisor, slot, interpreter, the run's first process, the program and its child.
    wait_until("the program runs", || descendants(child.id()).len() >= 6);
    let below = descendants(child.id());
    signal("INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(stderr(&output), "etude: stopped\n");
    assert_all_end(&below);
}

#[test]
fn wrong_wishes_are_exit_code_2_and_name_what_is_wrong() {
    let folder = TempDir::new().unwrap();
    let check = |arguments: &[&str], expected: &[&str]| {
        let arguments = ["sandbox", "run"].iter().chain(arguments);
        let output = etude(folder.path(), arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(output.stdout.is_empty());
        for expected in expected {
            assert!(said.contains(expected), "{expected}: {said}");
        }
    };
    let file = folder.path().join("a.py");
    fs::write(&file, "print(1)").unwrap();
    let file = file.to_str().unwrap();
    let odd = folder.path().join("a.txt");
    fs::write(&odd, "print(1)").unwrap();
    check(&["no/such.py"], &["no/such.py", "No such file"]);
    check(
        &[file, "--lang", "cobol"],
        &["cobol", "python", "typescript"],
    );
    check(&[odd.to_str().unwrap()], &["a.txt", "--lang", "bash"]);
    check(&[file, "--stdin", "no/input"], &["no/input"]);
    for wrong in ["0", "-1", "nan", "inf", "1e9", "x"] {
        check(&[file, &format!("--timeout={wrong}")], &["--timeout"]);
    }
    for wrong in ["0", "-1", "99999999999", "x"] {
        check(&[file, &format!("--memory={wrong}")], &["--memory"]);
    }
}
