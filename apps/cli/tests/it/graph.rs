//! `etude graph`: what it prints of a repository, what it writes, and how it refuses.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::etude::{assert_success, etude, stderr};

fn repository() -> TempDir {
    let folder = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("pack/__init__.py", "from .tree import Tree\n");
    write(
        "pack/tree.py",
        "class Tree:\n    \"\"\"Grows.\"\"\"\n    def grow(self):\n        return helper(self)\n\n\n\
         def helper(tree):\n    return tree\n",
    );
    write(
        "tests/test_tree.py",
        "from pack import Tree\n\n\ndef test_it():\n    Tree().grow()\n",
    );
    write("broken.py", "def f(:\n");
    write(".git/hidden.py", "x = 1\n");
    write(".gitignore", "ignored.py\n");
    write("ignored.py", "x = 1\n");
    write("venv/lib/other.py", "x = 1\n");
    folder
}

fn graph(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut all = vec![
        "graph".to_owned(),
        arguments[0].to_owned(),
        folder.display().to_string(),
    ];
    all.extend(arguments[1..].iter().map(|it| (*it).to_owned()));
    etude(&std::env::temp_dir(), all).output().unwrap()
}

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_repository_is_built_searched_and_shown() {
    let folder = repository();
    let out = folder.path().join("graph.jsonl");
    let built = graph(
        folder.path(),
        &["build", "--json", "--out", out.to_str().unwrap()],
    );
    assert_success(&built);
    let told: Value = serde_json::from_slice(&built.stdout).unwrap();
    assert_eq!(told["files"], 4);
    assert_eq!(told["nodes"]["class"], 1);
    assert_eq!(told["edges"]["tests"], 3);
    assert_eq!(told["faults"][0][0], "broken.py");
    assert!(stderr(&built).contains("broken.py: line 1: "));
    let lines = fs::read_to_string(out).unwrap();
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    assert!(lines.contains("\"etype\":\"calls\""));

    let found = graph(folder.path(), &["query", "grow", "-tests"]);
    assert_success(&found);
    assert!(
        stdout(&found)
            .lines()
            .next()
            .unwrap()
            .contains("func:pack/tree.py:Tree.grow:3")
    );
    let nothing = graph(folder.path(), &["query", "zebra"]);
    assert_success(&nothing);
    assert_eq!(stdout(&nothing), "nothing found\n");

    let shown = stdout(&graph(
        folder.path(),
        &["show", "func:pack/tree.py:Tree.grow"],
    ));
    assert!(
        shown.contains("calls          func:pack/tree.py:helper:7"),
        "{shown}"
    );
    assert!(
        shown.contains("tested by      func:tests/test_tree.py:test_it:4"),
        "{shown}"
    );
    let whole = stdout(&graph(folder.path(), &["show", "--depth", "3"]));
    assert!(
        whole.contains("      func:pack/tree.py:helper:7  [7-8]"),
        "{whole}"
    );
    let edges = |depth: &str| {
        let shown = graph(folder.path(), &["show", "--json", "--depth", depth]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown["edges"].as_array().unwrap().len()
    };
    assert!(edges("3") > edges("2") && edges("2") > edges("1"));
    let built = graph(folder.path(), &["build", "--format", "jsonl"]);
    assert_eq!(stdout(&built), lines);
    let dot = stdout(&graph(folder.path(), &["show", "pack/tree.py", "--dot"]));
    assert!(
        dot.starts_with("digraph code {") && dot.contains("[label = contains]"),
        "{dot}"
    );
}

#[test]
fn a_graph_as_json_is_named_as_what_it_is() {
    let folder = repository();
    let out = folder.path().join("graph.jsonl");
    let path = out.to_str().unwrap();
    assert_success(&graph(folder.path(), &["build", "--out", path]));
    let refused = graph(&out, &["query", "grow"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("--format binary"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn what_a_cache_keeps_is_what_is_there() {
    let folder = repository();
    let cache = TempDir::new().unwrap();
    let kept = cache.path().to_str().unwrap();
    let query = ["query", "--cache", kept, "grow"];
    let show = ["show", "--cache", kept, "--depth", "3"];
    for arguments in [&query[..], &show] {
        let plain: Vec<&str> = arguments
            .iter()
            .copied()
            .filter(|it| ![kept, "--cache"].contains(it))
            .collect();
        for _ in 0..2 {
            let cached = graph(folder.path(), arguments);
            assert_success(&cached);
            assert_eq!(stdout(&cached), stdout(&graph(folder.path(), &plain)));
        }
        // What changed is looked into again.
        let more = format!("def grow_{}():\n    pass\n", arguments.len());
        fs::write(folder.path().join("pack/more.py"), more).unwrap();
    }
    let found = stdout(&graph(folder.path(), &query));
    assert!(found.contains("grow_5"), "{found}");
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_is_said() {
    let folder = repository();
    let empty = TempDir::new().unwrap();
    for (folder, arguments, says) in [
        (Path::new("/absent"), &["build"][..], "/absent is no folder"),
        (
            empty.path(),
            &["build"],
            "holds no sources in a known language",
        ),
        (
            folder.path(),
            &["query", "the of"],
            "says nothing to look for",
        ),
        (folder.path(), &["show", "func:absent"], "etude graph query"),
        (
            folder.path(),
            &["show", "Grow"],
            "is it func:pack/tree.py:Tree.grow:3?",
        ),
        (folder.path(), &["query", "-n", "0", "grow"], "0 is not in"),
        (
            folder.path(),
            &["build", "--cache", "/proc/absent"],
            "--cache /proc/absent",
        ),
        (
            folder.path(),
            &["build", "--format", "dot", "--json"],
            "give --out FILE",
        ),
        (folder.path(), &["query"], "required"),
    ] {
        let refused = graph(folder, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&refused).contains(says),
            "{arguments:?}: {}",
            stderr(&refused)
        );
    }
}
