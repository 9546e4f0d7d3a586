//! The planner without a model: see the failure, find, keep, read, repair, submit; after a repair that
//! failed, once more with what comes next (spec of the repair study, section 3.8). A patch model whose patch was
//! refused or failed is first asked again for the same place: what became of its patch tells it little of another.

use std::collections::BTreeSet;

use code::graph::{
    Anchor, AnchorKind, Graph, MemoryIntent, MemoryTarget, NodeKind, NodeRef, is_test_path, words,
};

use super::Choice;
use crate::{
    Issue,
    action::{Action, ActionKind, Explore, MemoryAction, Operation, RepairAction, Selection},
    environment::PlannerEnv,
    patch_model::DUPLICATE,
    wire::Reply,
};

/// Nodes that one plan is about.
const FOCUS: usize = 3;
/// Words of the issue that are searched for.
const TERMS: usize = 5;
/// Repairs of the same nodes, where a patch model can go by what became of its patches.
const ATTEMPTS: usize = 3;
/// Repairs in a row in which a patch model may say what it said before: of other places too it has nothing else to say.
const REPEATED: usize = 3;
/// Letters of a word that is taken for a name where it stands in a title; shorter ones are words of their own.
const NAME: usize = 4;
/// Working graphs that are no larger are grown by two edges.
const TINY: usize = 8;

#[derive(Debug, Default)]
pub struct RulePlanner {
    phase: Phase,
    /// Repairs that were tried.
    round: usize,
    /// Nodes that a repair was about.
    tried: BTreeSet<String>,
    focus: Vec<String>,
    /// Repairs of the focus.
    attempts: usize,
    /// Repairs in a row in which the patch model said what it had said before.
    repeated: usize,
    /// Places that the failure passed, the innermost first.
    frames: Vec<(String, u32)>,
    /// Nodes that explorations found, the best first.
    found: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Test,
    Find,
    Expand,
    Commit,
    Read,
    Repair,
    Judge,
    Submit,
}

impl RulePlanner {
    pub(super) fn next(&mut self, env: &PlannerEnv<'_>) -> Choice {
        let (kind, thought) = self.act(env);
        let gives_up = self.phase == Phase::Submit;
        Choice {
            reply: Reply::of(Action::new(kind).thinking(thought)),
            text: None,
            call: None,
            fallback: None,
            gives_up,
        }
    }

    fn act(&mut self, env: &PlannerEnv<'_>) -> (ActionKind, &'static str) {
        self.learn(env);
        loop {
            match self.phase {
                Phase::Test => {
                    self.phase = Phase::Find;
                    return (ActionKind::RunFailedTest, "see the failure first");
                }
                Phase::Find => {
                    self.phase = Phase::Expand;
                    let terms = terms(&env.task().public.issue, env.sources().graph());
                    if !terms.is_empty() {
                        let find = Explore {
                            query: terms.join(" "),
                            ..Explore::default()
                        };
                        return (ActionKind::Explore(find), "what the issue speaks of");
                    }
                }
                Phase::Expand => {
                    self.phase = Phase::Commit;
                    let anchors = self.anchors(env);
                    if !anchors.is_empty() {
                        let expand = Explore {
                            op: Operation::Expand,
                            anchors,
                            hop: if env.working().len() <= TINY { 2 } else { 1 },
                            ..Explore::default()
                        };
                        return (ActionKind::Explore(expand), "what lies around it");
                    }
                }
                Phase::Commit => {
                    self.focus = self.next_focus(env);
                    if self.focus.is_empty() {
                        self.phase = Phase::Submit;
                        continue;
                    }
                    self.phase = Phase::Read;
                    self.attempts = 0;
                    let commit = MemoryAction {
                        target: MemoryTarget::Explore,
                        intent: MemoryIntent::Commit,
                        selection: Selection {
                            select_ids: self.focus.clone(),
                            ..Selection::default()
                        },
                    };
                    return (ActionKind::Memory(commit), "this may be to blame");
                }
                Phase::Read => {
                    self.phase = Phase::Repair;
                    let read = Explore {
                        op: Operation::Read,
                        nodes: self.focus.clone(),
                        ..Explore::default()
                    };
                    return (ActionKind::Explore(read), "read it");
                }
                Phase::Repair => {
                    self.phase = Phase::Judge;
                    self.round += 1;
                    self.attempts += 1;
                    self.tried.extend(self.focus.iter().cloned());
                    let plan = self.plan(env);
                    let repair = RepairAction {
                        plan,
                        focus_ids: self.focus.clone(),
                        ..RepairAction::default()
                    };
                    return (ActionKind::Repair(repair), "mend it");
                }
                Phase::Judge => {
                    let repeats = env.last_info().get("error") == Some(&DUPLICATE.into());
                    self.repeated = if repeats { self.repeated + 1 } else { 0 };
                    // A search goes on by itself, whatever it is asked for.
                    let may_learn = !env.has_searched() && became(env).is_some() && !repeats;
                    self.phase = match () {
                        () if env.is_mended() => Phase::Submit,
                        () if self.repeated == REPEATED => Phase::Submit,
                        () if may_learn && self.attempts < ATTEMPTS => Phase::Repair,
                        () => Phase::Expand,
                    };
                }
                Phase::Submit => return (ActionKind::Submit, "nothing is left to try"),
            }
        }
    }

    /// Takes over what the last step told.
    fn learn(&mut self, env: &PlannerEnv<'_>) {
        if self.frames.is_empty() {
            let told = env
                .last_info()
                .get("tests")
                .and_then(|it| it.get("failures"));
            let frames = told.and_then(|it| it.as_array()).into_iter().flatten();
            let frames = frames
                .filter_map(|failure| failure.get("frames")?.as_array())
                .flat_map(|frames| frames.iter().rev())
                .filter_map(|frame| frame.as_str());
            let issue = env.task().public.issue.failure_frame.as_deref();
            let places = frames.chain(issue).filter_map(place);
            for place in places.filter(|(path, _)| !is_test_path(path)) {
                if !self.frames.contains(&place) {
                    self.frames.push(place);
                }
            }
        }
        for id in env.candidates() {
            if !self.found.iter().any(|known| known == id) {
                self.found.push(id.to_owned());
            }
        }
    }

    /// Where the failure passed; else what was found best; later, what was tried.
    fn anchors(&self, env: &PlannerEnv<'_>) -> Vec<Anchor> {
        if self.round == 0 {
            let frame = self.frames.first();
            let frame = frame.map(|(path, line)| {
                let file = Anchor::new(AnchorKind::File, path);
                let function = around(env.sources().graph(), path, *line);
                let function =
                    function.map(|node| Anchor::id(&env.sources().graph().node(node).id));
                function.into_iter().chain([file]).collect()
            });
            let graph = env.sources().graph();
            let named = named(&env.task().public.issue, graph);
            let named = named.first().map(|node| graph.node(*node).id);
            let best = || {
                let found = env.candidates().map(str::to_owned);
                let mut best = named.into_iter().chain(found);
                best.next().iter().map(|id| Anchor::id(id)).collect()
            };
            return frame.unwrap_or_else(best);
        }
        self.focus.iter().map(|id| Anchor::id(id)).collect()
    }

    /// The next nodes to blame: functions that the failure passed, those that the issue names in full, then what was
    /// found; where none leads anywhere, what the repository uses most. None twice.
    fn next_focus(&self, env: &PlannerEnv<'_>) -> Vec<String> {
        let graph = env.sources().graph();
        let passed = self.frames.iter();
        let passed = passed.filter_map(|(path, line)| around(graph, path, *line));
        let found = self.found.iter().filter_map(|id| graph.find(id));
        let named = named(&env.task().public.issue, graph);
        let known = passed.chain(named).chain(found);
        let focus = self.untried(graph, known);
        match focus.is_empty() && self.round == 0 {
            true => self.untried(graph, most_used(graph)),
            false => focus,
        }
    }

    /// The first of `nodes` that are code and were not blamed before.
    fn untried(&self, graph: &Graph, nodes: impl IntoIterator<Item = NodeRef>) -> Vec<String> {
        let mut focus: Vec<String> = Vec::new();
        for node in nodes {
            let is_code = matches!(graph.kind(node), NodeKind::Function | NodeKind::Class);
            if !is_code || is_test_path(graph.path(node)) {
                continue;
            }
            let id = graph.node(node).id;
            if !self.tried.contains(&id) && !focus.contains(&id) {
                focus.push(id);
            }
            if focus.len() == FOCUS {
                break;
            }
        }
        focus
    }

    fn plan(&self, env: &PlannerEnv<'_>) -> Vec<String> {
        let issue = &env.task().public.issue;
        let graph = env.sources().graph();
        let mut plan = vec![format!("Mend: {}", issue.title)];
        plan.extend(self.focus.iter().filter_map(|id| {
            let node = graph.node(graph.find(id)?);
            let span = node.span?;
            let (name, path) = (node.name, node.path);
            Some(format!(
                "Look at {name} in {path}:{}-{}",
                span.start, span.end
            ))
        }));
        if self.attempts > 1 {
            let before = became(env).map(|became| format!("Another patch than before: {became}"));
            plan.extend(before);
        }
        plan
    }
}

/// What became of the last patch of the repair before, in a line.
fn became(env: &PlannerEnv<'_>) -> Option<String> {
    let told = env.last_info().get("feedback")?.as_array()?.last()?;
    let line = |key: &str| told.get(key)?.as_str()?.lines().next();
    match (line("outcome")?, line("detail")) {
        (outcome, None | Some("")) => Some(outcome.to_owned()),
        (outcome, Some(detail)) => Some(format!("{outcome}: {detail}")),
    }
}

/// Definitions that the issue names with what they stand in, such as `Class.method` and `module.function`, in its order.
fn named(issue: &Issue, graph: &Graph) -> Vec<NodeRef> {
    let text = format!("{}\n{}", issue.title, issue.body);
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    let pairs: Vec<(&str, &str)> = words
        .filter_map(|word| {
            let (outer, name) = word.trim_matches('.').rsplit_once('.')?;
            let outer = outer.rsplit('.').next()?;
            (!outer.is_empty() && !name.is_empty()).then_some((outer, name))
        })
        .collect();
    let is_in = |outer: &str, file, parent: Option<u32>| match parent {
        Some(parent) => {
            let facts = graph.facts(file);
            facts.name(facts.definitions[parent as usize].name) == outer
        }
        None => {
            let path = graph.path(NodeRef::File(file));
            let module = path.strip_suffix(".py").unwrap_or(path);
            let module = module.strip_suffix("/__init__").unwrap_or(module);
            module.rsplit('/').next() == Some(outer)
        }
    };
    let mut found = Vec::new();
    for node in graph.nodes() {
        let NodeRef::Definition(file, index) = node else {
            continue;
        };
        let facts = graph.facts(file);
        let definition = &facts.definitions[index as usize];
        let name = facts.name(definition.name);
        let place = pairs
            .iter()
            .position(|(outer, wanted)| *wanted == name && is_in(outer, file, definition.parent));
        found.extend(place.map(|place| (place, node)));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, node)| node).collect()
}

/// Functions, those with the most edges first.
fn most_used(graph: &Graph) -> Vec<NodeRef> {
    let mut functions: Vec<NodeRef> = graph
        .nodes()
        .filter(|node| graph.kind(*node) == NodeKind::Function)
        .collect();
    functions.sort_by_key(|node| std::cmp::Reverse(graph.degree(*node)));
    functions
}

/// `path:line function`, `path:line` or a path.
fn place(frame: &str) -> Option<(String, u32)> {
    let frame = frame.split_whitespace().next()?;
    match frame.rsplit_once(':') {
        Some((path, line)) => Some((path.to_owned(), line.parse().ok()?)),
        None => Some((frame.to_owned(), 0)),
    }
}

/// The innermost function or class that a line lies in.
fn around(graph: &Graph, path: &str, line: u32) -> Option<NodeRef> {
    let file = graph.file(path)?;
    let mut at = NodeRef::File(file);
    loop {
        let inside = graph.children(at).into_iter().find(|child| {
            let is_code = matches!(graph.kind(*child), NodeKind::Function | NodeKind::Class);
            let span = graph.node(*child).span;
            is_code && span.is_some_and(|span| span.start <= line && line <= span.end)
        });
        match inside {
            Some(child) => at = child,
            None => return matches!(at, NodeRef::Definition(..)).then_some(at),
        }
    }
}

/// Names in the issue that the graph has: as `symbol:` where a definition is called so and the issue writes it as
/// code, has it in its title, or names a test of it.
fn terms(issue: &Issue, graph: &Graph) -> Vec<String> {
    let text = format!("{}\n{}", issue.title, issue.body);
    let names: BTreeSet<&str> = graph
        .files()
        .flat_map(|(_, facts)| facts.definitions.iter().map(|it| facts.name(it.name)))
        .collect();
    let identifiers = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let (mut called, mut others): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let in_title = issue
        .title
        .split(|c: char| !c.is_alphanumeric() && c != '_');
    let in_title: BTreeSet<&str> = in_title.filter(|word| word.len() >= NAME).collect();
    for word in identifiers.filter(|word| word.len() > 2) {
        let tested = tested(word, &names);
        let word = tested.unwrap_or(word);
        let is_written_as_code = tested.is_some()
            || word.contains('_')
            || text.contains(&format!("{word}("))
            || text.contains(&format!("`{word}"))
            || text.contains(&format!(".{word}"))
            || in_title.contains(word);
        let (list, term) = match names.contains(word) && is_written_as_code {
            true => (&mut called, format!("symbol:{word}")),
            false => (&mut others, word.to_lowercase()),
        };
        if !list.contains(&term) {
            list.push(term);
        }
    }
    called.truncate(3);
    let title = words(&issue.title);
    others.sort_by_key(|word| !title.contains(word));
    let room = TERMS.saturating_sub(called.len());
    called.extend(others.into_iter().take(room));
    called
}

/// What a test or a class of tests is called by: `grow` of `test_grow`, `GrowTests` and `TestGrow`.
fn tested<'a>(word: &str, names: &BTreeSet<&'a str>) -> Option<&'a str> {
    if let Some(name) = word.strip_prefix("test_") {
        return names.get(name).copied();
    }
    let name = word.strip_suffix("Tests").or(word.strip_suffix("Test"));
    let name = name.or(word.strip_prefix("Test")).unwrap_or_default();
    let is_it = |known: &str| {
        let letters = known.chars().filter(|letter| *letter != '_');
        letters
            .flat_map(char::to_lowercase)
            .eq(name.chars().flat_map(char::to_lowercase))
    };
    match name.len() >= NAME {
        true => names.iter().copied().find(|known| is_it(known)),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use code::graph::Contents;

    use super::*;

    #[test]
    fn terms_are_names_of_the_repository_first() {
        let source =
            b"class Reader:\n    def read_all(self):\n        return 1\n\ndef total():\n    pass\n";
        let graph = Graph::build(&Contents::from([("a.py".to_owned(), source.to_vec())]), 1);
        let issue = Issue {
            title: "Reading stops early".to_owned(),
            body: "`Reader.read_all()` gives one total line".to_owned(),
            ..Issue::default()
        };
        let found = terms(&issue, &graph);
        assert_eq!(
            found,
            [
                "symbol:Reader",
                "symbol:read_all",
                "reading",
                "stops",
                "early"
            ]
        );
        let tested = Issue {
            title: "It fails".to_owned(),
            body: "tests/test_a.py::TotalTests::test_read_all".to_owned(),
            ..Issue::default()
        };
        let found = terms(&tested, &graph);
        assert_eq!(found[..2], ["symbol:total", "symbol:read_all"]);
        let plain = Issue {
            title: "total of no numbers is wrong".to_owned(),
            ..Issue::default()
        };
        assert_eq!(terms(&plain, &graph)[0], "symbol:total");
        let dotted = |body: &str| {
            let body = body.to_owned();
            let issue = Issue {
                body,
                ..Issue::default()
            };
            let named = named(&issue, &graph).into_iter();
            named.map(|node| graph.node(node).name).collect::<Vec<_>>()
        };
        let both = dotted(
            "See a.total, and pack.Reader.read_all() too; b.total and Other.read_all are others.",
        );
        assert_eq!(both, ["total", "read_all"]);
        assert!(dotted("The Reader stops.").is_empty());
        let inner = around(&graph, "a.py", 3).map(|node| graph.node(node).name);
        assert_eq!(inner.as_deref(), Some("read_all"));
        assert_eq!(around(&graph, "a.py", 4), None);
        assert_eq!(place("a/b.py:12 read"), Some(("a/b.py".to_owned(), 12)));
    }
}
