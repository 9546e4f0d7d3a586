//! Commits as R2E-Gym takes them apart, put together to diffs again.

use std::fmt::Write as _;

use serde::Deserialize;

/// What R2E-Gym keeps of the commit that repaired something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct ParsedCommit {
    pub(super) file_diffs: Vec<FileDiff>,
    /// The parent, which is the checkout.
    pub(super) old_commit_hash: Option<String>,
    pub(super) new_commit_hash: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct FileDiff {
    header: Header,
    #[serde(default)]
    index_line: Option<IndexLine>,
    #[serde(default)]
    binary_line: Option<String>,
    #[serde(default)]
    minus_file: Option<File>,
    #[serde(default)]
    plus_file: Option<File>,
    #[serde(default)]
    hunks: Vec<Hunk>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Header {
    file: File,
    #[serde(default)]
    misc_line: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct File {
    path: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct IndexLine {
    old_commit_hash: String,
    new_commit_hash: String,
    #[serde(default)]
    mode: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Hunk {
    descriptor: Descriptor,
    line_group: LineGroup,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Descriptor {
    old_range: Range,
    new_range: Range,
    #[serde(default)]
    section: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Range {
    start: u32,
    length: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct LineGroup {
    #[serde(default)]
    all_lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Line {
    content: String,
    r#type: LineType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LineType {
    Context,
    Added,
    Deleted,
    /// That the file ends without a line's end.
    Note,
}

impl ParsedCommit {
    /// The diff of the tests, or of everything else.
    pub(super) fn diff(&self, of_tests: bool) -> String {
        let files = self.file_diffs.iter();
        let files = files.filter(|file| is_test(&file.header.file.path) == of_tests);
        files.map(FileDiff::text).collect()
    }
}

/// Whether R2E-Gym takes a file for one of the tests.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folder = |part: &str| matches!(part, "tests" | "Tests" | "test" | "Test");
    name.starts_with("test_") || path.ends_with("_test.py") || path.split('/').any(folder)
}

impl FileDiff {
    fn text(&self) -> String {
        let path = &self.header.file.path;
        let mut text = format!("diff --git a/{path} b/{path}\n");
        for line in [&self.header.misc_line, &self.index()] {
            text.extend(line.iter().flat_map(|line| [line.as_str(), "\n"]));
        }
        text.extend(
            self.binary_line
                .iter()
                .flat_map(|line| [line.as_str(), "\n"]),
        );
        if let (Some(minus), Some(plus)) = (&self.minus_file, &self.plus_file) {
            let _ = writeln!(text, "--- {}\n+++ {}", minus.path, plus.path);
        }
        for hunk in &self.hunks {
            let Descriptor {
                old_range,
                new_range,
                section,
            } = &hunk.descriptor;
            let section = match section.as_str() {
                "" => String::new(),
                section => format!(" {section}"),
            };
            let _ = writeln!(
                text,
                "@@ -{} +{} @@{section}",
                old_range.text(),
                new_range.text()
            );
            for line in &hunk.line_group.all_lines {
                let mark = match line.r#type {
                    LineType::Context => " ",
                    LineType::Added => "+",
                    LineType::Deleted => "-",
                    LineType::Note => "\\ ",
                };
                let _ = writeln!(text, "{mark}{}", line.content);
            }
        }
        text
    }

    fn index(&self) -> Option<String> {
        let index = self.index_line.as_ref()?;
        let line = format!(
            "index {}..{} {}",
            index.old_commit_hash, index.new_commit_hash, index.mode
        );
        Some(line.trim_end().to_owned())
    }
}

impl Range {
    fn text(&self) -> String {
        match self.length {
            Some(length) => format!("{},{length}", self.start),
            None => self.start.to_string(),
        }
    }
}
