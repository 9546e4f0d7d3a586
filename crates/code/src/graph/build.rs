//! Building a graph, and keeping one up file by file.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
};

use rustc_hash::FxHashSet;

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
        let read = |path: &str| Ok::<_, Infallible>(&contents[path]);
        match Self::read(contents.keys(), threads, read) {
            Ok(graph) => graph,
            Err(never) => match never {},
        }
    }

    /// The graph of the files at `paths`, whose contents `read` tells: each is asked for once, by any of
    /// the threads, and kept no longer than it takes to look into it. So are the paths, while files before
    /// them are read.
    ///
    /// # Errors
    /// The first error of `read`, in the order of the paths.
    pub fn read<P: AsRef<str> + Send, C: AsRef<[u8]>, E: Send>(
        paths: impl IntoIterator<Item = P, IntoIter: Send>,
        threads: usize,
        read: impl Fn(&str) -> Result<C, E> + Sync,
    ) -> Result<Self, E> {
        let files = in_parallel(paths, threads, |path| {
            let path = path.as_ref();
            Ok(source_file(path, read(path)?.as_ref(), None))
        });
        let mut files = files.into_iter().collect::<Result<Vec<SourceFile>, E>>()?;
        files.sort_by(|one, two| one.path.cmp(&two.path));
        files.dedup_by(|later, first| later.path == first.path);
        Ok(Self::of_files(files, threads))
    }

    /// Of files in the order of their paths.
    pub(super) fn of_files(files: Vec<SourceFile>, threads: usize) -> Self {
        let mut graph = Self::unlinked(files);
        let all: Vec<FileIndex> = (0..graph.files.len() as u32).collect();
        graph.links = graph.link(&all, threads);
        graph.note_all_sources();
        graph
    }

    /// Of files in the order of their paths, and their links.
    pub(super) fn of_linked(files: Vec<SourceFile>, links: Vec<Arc<Linked>>) -> Self {
        let mut graph = Self {
            links,
            ..Self::unlinked(files)
        };
        graph.note_all_sources();
        graph
    }

    fn note_all_sources(&mut self) {
        self.sources = vec![Vec::new(); self.files.len()];
        for file in 0..self.files.len() as u32 {
            self.note_sources(file);
        }
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
        let known = self.file(path);
        let file = content.map(|content| {
            let known = known.map(|known| &self.files[known as usize]);
            // On a thread of its own, for its stack.
            in_parallel([()], 1, |()| source_file(path, content, known))
        });
        match (known, file.and_then(|mut files| files.pop())) {
            (None, None) => {}
            (Some(known), Some(file)) => self.exchange(known, file, threads),
            (_, file) => self.replace_files(path, file, threads),
        }
    }

    /// Makes this the graph of the files at `paths`, whose contents `read` tells. Files with the content
    /// that they had are not looked into again. The paths of files that changed, came or went.
    ///
    /// # Errors
    /// The first error of `read`, in the order of the paths; the graph is as it was then.
    pub fn refresh<P: AsRef<str> + Send, C: AsRef<[u8]>, E: Send>(
        &mut self,
        paths: impl IntoIterator<Item = P, IntoIter: Send>,
        threads: usize,
        read: impl Fn(&str) -> Result<C, E> + Sync,
    ) -> Result<Vec<String>, E> {
        /// From so many changes on all is linked again.
        const MANY: usize = 16;
        let files = in_parallel(paths, threads, |path| {
            let path = path.as_ref();
            let known = self.file(path).map(|known| &self.files[known as usize]);
            Ok(source_file(path, read(path)?.as_ref(), known))
        });
        let mut files = files.into_iter().collect::<Result<Vec<SourceFile>, E>>()?;
        files.sort_by(|one, two| one.path.cmp(&two.path));
        files.dedup_by(|later, first| later.path == first.path);
        let old: BTreeMap<&str, &SourceFile> = self
            .files
            .iter()
            .map(|file| (file.path.as_str(), file))
            .collect();
        let new: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let is_new = |file: &&SourceFile| {
            let known = old.get(file.path.as_str());
            known.is_none_or(|known| known.digest != file.digest)
        };
        let changed: BTreeSet<String> = files
            .iter()
            .filter(is_new)
            .map(|file| file.path.clone())
            .chain(
                old.keys()
                    .filter(|path| !new.contains(**path))
                    .map(|path| (*path).to_owned()),
            )
            .collect();
        let same_paths = old.len() == new.len() && old.keys().all(|path| new.contains(path));
        if same_paths && changed.len() < MANY {
            for file in files {
                if let (true, Some(known)) = (changed.contains(&file.path), self.file(&file.path)) {
                    self.exchange(known, file, threads);
                }
            }
        } else {
            *self = Self::of_files(files, threads);
        }
        Ok(changed.into_iter().collect())
    }

    fn exchange(&mut self, file: FileIndex, new: SourceFile, threads: usize) {
        let old = std::mem::replace(&mut self.files[file as usize], new);
        let new = &self.files[file as usize];
        if old.facts == new.facts {
            return;
        }
        let seen_alike = old.facts.looks_like(&new.facts);
        let mut changed: FxHashSet<u64> = FxHashSet::default();
        if !seen_alike {
            // Members that came, went or have another place among the definitions.
            let members = |file: &SourceFile| -> FxHashSet<(u64, u32)> {
                let all = names::members(&file.facts);
                all.map(|(index, name)| (file.names.name(&file.facts, name).hash, index))
                    .collect()
            };
            let (before, after) = (members(&old), members(new));
            let differing = before.symmetric_difference(&after);
            changed.extend(differing.map(|(hash, _)| hash));
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
            for target in &old.targets {
                let sources = &mut self.sources[*target as usize];
                if let Ok(at) = sources.binary_search(&affected) {
                    sources.remove(at);
                }
            }
            self.note_sources(affected);
        }
    }

    fn replace_files(&mut self, path: &str, file: Option<SourceFile>, threads: usize) {
        let mut files = std::mem::take(&mut self.files);
        let place = files.binary_search_by(|file| file.path.as_str().cmp(path));
        match (place, file) {
            (Ok(at), None) => drop(files.remove(at)),
            (Ok(at), Some(file)) => files[at] = file,
            (Err(at), Some(file)) => files.insert(at, file),
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
        for target in &linked.targets {
            let sources = &mut self.sources[*target as usize];
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

/// A file, with the facts of `known` if that has the same content. Needs the stack that parsing does.
fn source_file(path: &str, content: &[u8], known: Option<&SourceFile>) -> SourceFile {
    let digest = *blake3::hash(content).as_bytes();
    match known.filter(|known| known.digest == digest) {
        Some(known) => known.clone(),
        None => SourceFile::new(path.to_owned(), digest, facts_of(path, content)),
    }
}

/// The facts of one file, by the language that its name tells. Needs the stack that parsing does.
fn facts_of(path: &str, content: &[u8]) -> Arc<FileFacts> {
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
