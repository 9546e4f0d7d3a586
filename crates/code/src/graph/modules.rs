//! Dotted module names of a repository's Python files.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{imports::Places, node::FileIndex};

/// Which file a dotted name means, from anywhere or from another file.
#[derive(Clone, Debug, Default)]
pub(super) struct Modules {
    by_name: FxHashMap<String, FileIndex>,
    /// By file: its own dotted name and whether it is a package's `__init__`.
    names: Vec<Option<(String, bool)>>,
    /// By folder and module name, for scripts that import what lies beside them.
    beside: FxHashMap<String, FxHashMap<String, FileIndex>>,
    /// Where files in other languages lie.
    pub(super) places: Places,
}

impl Modules {
    /// Of the files at `paths`; what is no Python file has no name.
    ///
    /// A package's name begins below the nearest folder above it that has no `__init__.py`. Where
    /// two files have one name, the one nearer to the root has it.
    pub(super) fn new(paths: &[&str]) -> Self {
        let packages: FxHashSet<&str> = paths
            .iter()
            .filter_map(|path| path.strip_suffix("__init__.py"))
            .map(|folder| folder.trim_end_matches('/'))
            .collect();
        let mut modules = Self {
            places: Places::new(paths),
            ..Self::default()
        };
        let mut order: Vec<(usize, &str, FileIndex)> = Vec::with_capacity(paths.len());
        for (index, path) in paths.iter().enumerate() {
            modules.names.push(None);
            if path.ends_with(".py") || path.ends_with(".pyi") {
                let depth = path.matches('/').count();
                order.push((depth, path, index as FileIndex));
            }
        }
        order.sort_unstable();
        for (_, path, index) in order {
            let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
            let (folder, file) = stem.rsplit_once('/').unwrap_or(("", stem));
            let mut parts: Vec<&str> = Vec::new();
            let is_package = file == "__init__";
            if !is_package {
                parts.push(file);
            }
            let mut above = folder;
            while !above.is_empty() && packages.contains(above) {
                let (rest, name) = above.rsplit_once('/').unwrap_or(("", above));
                parts.push(name);
                above = rest;
            }
            parts.reverse();
            let name = parts.join(".");
            if !is_package {
                let beside = modules.beside.entry(folder.to_owned()).or_default();
                beside.entry(file.to_owned()).or_insert(index);
            }
            // By its path from the root as well: namespace packages have no `__init__.py`.
            let from_root = stem.trim_end_matches("/__init__").replace('/', ".");
            modules.by_name.entry(from_root).or_insert(index);
            if !name.is_empty() {
                modules.by_name.entry(name.clone()).or_insert(index);
            }
            modules.names[index as usize] = Some((name, is_package));
        }
        modules
    }

    pub(super) fn find(&self, name: &str) -> Option<FileIndex> {
        self.by_name.get(name).copied()
    }

    /// The module that `level` dots and `module` mean in `file`, which lies in `folder`.
    pub(super) fn resolve(
        &self,
        file: FileIndex,
        folder: &str,
        level: u32,
        module: &str,
    ) -> Option<FileIndex> {
        if level == 0 {
            let found = self.find(module);
            return found.or_else(|| {
                let (first, rest) = module.split_once('.').unwrap_or((module, ""));
                let beside = self.beside.get(folder)?.get(first)?;
                rest.is_empty().then_some(*beside)
            });
        }
        self.find(&self.absolute(file, level, module)?)
    }

    /// The dotted name that a relative import means.
    pub(super) fn absolute(&self, file: FileIndex, level: u32, module: &str) -> Option<String> {
        if level == 0 {
            return Some(module.to_owned());
        }
        let (name, is_package) = self.names.get(file as usize)?.as_ref()?;
        let mut parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
        let up = level - u32::from(*is_package);
        for _ in 0..up {
            parts.pop()?;
        }
        parts.extend(module.split('.').filter(|part| !part.is_empty()));
        (!parts.is_empty()).then(|| parts.join("."))
    }

    /// The dotted name of a file that is a package's own: modules lie below it.
    pub(super) fn package(&self, file: FileIndex) -> Option<&str> {
        let (name, is_package) = self.names.get(file as usize)?.as_ref()?;
        is_package.then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Modules;

    #[test]
    fn names_are_resolved_as_python_resolves_them() {
        let paths = [
            "setup.py",
            "src/pack/__init__.py",
            "src/pack/one.py",
            "src/pack/sub/__init__.py",
            "src/pack/sub/two.py",
            "tests/helper.py",
            "tests/test_it.py",
            "data.json",
        ];
        let modules = Modules::new(&paths);
        assert_eq!(modules.find("pack.one"), Some(2));
        assert_eq!(modules.find("pack.sub"), Some(3));
        assert_eq!(modules.find("pack"), Some(1));
        assert_eq!(modules.find("nothing"), None);
        assert_eq!(modules.resolve(4, "src/pack/sub", 1, ""), Some(3));
        assert_eq!(modules.resolve(4, "src/pack/sub", 2, "one"), Some(2));
        assert_eq!(modules.resolve(3, "src/pack/sub", 1, "two"), Some(4));
        assert_eq!(modules.resolve(4, "src/pack/sub", 5, "one"), None);
        assert_eq!(modules.resolve(6, "tests", 0, "helper"), Some(5));
    }
}
