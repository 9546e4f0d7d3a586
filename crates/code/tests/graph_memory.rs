//! What a planner does with a graph: anchors, candidates, excerpts within budgets, and memory under caps.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;

use code::graph::{
    Anchor, AnchorKind, Candidate, CandidateLimits, Commit, Contents, EpisodeMemory, Excerpt,
    Graph, ListedGraph, ListedNode, MemoryCaps, MemoryFault, MemoryIntent, MemoryLimits,
    MemoryTarget, NodeRef, Selector, Subgraph, described, index_line, subgraph_file_name,
    within_budget,
};
use proptest::prelude::*;

fn contents() -> Contents {
    let files = [
        (
            "shop/cart.py",
            "\"\"\"Carts.\"\"\"\nfrom shop.item import Item, price\n\n\nclass Cart:\n    def __init__(self):\n        \
             self.items = []\n\n    def add(self, item: Item):\n        self.items.append(item)\n\n    \
             def total(self):\n        return sum(price(item) for item in self.items)\n",
        ),
        (
            "shop/item.py",
            "class Item:\n    cost = 0\n\n\nclass Book(Item):\n    cost = 3\n\n\ndef price(item: Item):\n    \
             return item.cost\n",
        ),
        ("shop/__init__.py", ""),
        (
            "tests/test_cart.py",
            "from shop.cart import Cart\n\n\ndef test_total():\n    assert Cart().total() == 0\n",
        ),
        ("latest.py", "def newest():\n    return 1\n"),
    ];
    let files = files.into_iter();
    files
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .collect()
}

fn graph() -> Graph {
    Graph::build(&contents(), 2)
}

fn source<'a>(contents: &'a Contents) -> impl Fn(&str) -> Option<&'a str> {
    |path| std::str::from_utf8(contents.get(path)?).ok()
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn resolved(graph: &Graph, anchor: &Anchor) -> Vec<String> {
    let found = anchor.resolve(graph);
    found.into_iter().map(|node| graph.node(node).id).collect()
}

#[test]
fn anchors_mean_what_planners_mean() {
    let graph = graph();
    let found = |kind, text: &str| resolved(&graph, &Anchor::new(kind, text));
    assert_eq!(
        resolved(&graph, &Anchor::id("func:shop/item.py:price:9")),
        ["func:shop/item.py:price:9"]
    );
    // The line moved, or was never told.
    assert_eq!(
        resolved(&graph, &Anchor::id("class:shop/cart.py:Cart")),
        ["class:shop/cart.py:Cart:5"]
    );
    assert_eq!(
        resolved(&graph, &Anchor::id("latest.py")),
        ["file:latest.py"]
    );
    assert_eq!(
        found(AnchorKind::Function, "price"),
        ["func:shop/item.py:price:9"]
    );
    assert_eq!(
        found(AnchorKind::Function, "Cart.total"),
        ["func:shop/cart.py:Cart.total:12"]
    );
    // Not a class of this name: a part of one.
    assert_eq!(
        found(AnchorKind::Class, "Boo"),
        ["class:shop/item.py:Book:5"]
    );
    assert_eq!(
        found(AnchorKind::Module, "shop.item"),
        ["file:shop/item.py"]
    );
    assert_eq!(
        found(AnchorKind::File, "cart"),
        ["file:shop/cart.py", "file:tests/test_cart.py"]
    );
    assert_eq!(
        found(AnchorKind::TestFile, "cart"),
        ["file:tests/test_cart.py"]
    );
    // No function, but a file.
    assert_eq!(
        found(AnchorKind::Function, "cart.py"),
        ["file:shop/cart.py"]
    );
    assert!(found(AnchorKind::Symbol, "zebra").is_empty());
    assert!(resolved(&graph, &Anchor::default()).is_empty());
    let anchor: Anchor =
        serde_json::from_str("{\"kind\":\"t-file\",\"text\":\"test_cart\"}").unwrap();
    assert_eq!(resolved(&graph, &anchor), ["file:tests/test_cart.py"]);
}

#[test]
fn what_runs_comes_before_its_stub() {
    let files = [
        ("item.py", "def price(a, b):\n    return a\n"),
        (
            "item.pyi",
            "from typing import Any\nclass Money: ...\ndef price(a: Money, b: Money) -> Money: ...\n",
        ),
    ];
    let contents: Contents = files
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .collect();
    let graph = Graph::build(&contents, 1);
    let price = Anchor::new(AnchorKind::Function, "price").resolve(&graph);
    let limits = CandidateLimits {
        hops: 0,
        ..CandidateLimits::default()
    };
    let paths: Vec<String> = graph
        .candidates(&price, |_| false, limits)
        .into_iter()
        .map(|candidate| candidate.path)
        .collect();
    assert_eq!(paths, ["item.py", "item.pyi"]);
}

#[test]
fn candidates_are_scored_as_the_spec_says() {
    let graph = graph();
    let total = graph.find("func:shop/cart.py:Cart.total").unwrap();
    let candidates = graph.candidates(&[total], |_| false, CandidateLimits::default());
    let of = |id: &str| candidates.iter().find(|it| it.id == id).unwrap();
    for (id, from_anchor, extra) in [
        // An edge leads there, in the same folder.
        ("func:shop/item.py:price:9", true, 1.0 + 0.3 + 0.5),
        // It calls the anchor; a test file of another folder.
        (
            "func:tests/test_cart.py:test_total:4",
            true,
            1.0 + 0.25 + 0.5,
        ),
        ("class:shop/cart.py:Cart:5", true, 1.0 + 0.8 + 0.3 + 0.5),
        // It only stands in the same file.
        ("func:shop/cart.py:Cart.__init__:6", false, 0.8 + 0.3 + 0.5),
        // In a file of the same folder.
        ("class:shop/item.py:Book:5", false, 0.3 + 0.5),
    ] {
        let found = of(id);
        let degree = 0.6 * (found.degree as f64 / 8.0).min(1.0);
        assert_eq!(found.from_anchor, from_anchor, "{id}");
        assert!(
            (found.score - degree - extra).abs() < 1e-9,
            "{id}: {found:?}"
        );
        assert_eq!(found.degree, graph.degree(found.node));
    }
    // Not a test, though its name has one in it, and nowhere near.
    assert!(candidates.iter().all(|it| it.path != "latest.py"));
    assert!(candidates.is_sorted_by(|one, two| one.score >= two.score));
    let known = graph.candidates(&[total], |_| true, CandidateLimits::default());
    let price = known.iter().find(|it| it.name == "price").unwrap();
    assert!((of(&price.id).score - price.score - 0.5).abs() < 1e-9);
    let none = CandidateLimits {
        hops: 0,
        ..CandidateLimits::default()
    };
    let itself = graph.candidates(&[total], |_| false, none);
    assert_eq!(itself.iter().map(|it| it.node).collect::<Vec<_>>(), [total]);
    let few = CandidateLimits {
        per_anchor: 3,
        ..CandidateLimits::default()
    };
    assert_eq!(graph.candidates(&[total], |_| false, few).len(), 3);
}

#[test]
fn hops_reach_further() {
    let graph = graph();
    let test = graph.find("func:tests/test_cart.py:test_total").unwrap();
    let ids = |hops| -> BTreeSet<String> {
        let found = graph.within_hops(&[test], hops, usize::MAX);
        found.into_iter().map(|node| graph.node(node).id).collect()
    };
    assert!(ids(0).is_empty());
    assert!(ids(1).contains("func:shop/cart.py:Cart.total:12"));
    assert!(!ids(1).contains("func:shop/item.py:price:9"));
    assert!(ids(2).contains("func:shop/item.py:price:9"));
    assert_eq!(graph.within_hops(&[test], 5, 4).len(), 4);
    let all: BTreeSet<NodeRef> = graph.nodes().collect();
    assert_eq!(graph.edges_among(&all).len(), graph.edges().count());
}

#[test]
fn many_folders_have_their_turn() {
    let mut contents = Contents::new();
    let mut uses = String::new();
    for folder in ["a", "b", "c"] {
        let lines: String = (0..20)
            .map(|at| format!("def {folder}{at}(): pass\n"))
            .collect();
        contents.insert(format!("{folder}/m.py"), lines.into_bytes());
        uses += &format!("from {folder}.m import *\n");
    }
    uses += "def all():\n";
    for at in 0..20 {
        uses += &format!("    a{at}(); b{at}(); c{at}()\n");
    }
    contents.insert("all.py".to_owned(), uses.into_bytes());
    let graph = Graph::build(&contents, 1);
    let anchor = graph.find("func:all.py:all").unwrap();
    let limits = CandidateLimits {
        total: 9,
        per_anchor: 100,
        ..CandidateLimits::default()
    };
    let found = graph.candidates(&[anchor], |_| false, limits);
    let of = |folder: &str| {
        found
            .iter()
            .filter(|it| it.path.starts_with(folder))
            .count()
    };
    assert_eq!(found.len(), 9);
    assert!(of("a/") <= 3 && of("b/") >= 2 && of("c/") >= 2, "{found:?}");
}

#[test]
fn excerpts_are_the_lines_that_the_spec_names() {
    let (contents, graph) = (contents(), graph());
    let node = |id: &str| -> ListedNode { graph.node(graph.find(id).unwrap()).into() };
    let nodes = [
        node("func:shop/cart.py:Cart.total"),
        node("func:shop/cart.py:Cart.add"),
        node("func:shop/item.py:price"),
        node("file:tests/test_cart.py"),
    ];
    let chunks = Excerpt::WINDOWS.chunks(&nodes, source(&contents));
    let places: Vec<String> = chunks
        .iter()
        .map(|chunk| format!("{}:{}-{}", chunk.path, chunk.start, chunk.end))
        .collect();
    assert_eq!(
        places,
        [
            "shop/cart.py:7-13",
            "shop/item.py:7-10",
            "tests/test_cart.py:1-5"
        ]
    );
    assert!(chunks[1].text.ends_with("    return item.cost\n"));
    assert!(
        chunks[1]
            .numbered()
            .starts_with("shop/item.py:7-10\n0007: \n0008: \n0009: def price")
    );
    let files = Excerpt::FILES.chunks(&nodes, source(&contents));
    assert_eq!(files.len(), 3);
    assert_eq!(files[0].end, 13);
    let twice = [&nodes[0], &nodes[0], &nodes[2]];
    let single = Excerpt::NODES.chunks(twice, source(&contents));
    assert_eq!(single.len(), 2);
    assert_eq!((single[0].start, single[0].end), (12, 13));
    // From what nodes have themselves.
    let mut kept = nodes[2].clone();
    kept.snippet_lines = vec!["def price(item: Item):".to_owned()];
    let own = Excerpt::NODES.chunks([&kept], |_| None);
    assert_eq!(own[0].text, "def price(item: Item):\n");
    assert_eq!(
        index_line(&kept),
        "func:shop/item.py:price:9 function shop/item.py:9-10\n"
    );
    let text = described([&kept], 32).concat();
    assert_eq!(
        text,
        "price [function]\ndef price(item: Item)\ndef price(item: Item):\nat shop/item.py:9-10\n"
    );
}

proptest! {
    #[test]
    fn a_budget_holds(
        parts in prop::collection::vec("([a-z ]{0,8}\n){0,6}", 0..8),
        budget in 0usize..30,
    ) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let found = within_budget(parts.iter().copied(), budget, &words);
        prop_assert!(found.tokens <= budget);
        prop_assert_eq!(found.tokens, words(&found.text));
        prop_assert_eq!(found.whole + found.cut + found.left_out, parts.len());
        prop_assert!(parts.concat().starts_with(&found.text));
        // One more line would be too many.
        if found.cut + found.left_out > 0 {
            let rest = &parts.concat()[found.text.len()..];
            let line = rest.split_inclusive('\n').next().unwrap_or_default();
            prop_assert!(words(&(found.text.clone() + line)) > budget);
        }
    }
}

fn found(graph: &Graph, id: &str) -> Vec<Candidate> {
    let anchor = graph.find(id).unwrap();
    graph.candidates(&[anchor], |_| false, CandidateLimits::default())
}

fn memory(caps: MemoryCaps) -> EpisodeMemory {
    EpisodeMemory::new(MemoryLimits {
        caps,
        ..MemoryLimits::default()
    })
}

fn snippet(node: &ListedNode) -> Vec<String> {
    let contents = contents();
    let chunks = Excerpt::NODES.chunks([node], source(&contents));
    chunks
        .iter()
        .flat_map(|chunk| chunk.text.lines().map(str::to_owned))
        .collect()
}

#[test]
fn what_is_committed_is_kept_and_can_be_taken_back() {
    let graph = graph();
    let mut memory = memory(MemoryCaps::default());
    let nothing = memory
        .commit(&graph, &Commit::default(), 0, &words)
        .unwrap_err();
    assert_eq!(nothing.code(), "missing-explore");
    let candidates = found(&graph, "func:shop/cart.py:Cart.total");
    let (nodes, edges) = memory.explored(&graph, &candidates, "explored", 1, snippet);
    assert_eq!(nodes as usize, candidates.len());
    assert!(edges > 0);
    assert_eq!(memory.frontier()[0], candidates[0].id);
    let report = memory
        .commit(&graph, &Commit::default(), 2, &words)
        .unwrap();
    assert!(report.ok && report.auto_selected);
    assert_eq!((report.version, report.tag.as_str()), (1, "session:1"));
    assert_eq!(report.applied.graph_nodes, 8.min(candidates.len()));
    assert_eq!(memory.memory().len(), report.applied.graph_nodes);
    assert_eq!(memory.memory().edges().len(), report.applied.graph_edges);
    assert!(memory.notes()[0].text.starts_with("kept "));
    assert!(memory.memory().nodes().all(|node| node.memorized
        && node.memorized_at_step == Some(2)
        && node.tags == ["session:1"]));
    let chosen = Commit {
        select_ids: vec![
            "func:shop/item.py:price".to_owned(),
            "func:absent.py:f".to_owned(),
        ],
        note: Some("the price is wrong".to_owned()),
        tag: Some("price".to_owned()),
        ..Commit::default()
    };
    let report = memory.commit(&graph, &chosen, 3, &words).unwrap();
    assert_eq!(report.unknown_ids, ["func:absent.py:f"]);
    assert_eq!(report.selected_for_memory, ["func:shop/item.py:price:9"]);
    assert_eq!(memory.recall("price", 1), ["func:shop/item.py:price:9"]);
    assert!(memory.recall("wrong", 5).contains(&"note:2".to_owned()));

    let before = (memory.memory().clone(), memory.notes().to_vec());
    memory.observed("tests: 1 failed");
    memory.commit_note(None, Some("run"), 4, &words).unwrap();
    assert_eq!(memory.notes().last().unwrap().text, "tests: 1 failed");
    let undone = memory
        .delete(&Selector::Tag("run".to_owned()), &words)
        .unwrap();
    assert_eq!(undone.applied.text_chunks, 1);
    assert_eq!((memory.memory().clone(), memory.notes().to_vec()), before);
    // Only what that commit added goes with it.
    let undone = memory.delete(&Selector::Latest, &words).unwrap();
    assert_eq!(
        (undone.tag.as_str(), undone.applied.text_chunks),
        ("price", 1)
    );
    memory.delete(&Selector::Latest, &words).unwrap();
    assert!(memory.memory().is_empty() && memory.notes().is_empty());
    assert!(memory.working().nodes().all(|node| !node.memorized));
    for selector in [
        Selector::Latest,
        Selector::Tag("price".to_owned()),
        Selector::Ids(vec!["note:9".to_owned(), "func:x".to_owned()]),
    ] {
        let fault = memory.delete(&selector, &words).unwrap_err();
        assert_eq!(fault.code(), "nothing-to-delete");
    }
}

#[test]
fn what_is_over_budget_changes_nothing() {
    let graph = graph();
    for (field, caps) in [
        (
            "nodes",
            MemoryCaps {
                nodes: Some(2),
                ..MemoryCaps::default()
            },
        ),
        (
            "edges",
            MemoryCaps {
                edges: Some(0),
                ..MemoryCaps::default()
            },
        ),
        (
            "frontier",
            MemoryCaps {
                frontier: Some(1),
                ..MemoryCaps::default()
            },
        ),
        (
            "planner_tokens",
            MemoryCaps {
                planner_tokens: Some(5),
                ..MemoryCaps::default()
            },
        ),
        (
            "cgm_tokens",
            MemoryCaps {
                cgm_tokens: Some(5),
                planner_tokens: None,
                ..MemoryCaps::default()
            },
        ),
    ] {
        let mut memory = memory(caps);
        memory.explored(
            &graph,
            &found(&graph, "func:shop/cart.py:Cart.total"),
            "found",
            1,
            snippet,
        );
        let before = (
            memory.working().clone(),
            memory.memory().clone(),
            memory.size(&words),
        );
        let fault = memory
            .commit(&graph, &Commit::default(), 1, &words)
            .unwrap_err();
        let MemoryFault::OverBudget(over) = &fault else {
            panic!("{fault}");
        };
        assert_eq!(
            (over.exceeded.as_slice(), fault.code()),
            (&[field][..], "over-budget")
        );
        assert_eq!((over.size_before, over.limits), (before.2, caps));
        assert!(over.size_after.nodes > 0);
        let after = (
            memory.working().clone(),
            memory.memory().clone(),
            memory.size(&words),
        );
        assert!(after == before && memory.notes().is_empty() && memory.version() == 0);
    }
    let mut memory = memory(MemoryCaps {
        planner_tokens: Some(3),
        ..MemoryCaps::default()
    });
    let long = "four words are many";
    assert_eq!(
        memory
            .commit_note(Some(long), None, 0, &words)
            .unwrap_err()
            .code(),
        "over-budget"
    );
    assert_eq!(
        memory
            .commit_note(Some(" "), None, 0, &words)
            .unwrap_err()
            .code(),
        "empty-observation"
    );
    assert_eq!(
        memory
            .commit_note(None, None, 0, &words)
            .unwrap_err()
            .code(),
        "missing-observation"
    );
    memory
        .commit_note(Some("three words fit"), None, 0, &words)
        .unwrap();
    let unknown = Commit {
        select_ids: vec!["x".to_owned()],
        ..Commit::default()
    };
    assert_eq!(
        memory
            .commit(&graph, &unknown, 0, &words)
            .unwrap_err()
            .code(),
        "empty-explore"
    );
    let target: Result<MemoryTarget, _> = "issue".parse();
    assert_eq!(target.unwrap_err().code(), "unsupported-target");
    let intent: Result<MemoryIntent, _> = "guess".parse();
    assert_eq!(intent.unwrap_err().code(), "unsupported-intent");
    assert_eq!(
        "forget".parse::<MemoryIntent>().unwrap(),
        MemoryIntent::Delete
    );
    let caps: MemoryCaps = serde_json::from_str("{\"nodes\": -1, \"edges\": 7}").unwrap();
    assert_eq!(
        (caps.nodes, caps.edges, caps.frontier),
        (None, Some(7), Some(50))
    );
}

#[test]
fn the_working_graph_keeps_what_counts() {
    let graph = graph();
    let mut memory = EpisodeMemory::new(MemoryLimits {
        working: 4,
        recent: 2,
        ..MemoryLimits::default()
    });
    let candidates = found(&graph, "func:shop/cart.py:Cart.total");
    memory.explored(&graph, &candidates, "explored", 1, snippet);
    let left: BTreeSet<&str> = memory
        .working()
        .nodes()
        .map(|node| node.id.as_str())
        .collect();
    assert_eq!(
        left,
        candidates[..2].iter().map(|it| it.id.as_str()).collect()
    );
}

#[test]
fn subgraphs_survive_their_files() {
    let graph = graph();
    let mut memory = memory(MemoryCaps::default());
    memory.explored(
        &graph,
        &found(&graph, "func:shop/item.py:price"),
        "found",
        1,
        snippet,
    );
    memory
        .commit(&graph, &Commit::default(), 2, &words)
        .unwrap();
    let text = memory.memory().to_file();
    assert!(text.starts_with("{\n  \"nodes\": [\n"));
    assert_eq!(&Subgraph::from_file(&text).unwrap(), memory.memory());
    let by_id = "{\"nodes\": {\"b\": {\"kind\": \"func\"}, \"a\": {\"future\": 1}}, \"node_ids\": [\"a\", \"x\"],\n\
        \"edges\": [{\"u\": \"a\", \"v\": \"b\", \"type\": \"calls\"}, {\"from\": \"a\", \"to\": \"gone\"}]}";
    let read = Subgraph::from_file(by_id).unwrap();
    let order: Vec<&str> = read.nodes().map(|node| node.id.as_str()).collect();
    assert_eq!((order.as_slice(), read.edges().len()), (&["b", "a"][..], 1));
    assert_eq!(read.get("a").unwrap().rest["future"], 1);
    assert_eq!(read.stats()["funcs"], 1);
    assert_eq!(
        subgraph_file_name("django__django-11099"),
        "django__django-11099.json"
    );
    let strange = [
        "a/b",
        "a_b",
        "../x",
        "",
        ".hidden",
        "a b",
        &"long".repeat(100),
    ];
    let names: BTreeSet<String> = strange
        .iter()
        .map(|issue| subgraph_file_name(issue))
        .collect();
    assert_eq!(names.len(), strange.len());
    let is_safe = |name: &String| name.len() < 200 && !name.contains('/') && !name.starts_with('.');
    assert!(names.iter().all(is_safe), "{names:?}");
}

#[test]
fn a_removed_node_takes_its_edges_along() {
    let graph = graph();
    let mut listed = ListedGraph::of(&graph);
    let id = "func:shop/item.py:price:9";
    assert!(
        listed
            .edges
            .iter()
            .any(|(source, target, _)| source == id || target == id)
    );
    listed.remove(id);
    assert!(
        listed
            .edges
            .iter()
            .all(|(source, target, _)| source != id && target != id)
    );
}
