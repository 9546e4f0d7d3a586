//! Which files hold tests: by what they are called, and by the tests that are known.

use std::collections::BTreeSet;

use code::graph::is_test_path;

use crate::TestFramework;

/// The files, among those that are `known`, that hold tests with these ids. A source whose documentation is such a
/// test is none: it is what may have to be mended.
pub(crate) fn files_of<'a>(
    ids: impl IntoIterator<Item = &'a String>,
    framework: TestFramework,
    known: &BTreeSet<&str>,
) -> BTreeSet<String> {
    match framework {
        TestFramework::Pytest => {
            let files = ids.into_iter().filter_map(|id| file_of(id));
            let files = files.filter(|path| known.contains(path));
            files.map(str::to_owned).collect()
        }
        TestFramework::Unittest => {
            // Tests of a class stand together: those of one are looked for once.
            let above = |id: &'a String| id.rsplit_once('.').map(|(above, _)| above);
            let holders: BTreeSet<&str> = ids.into_iter().filter_map(above).collect();
            let files = holders
                .into_iter()
                .flat_map(|holder| of_module(holder, known));
            files.map(str::to_owned).collect()
        }
    }
}

/// Of pytest's ids.
fn file_of(id: &str) -> Option<&str> {
    let (path, name) = id.split_once("::").unwrap_or((id, ""));
    // The tests of documentation are named as what they are of is imported.
    let is_documentation = name.split('[').next().is_some_and(|it| it.contains('.'));
    let path = path.trim_start_matches("./");
    (!is_documentation || is_test_file(path)).then_some(path)
}

/// The files of the innermost module that there is of those in which something with a dotted name may be.
fn of_module<'a>(mut name: &str, known: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    while found.is_empty() {
        let path = format!("{}.py", name.replace('.', "/"));
        let below = format!("/{path}");
        let is_it = |known: &&str| *known == path || known.ends_with(&below);
        found.extend(known.iter().copied().filter(is_it));
        match name.rsplit_once('.') {
            Some((above, _)) => name = above,
            None => break,
        }
    }
    found.retain(|path| is_test_file(path));
    found
}

/// Whether `unittest` or a repository's habits have a file be one of tests.
fn is_test_file(path: &str) -> bool {
    let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
    file.starts_with("test") || is_test_path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_documentation_leave_their_sources_to_be_mended() {
        let names = [
            "pack/more.py",
            "tests/test_more.py",
            "lib/app/tests.py",
            "checks/more.py",
        ];
        let (pytest, unittest) = (TestFramework::Pytest, TestFramework::Unittest);
        for (id, framework, files) in [
            ("pack.more.nth", unittest, [].as_slice()),
            ("tests.test_more.Nth.test_it", unittest, &[names[1]]),
            ("app.tests.Nth.test_it", unittest, &[names[2]]),
            ("pack/more.py::pack.more.nth", pytest, &[]),
            ("./tests/test_more.py::test_it[1.5]", pytest, &[names[1]]),
            ("tests/test_more.py::test_more.helper", pytest, &[names[1]]),
            ("checks/more.py::test_it[a.b]", pytest, &[names[3]]),
            ("gone/test_more.py::test_it", pytest, &[]),
        ] {
            let ids = [id.to_owned()];
            let found = files_of(&ids, framework, &names.into());
            let expected: BTreeSet<String> = files.iter().map(|file| (*file).to_owned()).collect();
            assert_eq!(found, expected, "{id}");
        }
    }
}
