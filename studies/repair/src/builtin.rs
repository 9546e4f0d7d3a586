//! Small packages that come along, and the tasks that were made of them: everything works without a network, and
//! without pytest.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{Place, Task};

/// A package with its tests, which need the standard library alone.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    pub name: &'static str,
    /// Whether its tasks are to train on, or to evaluate on.
    pub is_for_training: bool,
    /// Paths below the package's folder, and contents.
    pub files: &'static [(&'static str, &'static str)],
    /// A task a line, whose folder is the package's.
    tasks: &'static str,
}

macro_rules! package {
    ($name:literal, $is_for_training:literal, [$($path:literal),* $(,)?]) => {
        Package {
            name: $name,
            is_for_training: $is_for_training,
            files: &[$((
                $path,
                include_str!(concat!("../packages/", $name, "/", $path)),
            )),*],
            tasks: include_str!(concat!("../packages/", $name, ".jsonl")),
        }
    };
}

/// All of them. No package is trained and evaluated on.
pub const PACKAGES: [Package; 8] = [
    package!(
        "caches",
        true,
        [
            "caches/__init__.py",
            "caches/decorator.py",
            "caches/expiring.py",
            "caches/recent.py",
            "caches/sketch.py",
            "tests/__init__.py",
            "tests/test_expiring.py",
            "tests/test_recent.py",
            "tests/test_sketch.py",
        ]
    ),
    package!(
        "calculator",
        false,
        [
            "calculator/__init__.py",
            "calculator/errors.py",
            "calculator/evaluate.py",
            "calculator/parse.py",
            "calculator/show.py",
            "calculator/simplify.py",
            "calculator/tokens.py",
            "tests/__init__.py",
            "tests/test_evaluate.py",
            "tests/test_parse.py",
        ]
    ),
    package!(
        "calendars",
        false,
        [
            "calendars/__init__.py",
            "calendars/business.py",
            "calendars/periods.py",
            "calendars/recurrence.py",
            "tests/__init__.py",
            "tests/test_business.py",
            "tests/test_periods.py",
            "tests/test_recurrence.py",
        ]
    ),
    package!(
        "inifile",
        true,
        [
            "inifile/__init__.py",
            "inifile/document.py",
            "inifile/errors.py",
            "inifile/reader.py",
            "tests/__init__.py",
            "tests/test_document.py",
            "tests/test_reader.py",
        ]
    ),
    package!(
        "intervals",
        true,
        [
            "intervals/__init__.py",
            "intervals/interval.py",
            "intervals/interval_set.py",
            "tests/__init__.py",
            "tests/test_interval.py",
            "tests/test_interval_set.py",
        ]
    ),
    package!(
        "numwords",
        true,
        [
            "numwords/__init__.py",
            "numwords/grouping.py",
            "numwords/roman.py",
            "numwords/words.py",
            "tests/__init__.py",
            "tests/test_numwords.py",
        ]
    ),
    package!(
        "tabular",
        true,
        [
            "tabular/__init__.py",
            "tabular/table.py",
            "tabular/wrap.py",
            "tests/__init__.py",
            "tests/test_table.py",
            "tests/test_wrap.py",
        ]
    ),
    package!(
        "units",
        false,
        [
            "tests/__init__.py",
            "tests/test_quantity.py",
            "tests/test_registry.py",
            "units/__init__.py",
            "units/dimension.py",
            "units/quantity.py",
            "units/registry.py",
        ]
    ),
];

impl Package {
    /// Writes the files into a folder of the package's name below `folder`; files that are there are kept when they are
    /// the same. The folder that it is now in.
    ///
    /// # Errors
    /// A folder or a file that cannot be written.
    pub fn unpack(&self, folder: &Path) -> io::Result<PathBuf> {
        let place = folder.join(self.name);
        for (path, content) in self.files {
            let path = place.join(path);
            if fs::read(&path).is_ok_and(|found| found == content.as_bytes()) {
                continue;
            }
            fs::create_dir_all(path.parent().unwrap_or(&place))?;
            // Whoever unpacks the same at the same time writes the same.
            let draft = path.with_added_extension(format!("{}.draft", std::process::id()));
            fs::write(&draft, content)?;
            fs::rename(&draft, &path)?;
        }
        Ok(place)
    }

    /// The tasks of the package, of which `folder` is where it was unpacked.
    ///
    /// # Errors
    /// A task that is none, which a test of this crate rules out.
    pub fn tasks(&self, folder: &Path) -> Result<Vec<Task>, serde_json::Error> {
        let lines = self.tasks.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let mut task: Task = serde_json::from_str(line)?;
                if let Place::Folder(place) | Place::Patched { folder: place, .. } = &mut task.place
                {
                    folder.clone_into(place);
                }
                Ok(task)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Checkout, checkout::regular_files};

    #[test]
    fn every_file_of_the_packages_comes_along() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("packages");
        let mut names = Vec::new();
        for package in PACKAGES {
            let mut found = regular_files(&root.join(package.name)).unwrap();
            found.sort();
            let found: Vec<&str> = found.iter().map(|path| path.as_str()).collect();
            let listed: Vec<&str> = package.files.iter().map(|(path, _)| *path).collect();
            assert_eq!(listed, found, "{}", package.name);
            names.push(package.name.to_owned());
        }
        let folders = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap());
        let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
        let mut folders: Vec<String> = folders
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        folders.sort();
        assert_eq!(names, folders);
    }

    #[test]
    fn every_task_has_a_checkout_that_its_gold_undoes() {
        let scratch = tempfile::tempdir().unwrap();
        let mut ids = BTreeSet::new();
        for package in PACKAGES {
            let folder = package.unpack(scratch.path()).unwrap();
            assert_eq!(package.unpack(scratch.path()).unwrap(), folder);
            let tasks = package.tasks(&folder).unwrap();
            assert!(
                tasks.len() >= 12,
                "{} has {} tasks",
                package.name,
                tasks.len()
            );
            for task in tasks {
                let id = &task.id.0;
                let checkout = Checkout::of(&task.place).unwrap();
                let gold = code::Patch::parse(task.gold.patch.as_bytes()).unwrap();
                let files = gold.paths().into_iter();
                let files = files
                    .map(|path| (path.clone(), checkout.read(&path).unwrap()))
                    .collect();
                let applied = gold.apply(&files).unwrap();
                let [code::patch::FileChange::Write { path, content, .. }] = &applied.changes[..]
                else {
                    panic!("{id}: {applied:?}");
                };
                assert_eq!(
                    content,
                    &fs::read(folder.join(path.as_str())).unwrap(),
                    "{id}"
                );
                assert!(
                    !task.checks.fail_to_pass.is_empty() && !task.checks.pass_to_pass.is_empty()
                );
                let shown = serde_json::to_string(&task.public).unwrap();
                let added = task.gold.patch.lines().filter(|line| line.starts_with('+'));
                for line in added
                    .skip(1)
                    .map(|line| line[1..].trim())
                    .filter(|line| line.len() > 8)
                {
                    assert!(!shown.contains(line), "{id} tells {line}");
                }
                assert!(ids.insert(task.id.clone()), "{id} is there twice");
            }
        }
    }
}
