//! Whether a statement is one that must not be trained on.

use std::{collections::HashSet, path::Path};

use dataset::{DatasetError, Rows};

use super::values::{given, optional_text};

/// Statements that are kept for evaluation.
#[derive(Clone, Debug, Default)]
pub struct HeldOut {
    exact: HashSet<[u8; 32]>,
    /// Without letter case, punctuation and layout.
    normal: HashSet<[u8; 32]>,
    /// Runs of words, where those are looked for.
    runs: HashSet<[u8; 32]>,
    /// Words of a run.
    width: Option<usize>,
    statements: usize,
}

/// How a statement was found among those that are held out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// To the byte, as the original compares.
    Identical,
    /// But for letter case, punctuation and layout.
    Alike,
    /// A run of words is in both.
    Shared,
}

/// Where rows of problem files and of the datasets themselves have their statements.
const STATEMENTS: [&str; 6] = [
    "problem",
    "question_content",
    "content",
    "description",
    "question",
    "prompt",
];

impl HeldOut {
    /// Nothing yet. With a `width`, statements overlap also where they differ in letter case, punctuation and
    /// layout alone, or share a run of so many words.
    pub fn new(width: Option<usize>) -> Self {
        Self {
            width: width.map(|width| width.max(1)),
            ..Self::default()
        }
    }

    /// Adds the statements of a file: a problem file, or rows of one of the datasets.
    ///
    /// # Errors
    /// What is wrong with the file; a row without a statement.
    pub fn read(&mut self, path: &Path) -> Result<(), DatasetError> {
        let before = self.statements;
        for row in Rows::open(path)? {
            let row = row?;
            let columns = row.object()?;
            let field = STATEMENTS
                .into_iter()
                .find(|field| given(&columns, field).is_some_and(|value| value.is_string()));
            let statement = match field {
                Some(field) => optional_text(&row, &columns, field)?.unwrap_or_default(),
                None => {
                    let message = format!(
                        "missing: a statement stands in one of {}",
                        STATEMENTS.join(", ")
                    );
                    return Err(row.error(STATEMENTS[0], message).into());
                }
            };
            self.add(&statement);
        }
        if self.statements == before {
            return Err(DatasetError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(())
    }

    pub fn add(&mut self, statement: &str) {
        self.statements += 1;
        self.exact.insert(digest(statement));
        let asked = asked(statement);
        self.exact.insert(digest(asked));
        let words = words(asked);
        if let Some(width) = self.width
            && !words.is_empty()
        {
            self.normal.insert(digest(&words.join(" ")));
            let runs = words.windows(width).map(|run| digest(&run.join(" ")));
            self.runs.extend(runs);
        }
    }

    /// The number of statements.
    pub fn len(&self) -> usize {
        self.statements
    }

    pub fn is_empty(&self) -> bool {
        self.statements == 0
    }

    /// Words of the runs that are looked for.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// The nearest way in which `statement` is among them.
    pub(super) fn overlap(&self, statement: &str) -> Option<Overlap> {
        if self.exact.contains(&digest(statement)) {
            return Some(Overlap::Identical);
        }
        let width = self.width?;
        let words = words(asked(statement));
        if self.normal.contains(&digest(&words.join(" "))) {
            return Some(Overlap::Alike);
        }
        let mut runs = words.windows(width);
        let shared = runs.any(|run| self.runs.contains(&digest(&run.join(" "))));
        shared.then_some(Overlap::Shared)
    }
}

/// What is asked: of LiveCodeBench's prompts what stands between the headings, whose words are in all of them.
fn asked(statement: &str) -> &str {
    let Some((_, rest)) = statement.split_once("### Question:") else {
        return statement;
    };
    let question = rest
        .split_once("### Format:")
        .map_or(rest, |(asked, _)| asked);
    question.trim()
}

/// Runs of letters and digits, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn digest(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_again() {
        let held = "Given two integers, print their sum. Both fit into 32 bits.";
        let mut out = HeldOut::new(Some(4));
        out.add(held);
        out.add("### Question:\nCount the vowels of a word.\n\n### Format: …\n\n### Answer:\n\n");
        for (statement, found) in [
            (held, Some(Overlap::Identical)),
            (
                "given two integers print\ntheir sum; both fit into 32 bits",
                Some(Overlap::Alike),
            ),
            (
                "A boy wants to print their sum, both as text.",
                Some(Overlap::Shared),
            ),
            ("Print their sum.", None),
            ("count the vowels of a word", Some(Overlap::Alike)),
            ("", None),
        ] {
            assert_eq!(out.overlap(statement), found, "{statement}");
        }
        let mut plain = HeldOut::new(None);
        plain.add(held);
        for other in [
            "A boy wants to print their sum, both as text.",
            "given two integers print their sum both fit into 32 bits",
        ] {
            assert_eq!(plain.overlap(other), None, "{other}");
        }
        assert_eq!(plain.overlap(held), Some(Overlap::Identical));
    }
}
