//! What a graph out of a file does not have, and so what cannot be asked of it.

use std::{collections::BTreeSet, path::Path};

use code::graph::{EdgeKind, ListedFormat, ListedGraph, ListedNode};

use crate::screen::{Screen, count_of};

/// Says in what form a graph was read and what is missing in it.
pub(super) fn tell_gaps(path: &Path, graph: &ListedGraph, format: ListedFormat, screen: Screen) {
    screen.say(format!(
        "{}: read as {}: {}, {}",
        path.display(),
        format.name(),
        count_of(graph.nodes.len(), "node"),
        count_of(graph.edges.len(), "edge"),
    ));
    for gap in gaps(graph) {
        screen.say(format!("  {gap}"));
    }
}

fn gaps(graph: &ListedGraph) -> Vec<String> {
    let mut gaps = Vec::new();
    let is_definition =
        |node: &&ListedNode| matches!(node.kind.as_str(), "class" | "function" | "attribute");
    let definitions: Vec<&ListedNode> = graph.nodes.values().filter(is_definition).collect();
    let without = |lacks: fn(&ListedNode) -> bool| {
        let count = definitions.iter().filter(|node| lacks(node)).count();
        let all = if count == definitions.len() {
            "all "
        } else {
            ""
        };
        (count > 0).then(|| format!("{all}{}", count_of(count, "definition")))
    };
    if let Some(which) = without(|node| node.span.is_none()) {
        gaps.push(format!("no span: {which}, so their lines are not known"));
    }
    if let Some(which) = without(|node| node.path.is_empty()) {
        gaps.push(format!("no path: {which}, so `path:` does not find them"));
    }
    let says_nothing =
        |node: &&ListedNode| node.signature.is_empty() && node.documentation.is_empty();
    if !definitions.is_empty() && definitions.iter().all(says_nothing) {
        gaps.push(
            "no signatures and no documentation: words are found in names and paths alone"
                .to_owned(),
        );
    }
    let kinds: BTreeSet<&str> = graph
        .edges
        .iter()
        .map(|(_, _, kind)| kind.as_str())
        .collect();
    let absent = EdgeKind::ALL.map(EdgeKind::name).into_iter();
    let absent: Vec<&str> = absent.filter(|kind| !kinds.contains(kind)).collect();
    if !absent.is_empty() {
        gaps.push(format!(
            "no edges of these kinds: {}; whether there are any in the sources is not known",
            absent.join(", ")
        ));
    }
    let is_known = |id: &String| graph.nodes.contains_key(id);
    let loose = graph.edges.iter();
    let loose = loose.filter(|(source, target, _)| !is_known(source) || !is_known(target));
    let loose = loose.count();
    if loose > 0 {
        gaps.push(format!(
            "{} from or to what is no node of it: that is known by its id alone",
            count_of(loose, "edge")
        ));
    }
    gaps
}
