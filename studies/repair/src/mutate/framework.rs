//! Who runs a repository's tests, by its files.

use code::RelativePath;

use crate::TestFramework;

/// Whether a file is of tests, or of what tests, documents, builds or demonstrates the package: no place for bugs.
pub(super) fn is_aside(path: &RelativePath) -> bool {
    let aside = |part: &str| {
        matches!(
            part,
            "docs"
                | "doc"
                | "examples"
                | "example"
                | "benchmarks"
                | "benchmark"
                | "bench"
                | "scripts"
                | "tools"
                | "build"
        )
    };
    let file = path.file_name();
    code::graph::is_test_path(path.as_str())
        || path
            .parent()
            .is_some_and(|folder| folder.parts().any(aside))
        || matches!(
            file,
            "setup.py" | "noxfile.py" | "conf.py" | "__main__.py" | "_version.py"
        )
}

/// The framework that a repository's tests ask for: pytest where they or its configuration name it or are functions of
/// modules, `unittest` otherwise. `read` gives the text of a file.
pub fn framework_of(
    files: &[RelativePath],
    read: impl Fn(&RelativePath) -> Option<String>,
) -> TestFramework {
    let named = files.iter().any(|path| {
        let text = || read(path).unwrap_or_default();
        match path.as_str() {
            "pytest.ini" | "conftest.py" => true,
            "pyproject.toml" => text().contains("[tool.pytest"),
            "setup.cfg" | "tox.ini" => text().contains("pytest]"),
            other => other.ends_with("/conftest.py"),
        }
    });
    let asks = |path: &&RelativePath| {
        let text = read(path).unwrap_or_default();
        text.lines().any(|line| {
            line.starts_with("def test")
                || line.starts_with("import pytest")
                || line.starts_with("from pytest ")
        })
    };
    let mut tests = files
        .iter()
        .filter(|path| path.as_str().ends_with(".py") && code::graph::is_test_path(path.as_str()));
    match named || tests.any(|path| asks(&path)) {
        true => TestFramework::Pytest,
        false => TestFramework::Unittest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_say_who_runs_them() {
        let found = |files: &[(&str, &str)]| {
            let paths: Vec<RelativePath> = files
                .iter()
                .map(|(path, _)| RelativePath::new(*path).unwrap())
                .collect();
            framework_of(&paths, |path| {
                let file = files.iter().find(|(name, _)| *name == path.as_str());
                file.map(|(_, text)| (*text).to_owned())
            })
        };
        let cases =
            "import unittest\nclass TestA(unittest.TestCase):\n    def test_a(self): pass\n";
        assert_eq!(
            found(&[("tests/test_a.py", cases)]),
            TestFramework::Unittest
        );
        assert_eq!(
            found(&[("tests/test_a.py", "def test_a():\n    pass\n")]),
            TestFramework::Pytest
        );
        assert_eq!(
            found(&[("tests/test_a.py", cases), ("tests/conftest.py", "")]),
            TestFramework::Pytest
        );
        assert_eq!(
            found(&[("tests/test_a.py", cases), ("setup.cfg", "[tool:pytest]\n")]),
            TestFramework::Pytest
        );
        assert_eq!(
            found(&[("a.py", "def test_a(): pass")]),
            TestFramework::Unittest
        );
    }

    #[test]
    fn bugs_belong_into_the_package() {
        let aside = |path: &str| is_aside(&RelativePath::new(path).unwrap());
        assert!(!aside("toolz/functoolz.py") && !aside("docs.py"));
        assert!(aside("setup.py") && aside("tests/a.py") && aside("docs/source/ext.py"));
        assert!(aside("toolz/tests/test_a.py") && aside("examples/a.py"));
    }
}
