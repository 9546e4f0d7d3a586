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

/// What a graph says does not hang on the file that it came from, beyond what the format has.
#[test]
fn graphs_in_files_of_every_form_are_queried_and_shown() {
    let folder = repository();
    let node = "func:pack/tree.py:Tree.grow";
    let query = ["query", "--json", "grow", "-tests"];
    let of_folder: Value = serde_json::from_slice(&graph(folder.path(), &query).stdout).unwrap();
    let shown = stdout(&graph(folder.path(), &["show", node]));
    let tree = stdout(&graph(folder.path(), &["show", "--depth", "3"]));
    for (form, told) in [
        ("binary", ""),
        ("jsonl", "Graph Planner's lines"),
        ("json", "an object of nodes and edges"),
        ("codefuse", "CodeFuse's code graph"),
    ] {
        // The name says nothing of the form.
        let out = folder.path().join("graph.dat");
        let path = out.to_str().unwrap();
        assert_success(&graph(
            folder.path(),
            &["build", "--format", form, "--out", path],
        ));
        let found = graph(&out, &query);
        assert_success(&found);
        assert!(stderr(&found).contains(told), "{}", stderr(&found));
        let found: Value = serde_json::from_slice(&found.stdout).unwrap();
        let best = |found: &Value| found["hits"][0]["node"]["id"].clone();
        assert_eq!(best(&found), best(&of_folder), "{form}");
        let of_file = graph(&out, &["show", node]);
        let text = stdout(&of_file);
        assert!(
            text.contains("calls          func:pack/tree.py:helper:7"),
            "{form}: {text}"
        );
        if form == "codefuse" {
            assert!(
                stderr(&of_file).contains(" overrides, tests;"),
                "{}",
                stderr(&of_file)
            );
            continue;
        }
        assert_eq!(text, shown, "{form}");
        assert_eq!(
            stdout(&graph(&out, &["show", "--depth", "3"])),
            tree,
            "{form}"
        );
        assert_eq!(found["hits"], of_folder["hits"], "{form}");
        let dot = stdout(&graph(&out, &["show", "pack/tree.py", "--dot"]));
        assert!(dot.contains("[label = contains]"), "{dot}");
    }
}

/// Graphs of others have what theirs has: names that are not ours, no lines, edges to what is not there, circles.
#[test]
fn what_a_graph_in_a_file_does_not_have_is_said() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("repo_graph.jsonl");
    fs::write(
        &path,
        "\u{feff}\n{\"type\": \"node\", \"id\": 7, \"kind\": \"function\", \"name\": \"parse_header\", \"path\": \"http/head.py\"}\n\
         {\"type\": \"node\", \"data\": {\"id\": \"c\", \"kind\": \"class\", \"name\": \"Head\", \"path\": \"http/head.py\"}}\n\
         {\"type\": \"edge\", \"u\": \"c\", \"v\": \"7\", \"kind\": \"contains\"}\n\
         {\"type\": \"edge\", \"u\": \"7\", \"v\": \"c\", \"kind\": \"contains\"}\n\
         {\"type\": \"edge\", \"src\": \"7\", \"dst\": \"gone\", \"etype\": \"data flow\"}\n",
    )
    .unwrap();
    let found = graph(&path, &["query", "header"]);
    assert_success(&found);
    assert!(
        stdout(&found).contains("7  function parse_header  http/head.py"),
        "{}",
        stdout(&found)
    );
    let said = stderr(&found);
    for part in [
        "2 nodes, 3 edges",
        "no span: all 2 definitions",
        "no signatures and no documentation",
        "no edges of these kinds: imports, extends, calls, references, overrides, tests;",
        "1 edge from or to what is no node of it",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let shown = graph(&path, &["show", "7", "--depth", "99999"]);
    assert_success(&shown);
    assert_eq!(
        stdout(&shown),
        "7  function parse_header  http/head.py\n  c  class Head  http/head.py\ndata flow      gone\n"
    );
    // Everything stands in something, so all of it is shown.
    assert!(stdout(&graph(&path, &["show"])).contains("c  class Head"));
    let near = graph(&path, &["show", "func:parse_header"]);
    assert!(stderr(&near).contains("is it 7?"), "{}", stderr(&near));
    let dot = stdout(&graph(&path, &["show", "7", "--dot"]));
    assert!(
        dot.contains("\"7\" -> \"gone\" [label = \"data flow\"];"),
        "{dot}"
    );
}

#[test]
fn files_that_are_no_graphs_are_refused_with_the_place() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("graph");
    let node = "{\"type\": \"node\", \"id\": \"a\"}\n";
    for (content, says) in [
        ("", "no graph but an empty file"),
        (" \n", "no graph but an empty file"),
        ("digraph code {}", "DOT, which is drawn and not read"),
        ("[1]", "does not begin with `{`"),
        ("{\"nodes\": []}", "has no nodes"),
        ("{\"edges\": []}", "line 1, `nodes`: is nothing, not a list"),
        (
            "{\n\"nodes\": [\n{\"kind\": \"class\"}]}",
            "line 3, `nodes[0].id`: is missing",
        ),
        ("{\n\"nodes\": [\n", "line 3: "),
        (
            &format!("{node}{{\"type\": \"node\", \"data\": {{}}}}"),
            "line 2, `data.id`: is missing",
        ),
        (
            &format!("{node}{node}{{\"src\": \"a\"}}"),
            "line 3, `type`: is nothing",
        ),
        (&format!("{node}torn"), "line 2: "),
        (
            &format!("{node}{node}{{\"type\": \"node\", \"id\": \"a\", \"name\": \"b\"}}"),
            "line 3, `id`: \"a\" is the id of another node before it",
        ),
        (
            "{\"nodes\": [\n{\"id\": \"a\"},\n{\"id\": \"a\", \"name\": \"b\"}]}",
            "line 3, `nodes[1].id`: \"a\" is the id of another node before it",
        ),
        ("ETUDEGRFxx", "etude: "),
    ] {
        fs::write(&path, content).unwrap();
        for arguments in [&["query", "a"][..], &["show"]] {
            let refused = graph(&path, arguments);
            let said = stderr(&refused);
            assert_eq!(refused.status.code(), Some(2), "{content}: {said}");
            assert!(said.contains(says), "{content}: {said}");
            assert!(said.contains(path.to_str().unwrap()), "{said}");
        }
    }
    fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let refused = graph(&path, &["show"]);
    assert!(
        stderr(&refused).contains("not text"),
        "{}",
        stderr(&refused)
    );
    fs::write(&path, node).unwrap();
    let refused = graph(&path, &["build"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("is a graph already"),
        "{}",
        stderr(&refused)
    );
    let cached = graph(&path, &["show", "--cache", "/tmp"]);
    assert!(
        stderr(&cached).contains("--cache keeps the graphs of folders"),
        "{}",
        stderr(&cached)
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
            &["query", "grow", "-n", "3"],
            "put options before the words",
        ),
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
