//! Building a graph, and keeping one up file by file.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
};

use super::{
    Contents, Graph, Language, Linked, MAX_FILE,
    facts::FileFacts,
    link::{self, SourceFile},
    modules::Modules,
    names::{self, Members},
    node::FileIndex,
    parallel::in_parallel,
    python, symbols,
};

impl Graph {
    /// The graph of these files, by up to `threads` threads; their number changes nothing.
    pub fn build(contents: &Contents, threads: usize) -> Self {
        let paths: Vec<&String> = contents.keys().collect();
        let read = |path: &str| Ok::<_, Infallible>(&contents[path]);
        match Self::read(paths, threads, read) {
            Ok(graph) => graph,
            Err(never) => match never {},
        }
    }

    /// The graph of the files at `paths`, whose contents `read` tells: each is asked for once, by any of
    /// the threads, and kept no longer than it takes to look into it.
    ///
    /// # Errors
    /// The first error of `read`, in the order of the paths.
    pub fn read<C: AsRef<[u8]>, E: Send>(
        paths: Vec<impl AsRef<str> + Sync>,
        threads: usize,
        read: impl Fn(&str) -> Result<C, E> + Sync,
    ) -> Result<Self, E> {
        let files = in_parallel(&paths, threads, |path| {
            let path = path.as_ref();
            let content = read(path)?;
            Ok(SourceFile::new(
                path.to_owned(),
                facts_of(path, content.as_ref()),
            ))
        });
        let mut files = files.into_iter().collect::<Result<Vec<SourceFile>, E>>()?;
        files.sort_by(|one, two| one.path.cmp(&two.path));
        files.dedup_by(|later, first| later.path == first.path);
        Ok(Self::of_files(files, threads))
    }

    /// The graph of files whose facts are known already.
    pub fn of_facts(files: BTreeMap<String, Arc<FileFacts>>, threads: usize) -> Self {
        let files: Vec<(String, Arc<FileFacts>)> = files.into_iter().collect();
        let files = in_parallel(&files, threads, |(path, facts)| {
            SourceFile::new(path.clone(), facts.clone())
        });
        Self::of_files(files, threads)
    }

    /// Of files in the order of their paths.
    pub(super) fn of_files(files: Vec<SourceFile>, threads: usize) -> Self {
        let mut graph = Self::unlinked(files);
        let all: Vec<FileIndex> = (0..graph.files.len() as u32).collect();
        graph.links = graph.link(&all, threads);
        graph.sources = vec![Vec::new(); graph.files.len()];
        for file in all {
            graph.note_sources(file);
        }
        graph
    }

    fn unlinked(files: Vec<SourceFile>) -> Self {
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let modules = Modules::new(&paths);
        let packages = paths
            .iter()
            .filter_map(|path| Some(path.strip_suffix("__init__.py")?.trim_end_matches('/')))
            .filter(|folder| !folder.is_empty())
            .map(str::to_owned)
            .collect();
        let mut members = Members::default();
        for (index, file) in files.iter().enumerate() {
            members.add(index as u32, &file.facts, &file.names);
        }
        Self {
            files,
            links: Vec::new(),
            packages,
            modules: Arc::new(modules),
            members,
            sources: Vec::new(),
        }
    }

    /// Gives the file at `path` other content, or takes it away. Only what may mean something else now
    /// is looked at again.
    pub fn update(&mut self, path: &str, content: Option<&[u8]>, threads: usize) {
        let facts = content.map(|content| {
            // On a thread of its own, for its stack.
            let read = in_parallel(&[(path, content)], 1, |(path, content)| {
                facts_of(path, content)
            });
            read.into_iter().next().unwrap_or_default()
        });
        match (self.file(path), facts) {
            (None, None) => {}
            (Some(file), Some(facts)) => self.exchange(file, facts, threads),
            (_, facts) => self.replace_files(path, facts, threads),
        }
    }

    fn exchange(&mut self, file: FileIndex, facts: Arc<FileFacts>, threads: usize) {
        let own = &self.files[file as usize];
        if own.facts == facts {
            return;
        }
        let new = SourceFile::new(own.path.clone(), facts);
        let old = std::mem::replace(&mut self.files[file as usize], new);
        let new = &self.files[file as usize];
        let seen_alike = old.facts.looks_like(&new.facts);
        let mut changed: BTreeSet<u64> = BTreeSet::new();
        if !seen_alike {
            // A place among definitions may have changed, and so the place of every member.
            for SourceFile { facts, names, .. } in [&old, new] {
                let members = names::members(facts);
                changed.extend(members.map(|(_, name)| names.name(facts, name).hash));
            }
            self.members.remove(file, &old.facts, &old.names);
            self.members.add(file, &new.facts, &new.names);
        }
        let affected: Vec<FileIndex> = (0..self.files.len() as u32)
            .filter(|other| {
                let links = &self.links[*other as usize].links;
                let looks_at_it = || {
                    links.files.binary_search(&file).is_ok()
                        || links.names.iter().any(|name| changed.contains(name))
                };
                *other == file || !seen_alike && looks_at_it()
            })
            .collect();
        let linked = self.link(&affected, threads);
        for (affected, linked) in affected.into_iter().zip(linked) {
            let old = std::mem::replace(&mut self.links[affected as usize], linked);
            for target in targets(&old) {
                let sources = &mut self.sources[target as usize];
                if let Ok(at) = sources.binary_search(&affected) {
                    sources.remove(at);
                }
            }
            self.note_sources(affected);
        }
    }

    fn replace_files(&mut self, path: &str, facts: Option<Arc<FileFacts>>, threads: usize) {
        let mut files = std::mem::take(&mut self.files);
        let place = files.binary_search_by(|file| file.path.as_str().cmp(path));
        match (place, facts) {
            (Ok(at), None) => drop(files.remove(at)),
            (Ok(at), Some(facts)) => files[at] = SourceFile::new(path.to_owned(), facts),
            (Err(at), Some(facts)) => files.insert(at, SourceFile::new(path.to_owned(), facts)),
            (Err(_), None) => {}
        }
        *self = Self::of_files(files, threads);
    }

    fn link(&self, files: &[FileIndex], threads: usize) -> Vec<Arc<Linked>> {
        in_parallel(files, threads, |file| {
            let links = link::links(&self.files, &self.modules, &self.members, *file);
            Arc::new(Linked::from(links))
        })
    }

    fn note_sources(&mut self, file: FileIndex) {
        let linked = self.links[file as usize].clone();
        for target in targets(&linked) {
            let sources = &mut self.sources[target as usize];
            match sources.last() {
                Some(last) if *last >= file => {
                    if let Err(at) = sources.binary_search(&file) {
                        sources.insert(at, file);
                    }
                }
                _ => sources.push(file),
            }
        }
    }
}

/// The files that edges lead to, each once.
fn targets(linked: &Linked) -> impl Iterator<Item = FileIndex> {
    let mut last = None;
    let targets = linked.by_target.iter().map(|(target, _, _)| target.file);
    targets.filter(move |target| last.replace(*target) != Some(*target))
}

/// The facts of one file, by the language that its name tells. Needs the stack that parsing does.
pub(super) fn facts_of(path: &str, content: &[u8]) -> Arc<FileFacts> {
    let language = Language::of(path);
    let bare = || FileFacts {
        language,
        lines: memchr::memchr_iter(b'\n', content).count() as u32 + 1,
        ..FileFacts::default()
    };
    let fault = |text: &str| FileFacts {
        fault: Some(text.to_owned()),
        ..bare()
    };
    Arc::new(match std::str::from_utf8(content) {
        _ if content.len() > MAX_FILE => fault("larger than 5 MiB"),
        _ if language == Language::Other => bare(),
        Err(_) => fault("not UTF-8"),
        Ok(text) if language == Language::Python => python::facts(text),
        Ok(text) => symbols::facts(language, text),
    })
}
