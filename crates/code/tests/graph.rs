//! Code graphs: what they hold of a repository, and that every way to the same content gives the same.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use code::graph::{Contents, EdgeKind, Graph, Index, ListedGraph, NodeKind, NodeRef, Query, words};
use proptest::prelude::*;

fn repository(case: &str) -> Contents {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/graphs")
        .join(case)
        .join("repository");
    let mut contents = Contents::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            contents.insert(name, fs::read(path).unwrap());
        }
    }
    contents
}

/// A line for each node but files, and for each edge but `contains`, in order.
fn lines(graph: &Graph) -> Vec<String> {
    let nodes = graph.nodes().map(|node| graph.node(node));
    let nodes = nodes.filter(|node| !node.kind.is_file()).map(|node| {
        let span = node
            .span
            .map(|span| format!(" {}-{}", span.start, span.end));
        let text = format!(
            "{} {}{} {} {}",
            node.kind.name(),
            node.id,
            span.unwrap_or_default(),
            node.signature,
            node.documentation
        );
        text.trim_end().to_owned()
    });
    let edges = graph.edges().filter(|edge| edge.kind != EdgeKind::Contains);
    let edges = edges.map(|edge| {
        let id = |node| graph.node(node).id;
        format!(
            "{} {} {}",
            id(edge.source),
            edge.kind.name(),
            id(edge.target)
        )
    });
    nodes.chain(edges).collect()
}

#[test]
fn names_mean_what_they_mean_to_python() {
    check("001_package");
}

#[test]
fn other_languages_are_there_by_their_symbols() {
    check("002_languages");
}

fn check(case: &str) {
    let graph = Graph::build(&repository(case), 2);
    let told = lines(&graph).join("\n") + "\n";
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs");
    let place = place.join(case).join("expected.txt");
    if option_env!("ETUDE_WRITE_CASES").is_some() {
        fs::write(&place, &told).unwrap();
    }
    assert_eq!(told, fs::read_to_string(place).unwrap());
}

#[test]
fn files_that_cannot_be_read_are_named_with_the_reason() {
    let mut contents = repository("001_package");
    contents.insert("deep.py".to_owned(), "(".repeat(100_000).into_bytes());
    contents.insert("minus.py".to_owned(), "-".repeat(1 << 20).into_bytes());
    let sum = "x = 1".to_owned() + &" + 1".repeat(200_000);
    contents.insert("sum.py".to_owned(), sum.into_bytes());
    contents.insert("large.py".to_owned(), vec![b'\n'; (5 << 20) + 1]);
    contents.insert("indented.py".to_owned(), indented(3000).into_bytes());
    let graph = Graph::build(&contents, 3);
    let fault = |path: &str| graph.facts(graph.file(path).unwrap()).fault.clone();
    assert!(fault("pack/broken.py").unwrap().starts_with("line 1: "));
    assert_eq!(fault("pack/latin.py").unwrap(), "not UTF-8");
    assert_eq!(fault("large.py").unwrap(), "larger than 5 MiB");
    for deep in ["deep.py", "minus.py", "sum.py"] {
        assert!(fault(deep).unwrap().contains("nested deeper"), "{deep}");
    }
    assert_eq!(fault("pack/shapes.py"), None);
}

fn indented(depth: usize) -> String {
    let lines = (0..depth).map(|level| format!("{}if x:\n", " ".repeat(level)));
    lines.chain([" ".repeat(depth) + "pass\n"]).collect()
}

#[test]
fn nodes_are_found_by_their_ids() {
    let graph = Graph::build(&repository("001_package"), 1);
    for node in graph.nodes() {
        assert_eq!(graph.find(&graph.node(node).id), Some(node));
        for edge in graph.outgoing(node) {
            assert_eq!(edge.source, node);
            assert!(graph.incoming(edge.target).contains(&edge), "{edge:?}");
        }
        for edge in graph.incoming(node) {
            assert!(graph.outgoing(edge.source).contains(&edge), "{edge:?}");
        }
        let parent = graph.parent(node);
        assert!(parent.is_none_or(|parent| graph.children(parent).contains(&node)));
    }
    let moved = graph.find("func:pack/shapes.py:circle:999").unwrap();
    assert_eq!(graph.node(moved).name, "circle");
    for absent in [
        "",
        "func:pack/shapes.py:absent:1",
        "file:absent.py",
        "pkg:absent",
        "x:y",
    ] {
        assert_eq!(graph.find(absent), None, "{absent}");
    }
    let test = graph.file("tests/test_shapes.py").unwrap();
    assert_eq!(graph.kind(NodeRef::File(test)), NodeKind::TestFile);
}

#[test]
fn of_definitions_of_one_name_the_kind_of_the_id_decides() {
    let source = "\
class Box:
    size = 1

    def size(self):
        return 2

    def size(self):
        return 3
";
    let contents = Contents::from([("box.py".to_owned(), source.into())]);
    let graph = Graph::build(&contents, 1);
    let found = |id: &str| graph.find(id).map(|node| graph.node(node).id);
    let attribute = Some("attr:box.py:Box.size:2".to_owned());
    assert_eq!(found("attr:box.py:Box.size"), attribute);
    assert_eq!(found("attr:box.py:Box.size:9"), attribute);
    assert_eq!(found("func:box.py:Box.size"), None, "there are two");
    let second = found("func:box.py:Box.size:7");
    assert_eq!(second.as_deref(), Some("func:box.py:Box.size:7"));
}

/// Small modules that refer to one another, and to what may be gone.
fn module() -> impl Strategy<Value = String> {
    let statement = prop::sample::select(vec![
        "import a\n",
        "from a import *\n",
        "from b import C as D, f\n",
        "from p import q\n",
        "from . import q\n",
        "from .q import C\n",
        "import p.q\n",
        "x = C()\n",
        "y: 'C' = None\n",
        "def f(c: C):\n    c.m()\n    return x.m().n\n",
        "def g() -> C:\n    z = g()\n    z.m()\n    p.q.f()\n",
        "class C(a.C):\n    def m(self):\n        self.k = D()\n        return self.k.m()\n",
        "class C:\n    def m(self) -> 'C': return self\n    def only_here(self): pass\n",
        "class D(C):\n    def m(self): super().m()\n    n = f\n",
        "unknown.only_here()\n",
        "class C(C): pass\n",
        "x = x.x\n",
        "broken(\n",
        "# nothing\n",
    ]);
    prop::collection::vec(statement, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_updated_graph_is_the_graph_of_the_new_content(
        before in prop::collection::vec((0usize..6, module()), 1..6),
        changes in prop::collection::vec((0usize..6, prop::option::weighted(0.8, module())), 1..6),
        threads in 1usize..4,
    ) {
        let paths = ["a.py", "b.py", "p/__init__.py", "p/q.py", "tests/test_a.py", "p/r/s.py"];
        let mut contents: Contents = before
            .into_iter()
            .map(|(index, text)| (paths[index].to_owned(), text.into_bytes()))
            .collect();
        let mut graph = Graph::build(&contents, threads);
        for (index, text) in changes {
            let path = paths[index];
            graph.update(path, text.as_deref().map(str::as_bytes), threads);
            match text {
                Some(text) => contents.insert(path.to_owned(), text.into_bytes()),
                None => contents.remove(path),
            };
            let cold = Graph::build(&contents, 1);
            prop_assert_eq!(lines(&graph), lines(&cold));
            prop_assert!(graph == cold);
        }
    }

    #[test]
    fn any_text_has_a_graph(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let contents = Contents::from([
            ("a.py".to_owned(), text.into_bytes()),
            ("b.py".to_owned(), bytes),
        ]);
        let graph = Graph::build(&contents, 1);
        for node in graph.nodes() {
            graph.node(node);
        }
    }
}

#[test]
fn queries_find_what_they_name() {
    let graph = Graph::build(&repository("001_package"), 1);
    let index = Index::new(&graph);
    let found = |query: &str| -> Vec<String> {
        let (hits, _) = index.search(&Query::parse(query), 5);
        hits.iter().map(|hit| graph.node(hit.node).id).collect()
    };
    assert_eq!(found("symbol:circle")[0], "func:pack/shapes.py:circle:37");
    assert_eq!(
        found("symbol:forms.Square")[0],
        "class:pack/shapes.py:Square:20"
    );
    assert!(found("path:sub").iter().all(|id| id.contains("pack/sub/")));
    assert_eq!(
        found("\"something with an area\""),
        ["class:pack/shapes.py:Shape:7"]
    );
    assert!(
        found("symbol:area -tests")
            .iter()
            .all(|id| !id.contains("tests/"))
    );
    assert!(
        found("symbol:area +deep")
            .iter()
            .all(|id| id.contains("deep"))
    );
    assert_eq!(
        found("what is the volume of it")[0],
        "func:pack/sub/deep.py:Cube.volume:10"
    );
    assert!(found("").is_empty() && found("the of in").is_empty());
    assert!(found("zebra").is_empty());
    // Nothing is both, so it is asked for less strictly.
    let (hits, relaxed) = index.search(&Query::parse("+zebra circle"), 5);
    assert!(relaxed);
    assert_eq!(graph.node(hits[0].node).name, "circle");
    assert_eq!(
        words("HTTPServer.parse_header2"),
        ["httpserver", "parse_header2", "parse", "header2"]
    );
    assert_eq!(
        words("camelCaseName"),
        ["camelcasename", "camel", "case", "name"]
    );
}

#[test]
fn graphs_survive_their_files() {
    let graph = Graph::build(&repository("001_package"), 1);
    let listed = ListedGraph::of(&graph);
    assert_eq!(listed.nodes.len(), graph.nodes().count());
    assert_eq!(listed.edges.len(), graph.edges().count());
    assert_eq!(ListedGraph::from_jsonl(&listed.to_jsonl()).unwrap(), listed);
    let json = listed.to_json().to_string();
    assert_eq!(ListedGraph::from_json(&json).unwrap(), listed);

    let contents = repository("001_package");
    let text = |path: &str| std::str::from_utf8(contents.get(path)?).ok();
    let codefuse = listed.to_codefuse(text).unwrap();
    let back = ListedGraph::from_json(&codefuse).unwrap();
    let codefuse: serde_json::Value = serde_json::from_str(&codefuse).unwrap();
    assert_eq!(back.nodes.len(), listed.nodes.len());
    let circle = &back.nodes["func:pack/shapes.py:circle:37"];
    assert_eq!(
        (circle.kind.as_str(), circle.signature.as_str()),
        ("function", "def circle(radius)")
    );
    let nodes = codefuse["nodes"].as_array().unwrap();
    let circle = nodes.iter().find(|node| node["name"] == "circle").unwrap();
    assert_eq!(
        circle["text"],
        "def circle(radius):\n    return math.pi * radius ** 2\n"
    );

    // Other writers' forms.
    let others = "\n{\"type\":\"node\",\"id\":\"func:a.py#f@3\",\"kind\":\"method\",\"path\":\"a.py\",\"score\":0.5}\n\
        {\"type\":\"edge\",\"data\":{\"u\":\"file:a.py\",\"to\":\"func:a.py#f@3\",\"kind\":\"contains\"}}\n";
    let others = ListedGraph::from_jsonl(others).unwrap();
    assert_eq!(others.nodes["func:a.py#f@3"].kind, "function");
    assert_eq!(others.nodes["func:a.py#f@3"].score, Some(0.5));
    assert_eq!(others.edges.len(), 1);
    for (text, line) in [
        ("{}", 1),
        ("{\"type\":\"node\"}\nx", 1),
        ("\n\n[]", 3),
        ("{\"type\":\"edge\",\"src\":\"a\"}", 1),
    ] {
        assert_eq!(
            ListedGraph::from_jsonl(text).unwrap_err().line,
            line,
            "{text}"
        );
    }
    for text in [
        "",
        "{}",
        "{\"nodes\":3}",
        "{\"nodes\":[3]}",
        "{\"nodes\":[],\"edges\":[{}]}",
    ] {
        assert!(ListedGraph::from_json(text).is_err(), "{text}");
    }
}
