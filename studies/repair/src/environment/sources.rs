//! A task's work tree as a planner may see it: sources, code graph and index, without the tests that decide.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use code::{
    Patch, RelativePath,
    graph::{Chunk, Contents, Excerpt, Graph, Index, ListedNode, NodeRef},
};
use record::Fault;
use session::Command;

use super::Suspect;
use crate::{Task, is_left_out, search::TestsObserved, test_files::files_of, workplace::Workplace};

/// Made from the work tree of a task's own workplace. Clones share everything, and after a change of a file all but
/// that file.
#[derive(Clone, Debug)]
pub struct Sources {
    contents: Arc<Kept>,
    graph: Arc<Graph>,
    /// Made when somebody asks it.
    index: Arc<OnceLock<Index>>,
    /// Files of the tests that decide: in none of the above.
    guarded: Arc<BTreeSet<String>>,
    /// These, and the files of all tests of the task.
    of_tests: Arc<BTreeSet<String>>,
    /// Where commands see the work tree.
    work_tree: String,
    /// Whom the tests suspect, where the environment looks; planners name them by their number, from 1.
    suspects: Arc<[Suspect]>,
    /// What they were found by.
    observed: Option<Arc<TestsObserved>>,
}

/// Contents by path.
type Kept = BTreeMap<Arc<str>, Arc<[u8]>>;

/// Endings of files that are looked at.
const ENDINGS: &[&str] = &[
    "py", "pyi", "pyx", "js", "jsx", "mjs", "ts", "tsx", "go", "rs", "java", "c", "h", "cc", "cpp",
    "cxx", "hpp", "rb", "toml", "cfg", "ini",
];

/// Writes `PATH\0SIZE\0CONTENT` for every file, in order.
const LIST: &str = r#"
import os, sys
out = sys.stdout.buffer
endings = set(sys.argv[1].split(","))
for top, folders, files in os.walk("."):
    folders[:] = sorted(
        f for f in folders
        if not f.startswith(".") and f not in ("__pycache__", "node_modules", "site-packages")
        and not os.path.exists(os.path.join(top, f, "pyvenv.cfg"))
    )
    for name in sorted(files):
        path = os.path.join(top, name)
        if name.rpartition(".")[2] not in endings or os.path.islink(path) or not os.path.isfile(path):
            continue
        if os.path.getsize(path) > 5 << 20:
            continue
        try:
            data = open(path, "rb").read()
            label = os.path.relpath(path, ".").encode("utf-8")
        except (OSError, UnicodeError):
            continue
        out.write(b"%s\0%d\0" % (label, len(data)))
        out.write(data)
"#;

impl Sources {
    /// Reads the work tree of a fresh workplace of `task` and builds its graph.
    ///
    /// # Errors
    /// Infrastructure faults; a work tree that cannot be listed.
    pub async fn of(task: &Task, workplace: &mut Workplace) -> Result<Self, Fault> {
        let work_tree = workplace.testbed().image.work_tree().to_owned();
        let contents = listed(workplace).await?;
        let guarded = guarded(task, &contents);
        let known = contents.keys().map(String::as_str).collect();
        let mut of_tests = files_of(&task.checks.pass_to_pass, task.public.framework, &known);
        of_tests.extend(guarded.iter().cloned());
        let contents: Contents = contents
            .into_iter()
            .filter(|(path, _)| !guarded.contains(path))
            .collect();
        Ok(Self {
            of_tests: Arc::new(of_tests),
            ..Self::made(contents, guarded, work_tree)
        })
    }

    fn made(contents: Contents, guarded: BTreeSet<String>, work_tree: String) -> Self {
        let graph = Graph::build(&contents, 1);
        let contents: Kept = contents
            .into_iter()
            .map(|(path, content)| (path.into(), content.into()))
            .collect();
        Self {
            index: Arc::default(),
            contents: Arc::new(contents),
            graph: Arc::new(graph),
            guarded: Arc::new(guarded),
            of_tests: Arc::default(),
            work_tree,
            suspects: Arc::default(),
            observed: None,
        }
    }

    /// Gives a file other content, or takes it away.
    fn put(&mut self, path: &str, content: Option<Vec<u8>>) {
        Arc::make_mut(&mut self.graph).update(path, content.as_deref(), 1);
        let contents = Arc::make_mut(&mut self.contents);
        match content {
            Some(content) => contents.insert(path.into(), content.into()),
            None => contents.remove(path),
        };
        self.index = Arc::default();
    }

    /// The same, with those whom the tests suspect.
    pub(crate) fn with_suspects(
        self,
        suspects: Vec<Suspect>,
        observed: Arc<TestsObserved>,
    ) -> Self {
        Self {
            suspects: suspects.into(),
            observed: Some(observed),
            ..self
        }
    }

    /// Files that hold tests of the task, whatever they are called.
    pub(super) fn of_tests(&self) -> Arc<BTreeSet<String>> {
        self.of_tests.clone()
    }

    pub(super) fn observed(&self) -> Option<Arc<TestsObserved>> {
        self.observed.clone()
    }

    pub fn suspects(&self) -> &[Suspect] {
        &self.suspects
    }

    /// The suspect of this number, which may stand behind a `#`.
    pub(super) fn suspect(&self, number: &str) -> Option<&Suspect> {
        let number: usize = number.trim().trim_start_matches('#').parse().ok()?;
        self.suspects.get(number.checked_sub(1)?)
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.graph))
    }

    /// Paths and texts, in order; what is not UTF-8 is left out.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.contents.iter();
        texts.filter_map(|(path, content)| Some((&**path, std::str::from_utf8(content).ok()?)))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.contents.get(path)?).ok()
    }

    /// Whether a path, or an id of a node, lies in a file of the tests that decide.
    pub fn is_guarded(&self, path_or_id: &str) -> bool {
        let path = match path_or_id.split_once(':') {
            Some((_, rest)) => rest.split(':').next().unwrap_or(rest),
            None => path_or_id,
        };
        let path = path.trim_start_matches("./");
        let path = path
            .strip_prefix(&self.work_tree)
            .map_or(path, |path| path.trim_start_matches('/'));
        self.guarded.contains(path)
    }

    /// The node as the graph has it now.
    pub(super) fn listed(&self, node: NodeRef) -> ListedNode {
        self.graph.node(node).into()
    }

    /// The lines of these nodes, whole.
    pub(super) fn chunks<'a>(&self, nodes: impl IntoIterator<Item = &'a ListedNode>) -> Vec<Chunk> {
        Excerpt::WINDOWS.chunks(nodes, |path| self.text(path))
    }

    /// Of all files.
    pub(crate) fn bytes(&self) -> usize {
        self.contents.values().map(|content| content.len()).sum()
    }

    /// A node's first lines, for subgraphs. Files have none.
    pub(super) fn snippet(&self, node: &ListedNode, lines: u32) -> Vec<String> {
        if !matches!(node.kind.as_str(), "function" | "class" | "attribute") {
            return Vec::new();
        }
        let excerpt = Excerpt::Nodes { lines, nodes: 1 };
        let chunks = excerpt.chunks([node], |path| self.text(path));
        let lines = chunks.iter().flat_map(|chunk| chunk.text.lines());
        lines.map(str::to_owned).collect()
    }

    /// Lines of a file, cut to what there is.
    pub(super) fn window(&self, path: &str, start: u32, end: u32) -> Option<Chunk> {
        let text = self.text(path)?;
        let first = start.max(1);
        let lines: Vec<&str> = text
            .split_inclusive('\n')
            .skip(first as usize - 1)
            .take((end + 1).saturating_sub(first) as usize)
            .collect();
        (!lines.is_empty()).then(|| Chunk {
            path: path.to_owned(),
            start: first,
            end: first + lines.len() as u32 - 1,
            text: lines.concat(),
        })
    }

    pub(super) fn absolute(&self, path: &str) -> String {
        format!("{}/{path}", self.work_tree.trim_end_matches('/'))
    }

    /// Reads files again that a repair has changed.
    ///
    /// # Errors
    /// Infrastructure faults.
    pub(super) async fn refresh(
        &mut self,
        paths: &[String],
        workplace: &mut Workplace,
    ) -> Result<(), Fault> {
        for path in paths {
            let Ok(relative) = RelativePath::new(path.as_str()) else {
                continue;
            };
            if self.guarded.contains(path) || !is_source(path) {
                continue;
            }
            let content = workplace.read(&relative).await?;
            self.put(path, content);
        }
        Ok(())
    }
}

fn is_source(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    ENDINGS.contains(&ending)
}

async fn listed(workplace: &mut Workplace) -> Result<Contents, Fault> {
    const MOST: u64 = 512 << 20;
    let testbed = workplace.testbed();
    let mut limits = testbed.limits;
    limits.output_keep = MOST as usize;
    limits.output_max = MOST;
    let endings = ENDINGS.join(",");
    let argv = [testbed.python.as_str(), "-I", "-c", LIST, &endings];
    let command = Command::new(argv, limits);
    let outcome = workplace.session().await?.exec(&command).await;
    let outcome = outcome.map_err(Fault::infra)?;
    if !outcome.is_ok() || outcome.stdout.truncated {
        return Err(Fault::infra(format!(
            "the work tree cannot be listed: {}: {}",
            outcome.status.name(),
            outcome.stderr.text()
        )));
    }
    let bytes = outcome.stdout.bytes();
    unpacked(&bytes).ok_or_else(|| Fault::infra("the list of the work tree cannot be read"))
}

fn unpacked(mut rest: &[u8]) -> Option<Contents> {
    let mut contents = Contents::new();
    let field = |rest: &[u8]| -> Option<(String, usize)> {
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some((String::from_utf8(rest[..end].to_vec()).ok()?, end + 1))
    };
    while !rest.is_empty() {
        let (path, used) = field(rest)?;
        rest = &rest[used..];
        let (size, used) = field(rest)?;
        rest = &rest[used..];
        let size: usize = size.parse().ok()?;
        let content = rest.get(..size)?;
        rest = &rest[size..];
        if path.split('/').all(|part| !is_left_out(part)) {
            contents.insert(path, content.to_vec());
        }
    }
    Some(contents)
}

/// The files that hold tests that decide: those that gold writes, and those of the tests that are to pass. A source
/// whose documentation is such a test is none: it is what may have to be mended.
fn guarded(task: &Task, contents: &BTreeMap<String, Vec<u8>>) -> BTreeSet<String> {
    let mut guarded: BTreeSet<String> = task.gold.test_files.keys().cloned().collect();
    if let Ok(patch) = Patch::parse(task.gold.test_patch.as_bytes()) {
        guarded.extend(patch.paths().into_iter().map(String::from));
    }
    let known = contents.keys().map(String::as_str).collect();
    let failing = &task.checks.fail_to_pass;
    guarded.extend(files_of(failing, task.public.framework, &known));
    guarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_all_that_an_episode_has_of_its_own() {
        let contents: Contents = (0..400)
            .map(|number| {
                let text = format!("def f{number}():\n    return {number}\n");
                (format!("package/m{number}.py"), text.into_bytes())
            })
            .collect();
        let first = Sources::made(contents, BTreeSet::new(), "/work".to_owned());
        let mut second = first.clone();
        assert!(Arc::ptr_eq(&first.index, &second.index));
        second.put(
            "package/m7.py",
            Some(b"def other():\n    return f8()\n".to_vec()),
        );
        second.put("package/m9.py", None);
        let shared = |(path, content): (&Arc<str>, &Arc<[u8]>)| {
            let other = second.contents.get(path);
            other.is_some_and(|other| Arc::ptr_eq(content, other))
        };
        let own: Vec<&str> = first
            .contents
            .iter()
            .filter(|file| !shared(*file))
            .map(|(path, _)| &**path)
            .collect();
        assert_eq!(own, ["package/m7.py", "package/m9.py"]);
        let found = |sources: &Sources, name: &str| {
            let query = code::graph::Query::parse(&format!("symbol:{name}"));
            let (hits, _) = sources.index().search(&query, 10);
            let named = hits
                .iter()
                .filter(|hit| sources.graph().node(hit.node).name == name);
            named.count()
        };
        assert_eq!((found(&first, "f7"), found(&second, "f7")), (1, 0));
        assert_eq!((found(&first, "other"), found(&second, "other")), (0, 1));
        assert!(first.text("package/m9.py").is_some() && second.text("package/m9.py").is_none());
    }
}
