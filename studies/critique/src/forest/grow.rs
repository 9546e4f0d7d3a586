//! The forest: programs in layers, grown round by round from the groups that were played.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use code::normal_text;
use judge::Verdict;
use record::{Episode, Group, TaskId};

use super::{Line, start::Started};
use crate::{
    format::Judgment,
    metrics::{
        rounds::{Said, State, Trajectory},
        similarity::ratio,
    },
    play::Notes,
    study::notes_of,
    task::Task,
};

/// Programs of some tasks and what critiques made of them.
#[derive(Clone, Debug)]
pub struct Forest {
    /// The initial programs, each a task of its own.
    origins: Vec<Arc<Task>>,
    /// The problem that each of them is a program of.
    problems: Vec<TaskId>,
    layers: Vec<Vec<Node>>,
    stop_at_correct: bool,
}

/// A program in one layer. One that is criticised no more stands in every later layer too.
#[derive(Clone, Debug)]
struct Node {
    /// Of [`Forest::origins`].
    origin: usize,
    /// In the layer before.
    parent: usize,
    id: TaskId,
    /// What the generator answered, of programs that it wrote.
    answer: Option<String>,
    program: String,
    right: bool,
    verdict: Option<Verdict>,
    /// What was said of the program before; none where it was not criticised.
    said: Option<(String, Said)>,
    weight: f64,
    goes_on: bool,
}

impl Forest {
    /// The first layer: what [`super::Start`] found of the programs of `tasks`, or of those that were sampled for
    /// them, each then a task of its own. Those without a verdict are left out. `problem` names what each is a program
    /// of.
    pub fn planted(
        tasks: &[Arc<Task>],
        groups: &[Group],
        problem: impl Fn(&Task) -> TaskId,
        stop_at_correct: bool,
    ) -> Self {
        let mut forest = Self {
            origins: Vec::new(),
            problems: Vec::new(),
            layers: vec![Vec::new()],
            stop_at_correct,
        };
        for (task, group) in tasks.iter().zip(groups) {
            for (number, episode) in group.episodes.iter().enumerate() {
                let Some(started) = Started::of(episode) else {
                    continue;
                };
                let origin = match &started.answer {
                    None if started.passed == task.facts.initially_right => task.clone(),
                    // What its file says of it is not what its tests say.
                    None => {
                        let program = started.program.clone();
                        Arc::new(task.with_program(task.id.clone(), program, started.passed))
                    }
                    Some(_) => {
                        let id = TaskId(format!("{}/{number}", problem(task)));
                        Arc::new(task.with_program(id, started.program.clone(), started.passed))
                    }
                };
                forest.plant(origin, started, problem(task));
            }
        }
        forest
    }

    fn plant(&mut self, origin: Arc<Task>, started: Started, problem: TaskId) {
        self.layers[0].push(Node {
            origin: self.origins.len(),
            parent: 0,
            id: origin.id.clone(),
            answer: started.answer,
            program: started.program,
            right: started.passed,
            verdict: Some(started.verdict),
            said: None,
            weight: 1.0,
            goes_on: true,
        });
        self.problems.push(problem);
        self.origins.push(origin);
    }

    /// The programs to criticise next, as tasks.
    pub fn frontier(&self) -> Vec<Arc<Task>> {
        let waiting = self.last().iter().filter(|node| node.goes_on);
        waiting
            .map(|node| {
                let origin = &self.origins[node.origin];
                if node.id == origin.id {
                    return origin.clone();
                }
                let id = node.id.clone();
                Arc::new(origin.with_program(id, node.program.clone(), node.right))
            })
            .collect()
    }

    /// What the tests said of a program of the frontier.
    pub fn verdict(&self, id: &TaskId) -> Option<&Verdict> {
        let node = self.last().iter().find(|node| node.id == *id)?;
        node.verdict.as_ref()
    }

    /// Adds the round in which these tasks of the frontier were played. Programs that were not stay as they are, as
    /// do those that nobody finds fault with where that ends it; programs whose every episode has no verdict have
    /// no further rounds.
    pub fn grow(&mut self, tasks: &[Arc<Task>], groups: &[Group]) {
        let played: BTreeMap<&TaskId, &Group> =
            tasks.iter().map(|task| &task.id).zip(groups).collect();
        let mut layer = Vec::new();
        for (parent, node) in self.last().iter().enumerate() {
            match played.get(&node.id).filter(|_| node.goes_on) {
                None => layer.push(Node {
                    parent,
                    said: None,
                    goes_on: false,
                    ..node.clone()
                }),
                Some(group) => layer.extend(self.children(parent, node, group)),
            }
        }
        self.layers.push(layer);
    }

    fn children(&self, parent: usize, node: &Node, group: &Group) -> Vec<Node> {
        let graded = |(number, episode): (usize, &Episode)| Some((number, notes_of(episode)?));
        let episodes = group.episodes.iter().enumerate();
        let notes: Vec<(usize, Notes)> = episodes.filter_map(graded).collect();
        let weight = node.weight / notes.len().max(1) as f64;
        let child = |(number, notes): (usize, Notes)| {
            let id = TaskId(format!("{}/{number}", node.id));
            let stops = self.stop_at_correct && notes.judgment == Some(Judgment::Correct);
            let similarity = notes
                .revision
                .as_deref()
                .map(|revised| ratio(&normal_text(&node.program), &normal_text(revised)));
            Node {
                origin: node.origin,
                parent,
                id,
                answer: None,
                right: notes.passed,
                verdict: match &notes.revision {
                    Some(_) => notes.verdict,
                    None => node.verdict.clone(),
                },
                program: notes.revision.unwrap_or_else(|| node.program.clone()),
                said: Some((
                    notes.critique.clone(),
                    Said {
                        spoken: !notes.critique.is_empty(),
                        judgment: notes.judgment,
                        similarity,
                    },
                )),
                weight,
                goes_on: !stops,
            }
        };
        notes.into_iter().map(child).collect()
    }

    /// Every path from an initial program on; those that end before the last round had no verdict there.
    pub fn trajectories(&self) -> Vec<Trajectory> {
        let mut ends = Vec::new();
        for (depth, layer) in self.layers.iter().enumerate() {
            let next = self.layers.get(depth + 1).into_iter().flatten();
            let parents: BTreeSet<usize> = next.map(|node| node.parent).collect();
            let without = (0..layer.len()).filter(|place| !parents.contains(place));
            ends.extend(without.map(|place| (depth, place)));
        }
        let mut paths: Vec<(usize, Trajectory)> = ends
            .into_iter()
            .map(|(depth, place)| self.path(depth, place))
            .collect();
        paths.sort_by_key(|(origin, _)| *origin);
        paths.into_iter().map(|(_, path)| path).collect()
    }

    fn path(&self, depth: usize, place: usize) -> (usize, Trajectory) {
        let (mut nodes, mut programs) = (Vec::new(), Vec::new());
        let mut place = place;
        for layer in self.layers[..=depth].iter().rev() {
            nodes.push(&layer[place]);
            programs.push(place);
            place = layer[place].parent;
        }
        nodes.reverse();
        programs.reverse();
        let last = nodes[depth];
        let facts = &self.origins[last.origin].facts;
        let known = [
            ("difficulty", facts.difficulty.clone()),
            ("data_source", facts.data_source.clone()),
            ("family", Some(facts.family.clone())),
        ];
        let kinds = known
            .into_iter()
            .filter_map(|(kind, value)| Some((kind, value?)));
        let state = |node: &&Node| State {
            right: node.right,
            timed_out: node
                .verdict
                .as_ref()
                .is_some_and(|verdict| verdict.status.is_timeout()),
        };
        let trajectory = Trajectory {
            problem: facts.function.clone(),
            kinds: kinds.filter(|(_, value)| !value.is_empty()).collect(),
            weight: last.weight,
            states: nodes.iter().map(state).collect(),
            programs,
            rounds: nodes[1..]
                .iter()
                .map(|node| node.said.as_ref().map(|(_, said)| *said))
                .collect(),
        };
        (last.origin, trajectory)
    }

    /// The nodes as lines, layer by layer. Programs that were not criticised in a round have no line there.
    pub fn lines(&self) -> Vec<Line> {
        let mut roots: BTreeMap<&TaskId, Line> = BTreeMap::new();
        let mut lines = Vec::new();
        for problem in &self.problems {
            roots.entry(problem).or_insert_with(|| {
                let root = Line::root(&problem.0, &problem.0);
                lines.push(root.clone());
                root
            });
        }
        let mut above: Vec<Line> = Vec::new();
        for (depth, layer) in self.layers.iter().enumerate() {
            let mut here = Vec::with_capacity(layer.len());
            let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
            for node in layer {
                if depth > 0 && node.said.is_none() {
                    here.push(above[node.parent].clone());
                    continue;
                }
                let parent = match depth {
                    0 => &roots[&self.problems[node.origin]],
                    _ => &above[node.parent],
                };
                let number = numbers.entry(parent.hash.clone()).or_default();
                let critique = node.said.as_ref().map(|(text, _)| text.as_str());
                let verdict = node.verdict.as_ref();
                let line = Line::below(
                    parent,
                    *number,
                    (node.answer.as_ref().unwrap_or(&node.program), &node.program),
                    critique,
                    node.right,
                    verdict,
                );
                *number += 1;
                lines.push(line.clone());
                here.push(line);
            }
            above = here;
        }
        lines
    }

    fn last(&self) -> &[Node] {
        self.layers.last().map_or(&[], Vec::as_slice)
    }
}
