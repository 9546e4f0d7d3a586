//! The files that imports of other languages than Python mean, by where files lie.

use rustc_hash::FxHashMap;

use super::{language::Language, node::FileIndex};

/// Files by their names and by their folders.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    by_path: FxHashMap<String, FileIndex>,
    by_name: FxHashMap<String, Vec<FileIndex>>,
    by_folder: FxHashMap<String, Vec<FileIndex>>,
    paths: Vec<String>,
}

/// What a path without an ending may end with, for bundlers and for Node.
const ENDINGS: [&str; 9] = [
    ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs",
];

impl Places {
    /// Of the files at `paths` that are in one of these languages.
    pub(super) fn new(paths: &[&str]) -> Self {
        let mut places = Self::default();
        let is_ours =
            |path: &str| !matches!(Language::of(path), Language::Python | Language::Other);
        if !paths.iter().any(|path| is_ours(path)) {
            return places;
        }
        places.paths = paths.iter().map(|path| (*path).to_owned()).collect();
        for (index, path) in (0u32..).zip(paths) {
            if is_ours(path) {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                places.by_path.insert((*path).to_owned(), index);
                let of_name = places.by_name.entry(name.to_owned()).or_default();
                of_name.push(index);
                let of_folder = places.by_folder.entry(folder.to_owned()).or_default();
                of_folder.push(index);
            }
        }
        places
    }

    /// What `module` means in the file at `path`.
    pub(super) fn resolve(&self, language: Language, path: &str, module: &str) -> Vec<FileIndex> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let one = |found: Option<FileIndex>| found.into_iter().collect();
        match language {
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                one(self.script(folder, module))
            }
            Language::C | Language::Cpp => {
                let beside = joined(folder, module).and_then(|path| self.at(&path));
                one(beside.or_else(|| self.ending_with(module)))
            }
            Language::Java => one(self.ending_with(&(module.replace('.', "/") + ".java"))),
            Language::Ruby => {
                let found = joined(folder, module);
                one(found.and_then(|path| self.at(&(path.clone() + ".rb")).or(self.at(&path))))
            }
            Language::Rust => one(self.rust(path, folder, module)),
            Language::Go => self.go(module),
            Language::Python | Language::Other => Vec::new(),
        }
    }

    fn at(&self, path: &str) -> Option<FileIndex> {
        self.by_path.get(path).copied()
    }

    fn script(&self, folder: &str, module: &str) -> Option<FileIndex> {
        if !module.starts_with('.') {
            return None;
        }
        let path = joined(folder, module)?;
        let index = match path.is_empty() {
            true => "index".to_owned(),
            false => format!("{path}/index"),
        };
        // `./a.js` is how TypeScript writes `./a.ts`.
        let bare = ENDINGS.iter().find_map(|ending| path.strip_suffix(ending));
        let stems = [Some(path.as_str()), Some(&index), bare].into_iter();
        self.at(&path).or_else(|| {
            stems.flatten().find_map(|stem| {
                ENDINGS
                    .iter()
                    .find_map(|ending| self.at(&format!("{stem}{ending}")))
            })
        })
    }

    /// The file whose path ends so, nearest to the root.
    fn ending_with(&self, end: &str) -> Option<FileIndex> {
        let name = end.rsplit('/').next()?;
        let found = self.by_name.get(name)?.iter().copied().filter(|file| {
            let rest = self.paths[*file as usize].strip_suffix(end);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        });
        found.min_by_key(|file| self.paths[*file as usize].len())
    }

    fn rust(&self, path: &str, folder: &str, module: &str) -> Option<FileIndex> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.strip_suffix(".rs").unwrap_or(name);
        let below = match stem {
            "mod" | "lib" | "main" => folder.to_owned(),
            _ => joined(folder, stem)?,
        };
        let path = joined(&below, module)?;
        self.at(&format!("{path}.rs"))
            .or_else(|| self.at(&format!("{path}/mod.rs")))
    }

    /// The files of a package, by the longest end of its path that is a folder. Paths of the standard
    /// library begin with no domain.
    fn go(&self, module: &str) -> Vec<FileIndex> {
        let (domain, mut rest) = module.split_once('/').unwrap_or((module, ""));
        if !domain.contains('.') {
            return Vec::new();
        }
        while !rest.is_empty() {
            if let Some(files) = self.by_folder.get(rest) {
                let is_test = |file: &&FileIndex| self.paths[**file as usize].ends_with("_test.go");
                return files
                    .iter()
                    .filter(|file| !is_test(file))
                    .copied()
                    .collect();
            }
            rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        }
        Vec::new()
    }
}

/// `path` from `folder`; `None` if it leads out of the repository.
fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_lead_to_files() {
        let paths = [
            "go/lib/tree/tree.go",
            "go/lib/tree/tree_test.go",
            "java/src/org/shop/Cart.java",
            "rust/src/lib.rs",
            "rust/src/tree/leaf.rs",
            "rust/src/tree/mod.rs",
            "src/include/list.h",
            "src/list.c",
            "web/app.tsx",
            "web/parts/index.ts",
            "web/util.ts",
        ];
        let places = Places::new(&paths);
        let found = |language, path: &str, module: &str| -> Vec<&str> {
            let found = places.resolve(language, path, module);
            found.iter().map(|file| paths[*file as usize]).collect()
        };
        use Language::{C, Go, Java, Rust, Tsx};
        assert_eq!(found(Tsx, "web/app.tsx", "./parts"), ["web/parts/index.ts"]);
        assert_eq!(
            found(Tsx, "web/parts/index.ts", "../util.js"),
            ["web/util.ts"]
        );
        assert!(found(Tsx, "web/app.tsx", "react").is_empty());
        assert!(found(Tsx, "web/app.tsx", "../../../util").is_empty());
        assert_eq!(found(C, "src/list.c", "list.h"), ["src/include/list.h"]);
        assert_eq!(
            found(Java, "java/src/org/shop/Main.java", "org.shop.Cart"),
            ["java/src/org/shop/Cart.java"]
        );
        assert_eq!(
            found(Rust, "rust/src/lib.rs", "tree"),
            ["rust/src/tree/mod.rs"]
        );
        assert_eq!(
            found(Rust, "rust/src/tree/mod.rs", "leaf"),
            ["rust/src/tree/leaf.rs"]
        );
        assert_eq!(
            found(Go, "go/main.go", "example.org/shop/go/lib/tree"),
            ["go/lib/tree/tree.go"]
        );
        assert!(found(Go, "go/main.go", "tree").is_empty());
    }
}
