//! Graphs in their files: what is written is read back, what is damaged is refused, and caches give what
//! building gives.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs, io,
    sync::atomic::{AtomicUsize, Ordering},
};

use code::graph::{
    Contents, Graph, Index, ListedFormat, ListedGraph, Query, Subgraph,
    files::{GraphCache, load_repository_graph, load_subgraph, save_subgraph, subgraph_path},
};
use proptest::prelude::*;

fn contents() -> Contents {
    let files = [
        ("a/__init__.py", "from .b import *\n"),
        (
            "a/b.py",
            "\"\"\"What b is.\"\"\"\nclass B:\n    limit = 3\n    def f(self) -> 'B':\n        return self.f().f()\n",
        ),
        (
            "a/c.py",
            "from a import B\nclass C(B):\n    def f(self): return super().f()\nx = C().f()\n",
        ),
        (
            "tests/test_a.py",
            "from a.c import x, C\ndef test(): C().f()\n",
        ),
        (
            "web/m.js",
            "export class M {}\nfunction go() { return new M() }\n",
        ),
        ("bad.py", "def (\n"),
        ("README", "nothing to look into\n"),
    ];
    let files = files.into_iter();
    files
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .collect()
}

#[test]
fn binary_graphs_are_the_graphs() {
    let contents = contents();
    let graph = Graph::build(&contents, 2);
    let bytes = graph.to_bytes();
    let read = Graph::from_bytes(&bytes, 2).unwrap();
    assert!(read == graph);
    assert_eq!(ListedGraph::of(&read), ListedGraph::of(&graph));
    assert_eq!(read.to_bytes(), bytes);
    // It goes on like the one that was built.
    let mut updated = read;
    updated.update("a/b.py", Some(b"class B: pass\n"), 1);
    let mut changed = contents.clone();
    changed.insert("a/b.py".to_owned(), b"class B: pass\n".to_vec());
    assert!(updated == Graph::build(&changed, 1));
    assert!(Graph::from_bytes(&Graph::default().to_bytes(), 1).unwrap() == Graph::default());
}

#[test]
fn damaged_binary_graphs_are_refused() {
    let bytes = Graph::build(&contents(), 1).to_bytes();
    for length in 0..bytes.len() {
        assert!(Graph::from_bytes(&bytes[..length], 1).is_err());
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(Graph::from_bytes(&damaged, 1).is_err(), "byte {at}");
    }
    let refused = |bytes: &[u8]| Graph::from_bytes(bytes, 1).unwrap_err();
    assert_eq!(
        refused(b"{\"nodes\": []}, and so on and on and on and on").field,
        "magic"
    );
    let mut other = bytes.clone();
    other[8] += 1;
    let error = refused(&other);
    assert_eq!((error.field, error.offset), ("version", 8));
    assert!(error.to_string().contains("build it again"));
}

/// With the digest that belongs to it: what was not damaged but made.
fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let digest = blake3::hash(&content);
    content.extend(digest.as_bytes());
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is read as a graph can be walked.
    #[test]
    fn made_up_binary_graphs_do_no_harm(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let bytes = Graph::build(&contents(), 1).to_bytes();
        let mut content = bytes[..bytes.len() - 32].to_vec();
        for (at, byte) in places {
            let at = 9 + at.index(content.len() - 9);
            content[at] = byte;
        }
        if let Ok(graph) = Graph::from_bytes(&sealed(content), 1) {
            let listed = ListedGraph::of(&graph);
            for id in listed.nodes.keys() {
                graph.find(id);
            }
            for node in graph.nodes() {
                graph.incoming(node);
            }
            let mut graph = graph;
            graph.update("a/b.py", Some(b"class B: pass\n"), 1);
        }
    }

    /// In any form that is written, what was listed is read back.
    #[test]
    fn lists_survive(
        nodes in prop::collection::btree_map("[a-z]{1,3}", ("[a-z/]{0,6}", 1u32..9, 0u32..9, any::<bool>()), 0..6),
        edges in prop::collection::vec((0usize..6, 0usize..6), 0..8),
    ) {
        let mut graph = ListedGraph::default();
        for (id, (path, start, more, memorized)) in &nodes {
            let json = serde_json::json!({
                "id": id, "kind": "function", "path": path, "name": id, "memorized": memorized,
                "span": {"start": start, "end": start + more}, "score": f64::from(*start) / 4.0, "other": [start],
            });
            graph.nodes.insert(id.clone(), serde_json::from_value(json).unwrap());
        }
        let ids: Vec<&String> = nodes.keys().collect();
        for (source, target) in edges {
            if let (Some(source), Some(target)) = (ids.get(source), ids.get(target)) {
                graph.edges.insert(((*source).clone(), (*target).clone(), "calls".to_owned()));
            }
        }
        prop_assert_eq!(&ListedGraph::from_jsonl(&graph.to_jsonl()).unwrap(), &graph);
        prop_assert_eq!(&ListedGraph::from_json(&graph.to_json().to_string()).unwrap(), &graph);
        let subgraph = Subgraph::from_file(&graph.to_json().to_string()).unwrap();
        prop_assert_eq!(subgraph.listed(), &graph);
        prop_assert_eq!(Subgraph::from_file(&subgraph.to_file()).unwrap(), subgraph);
    }
}

#[test]
fn codefuse_graphs_survive() {
    let contents = contents();
    let source = |path: &str| std::str::from_utf8(contents.get(path)?).ok();
    let listed = ListedGraph::of(&Graph::build(&contents, 1));
    let written = listed.to_codefuse(source).unwrap();
    let read = ListedGraph::from_json(&written).unwrap();
    // All that the format has: no signatures of classes, no edges of its own, one kind of files.
    for (id, node) in &listed.nodes {
        let back = &read.nodes[id];
        assert_eq!((&back.kind, &back.path), (&node.kind, &node.path), "{id}");
        if !matches!(node.kind.as_str(), "file" | "t-file") {
            assert_eq!((&back.name, back.span), (&node.name, node.span), "{id}");
        }
        assert_eq!(
            back.documentation.is_empty(),
            node.documentation.is_empty() || node.kind == "file"
        );
    }
    let known = |(_, _, kind): &&(String, String, String)| kind != "overrides" && kind != "tests";
    assert!(listed.edges.iter().filter(known).eq(&read.edges));
    assert_eq!(read.to_codefuse(|_| None).unwrap(), written);
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    let of = |id: &str| {
        let nodes = written["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["id"] == id).unwrap().clone()
    };
    let class = of("class:a/b.py:B:2");
    assert_eq!(class["clean_text"], "class B:\n    limit = 3\n");
    assert_eq!(
        (&class["startLoc"], &class["endLoc"]),
        (&2.into(), &5.into())
    );
    assert_eq!(of("file:a/b.py")["clean_text"], "\"\"\"What b is.\"\"\"\n");
    let function = of("func:a/b.py:B.f:4");
    assert_eq!(function["header"], "def f(self) -> 'B'");
    assert_eq!(function["loc"], 4);
    assert_eq!(of("attr:a/b.py:B.limit:3")["nodeType"], "Attribute");
    // The Java variant, with names that are not ours.
    let java = "{\"nodes\": [{\"nodeId\": 1, \"nodeType\": \"File\", \"fileName\": \"A.java\", \"filePath\": \"src/A.java\", \
        \"text\": \"\"}, {\"nodeId\": 2, \"nodeType\": \"Method\", \"name\": \"f\", \"header\": \"int f()\", \"loc\": 3, \
        \"text\": \"int f() {\\n}\"}], \"edges\": [{\"edgeType\": \"contains\", \"source\": 1, \"target\": 2}]}";
    let java = ListedGraph::from_json(java).unwrap();
    let method = &java.nodes["2"];
    assert_eq!(
        (method.kind.as_str(), method.path.as_str()),
        ("function", "src/A.java")
    );
    assert_eq!(method.span.map(|span| (span.start, span.end)), Some((3, 4)));
}

#[test]
fn forms_of_listed_graphs_are_told_by_what_is_in_them() {
    let contents = contents();
    let listed = ListedGraph::of(&Graph::build(&contents, 1));
    let codefuse = listed.to_codefuse(|_| None).unwrap();
    let codefuse: serde_json::Value = serde_json::from_str(&codefuse).unwrap();
    let one_line = "{\"type\": \"node\", \"id\": \"a\"}";
    let pretty = serde_json::to_string_pretty(&listed.to_json()).unwrap();
    for (text, format) in [
        (listed.to_jsonl(), ListedFormat::Jsonl),
        (format!("\n\r\n{}", listed.to_jsonl()), ListedFormat::Jsonl),
        (one_line.to_owned(), ListedFormat::Jsonl),
        (listed.to_json().to_string(), ListedFormat::Json),
        (format!("\u{feff}{pretty}\n"), ListedFormat::Json),
        (codefuse.to_string(), ListedFormat::Codefuse),
        (
            serde_json::to_string_pretty(&codefuse).unwrap(),
            ListedFormat::Codefuse,
        ),
    ] {
        let (read, found) = ListedGraph::from_text(&text).unwrap();
        assert_eq!(found, format);
        match format {
            ListedFormat::Codefuse => assert_eq!(read.nodes.len(), listed.nodes.len()),
            _ if text == one_line => assert_eq!(read.nodes.len(), 1),
            _ => assert_eq!(read, listed),
        }
    }
    // A node without a name of its kind is still one of lines.
    let error = ListedGraph::from_text("{\"id\": \"a\"}\n{\"id\": \"b\"}\n").unwrap_err();
    assert_eq!((error.line, error.field.as_str()), (1, "type"));
}

#[test]
fn listed_graphs_answer_queries_as_built_ones_do() {
    let graph = Graph::build(&contents(), 1);
    let listed = ListedGraph::of(&graph);
    let (built, of_listed) = (Index::new(&graph), Index::of_listed(&listed));
    for text in [
        "symbol:f",
        "symbol:B.f",
        "path:a/c",
        "\"what b is\"",
        "limit",
        "f +super",
        "f -tests",
        "test C",
        "nowhere",
        "go web M",
    ] {
        let query = Query::parse(text);
        let (hits, relaxed) = built.search(&query, 20);
        let (found, was_relaxed) = of_listed.search(&query, 20);
        let mut hits: Vec<_> = hits
            .iter()
            .map(|hit| (graph.node(hit.node).id, hit.score, hit.reasons.clone()))
            .collect();
        let mut found: Vec<_> = found
            .iter()
            .map(|hit| (hit.node.to_owned(), hit.score, hit.reasons.clone()))
            .collect();
        // Equal scores come in the order of the sources, which a list need not have.
        hits.sort_by(|one, two| one.partial_cmp(two).unwrap());
        found.sort_by(|one, two| one.partial_cmp(two).unwrap());
        assert_eq!((found, was_relaxed), (hits, relaxed), "{text}");
    }
}

#[test]
fn what_is_malformed_is_refused_with_line_and_field() {
    for (text, line, field) in [
        ("{}", 1, "type"),
        ("{\"type\":\"node\"}", 1, "id"),
        ("\n{\"type\":\"node\",\"data\":{\"id\":[1]}}", 2, "data.id"),
        ("{\"type\":\"node\",\"data\":3}", 1, "data"),
        (
            "\n\n{\"type\":\"node\",\"id\":\"a\",\"span\":{\"start\":\"x\",\"end\":2}}",
            3,
            "span",
        ),
        (
            "{\"type\":\"node\",\"id\":\"a\",\"span\":{\"start\":3,\"end\":2}}",
            1,
            "span",
        ),
        (
            "{\"type\":\"node\",\"id\":\"a\",\"degree\":-1}",
            1,
            "degree",
        ),
        (
            "{\"type\":\"node\",\"id\":\"a\",\"score\":\"high\"}",
            1,
            "score",
        ),
        ("{\"type\":\"node\",\"id\":\"a\",\"tags\":[{}]}", 1, "tags"),
        (
            "{\"type\":\"node\",\"id\":\"a\",\"memorized\":\"yes\"}",
            1,
            "memorized",
        ),
        ("{\"type\":\"edge\",\"src\":\"a\"}", 1, "dst"),
        ("{\"type\":\"edge\",\"src\":\"a\",\"dst\":{}}", 1, "dst"),
        (
            "{\"type\":\"edge\",\"data\":{\"u\":\"a\",\"v\":\"b\",\"kind\":[]}}",
            1,
            "data.kind",
        ),
        ("{\"type\":\"node\",\"id\":\"a\"}\n{", 2, ""),
        ("[]", 1, ""),
    ] {
        let error = ListedGraph::from_jsonl(text).unwrap_err();
        assert_eq!(
            (error.line, error.field.as_str()),
            (line, field),
            "{text}: {error}"
        );
    }
    for (text, line, field) in [
        ("", 1, ""),
        ("{\n\"nodes\": 3}", 1, "nodes"),
        ("{\"nodes\": [],\n \"edges\": {}}", 1, "edges"),
        (
            "{\n \"nodes\": [\n  {\"id\": \"[a,\\\"\"},\n  3]}",
            4,
            "nodes[1]",
        ),
        (
            "{\"nodes\": [\n{\"id\": \"a\", \"path\": {\"x\": [1, 2]}}]}",
            2,
            "nodes[0].path",
        ),
        (
            "{\"nodes\": {\n\"a\": {},\n\"b\": {\"kind\": []}}}",
            3,
            "nodes[\"b\"].kind",
        ),
        (
            "{\"edges\": [\n{\"src\": 1, \"dst\": 2},\n{\"source\": 1}],\n\"nodes\": []}",
            3,
            "edges[1].dst",
        ),
        (
            "{\"nodes\": [], \"node_ids\": [\"a\",\n {}]}",
            2,
            "node_ids[1]",
        ),
        ("{\"nodes\": [{\"id\": \"a\"}\n", 2, ""),
    ] {
        let error = ListedGraph::from_json(text).unwrap_err();
        assert_eq!(
            (error.line, error.field.as_str()),
            (line, field),
            "{text}: {error}"
        );
    }
}

#[test]
fn caches_look_into_changed_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let cache = GraphCache::new(folder.path().join("graphs"));
    let mut contents = contents();
    let of = |contents: &Contents, commit: &str| {
        let paths: Vec<String> = contents.keys().cloned().collect();
        let read = |path: &str| Ok(&contents[path]);
        cache.graph(("shop", commit), paths, 2, read).unwrap()
    };
    let (graph, had_it) = of(&contents, "c1");
    assert!(!had_it && graph == Graph::build(&contents, 1));
    let (graph, had_it) = of(&contents, "c1");
    assert!(had_it && graph == Graph::build(&contents, 1));
    // Not committed, and another commit.
    contents.insert(
        "a/b.py".to_owned(),
        b"class B:\n    def g(self): pass\n".to_vec(),
    );
    contents.remove("web/m.js");
    let (graph, had_it) = of(&contents, "c1");
    assert!(had_it && graph == Graph::build(&contents, 1));
    let (_, had_it) = of(&contents, "c2");
    assert!(!had_it);
    let names = ["a", "b"].map(|commit| cache.path("shop", commit));
    assert!(names[0] != names[1] && names[0] != cache.path("shopa", ""));
    // A damaged file is as good as none, and is replaced.
    let path = cache.path("shop", "c1");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (graph, had_it) = of(&contents, "c1");
    assert!(!had_it && graph == Graph::build(&contents, 1));
    assert_eq!(fs::read(&path).unwrap(), whole);
    // No drafts are left.
    assert_eq!(
        fs::read_dir(folder.path().join("graphs")).unwrap().count(),
        2
    );
}

#[test]
fn refreshing_is_building_and_fails_as_reading_does() {
    let mut contents = contents();
    let mut graph = Graph::build(&contents, 1);
    for (path, text) in [
        ("a/b.py", Some("class B(object): pass\n")),
        ("new/__init__.py", Some("import a\n")),
        ("bad.py", None),
        ("a/c.py", Some("from a import B\nB()\n")),
    ] {
        match text {
            Some(text) => drop(contents.insert(path.to_owned(), text.as_bytes().to_vec())),
            None => drop(contents.remove(path)),
        }
        let paths: Vec<String> = contents.keys().cloned().collect();
        let read = AtomicUsize::new(0);
        let changed = graph.refresh(paths, 2, |path| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok::<_, io::Error>(&contents[path])
        });
        assert_eq!(changed.unwrap(), [path]);
        assert_eq!(read.into_inner(), contents.len());
        assert!(graph == Graph::build(&contents, 1), "{path}");
    }
    let before = graph.clone();
    let failed = graph.refresh(vec!["a/b.py", "x.py"], 1, |path| match path {
        "x.py" => Err(path.to_owned()),
        _ => Ok(b"pass"),
    });
    assert_eq!(failed.unwrap_err(), "x.py");
    assert!(graph == before);
}

#[test]
fn subgraphs_of_issues_are_kept_whole() {
    let folder = tempfile::tempdir().unwrap();
    let issue = "django__django-1";
    assert_eq!(load_subgraph(folder.path(), issue), Default::default());
    let listed = ListedGraph::of(&Graph::build(&contents(), 1));
    let subgraph = Subgraph::from_file(&listed.to_json().to_string()).unwrap();
    save_subgraph(folder.path(), issue, &subgraph).unwrap();
    assert_eq!(load_subgraph(folder.path(), issue), (subgraph, None));
    let path = subgraph_path(folder.path(), issue);
    assert!(path.ends_with(".aci/subgraphs/django__django-1.json"));
    fs::write(&path, "{\"nodes\": [{}]}").unwrap();
    let (empty, reason) = load_subgraph(folder.path(), issue);
    assert!(empty.is_empty() && reason.unwrap().contains("nodes[0].id"));
    let others = fs::read_dir(path.parent().unwrap()).unwrap();
    assert_eq!(others.count(), 1);

    assert!(load_repository_graph(folder.path()).unwrap().is_none());
    fs::write(folder.path().join("code_graph.jsonl"), "x").unwrap();
    assert!(load_repository_graph(folder.path()).is_err());
    fs::write(folder.path().join("repo_graph.jsonl"), listed.to_jsonl()).unwrap();
    assert_eq!(load_repository_graph(folder.path()).unwrap(), Some(listed));
}
