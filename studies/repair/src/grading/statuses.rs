//! What a log says of each test, in the order in which tests are first named.

use std::collections::HashMap;

use judge::pytest::TestStatus;

/// Statuses by test, the last word on each. `None` is a word that is no status: such a test is neither
/// passed nor failed as far as the log goes, and counts as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    said: Vec<(String, Option<TestStatus>)>,
    places: HashMap<String, usize>,
}

impl Statuses {
    pub fn insert(&mut self, test: impl Into<String>, status: Option<TestStatus>) {
        let test = test.into();
        match self.places.get(&test) {
            Some(&place) => self.said[place].1 = status,
            None => {
                self.places.insert(test.clone(), self.said.len());
                self.said.push((test, status));
            }
        }
    }

    /// `None` where the test is not named, or with a word that is no status.
    pub fn get(&self, test: &str) -> Option<TestStatus> {
        self.said[*self.places.get(test)?].1
    }

    pub fn contains(&self, test: &str) -> bool {
        self.places.contains_key(test)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<TestStatus>)> {
        self.said
            .iter()
            .map(|(test, status)| (test.as_str(), *status))
    }

    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    pub fn len(&self) -> usize {
        self.said.len()
    }
}

impl<T: Into<String>> FromIterator<(T, TestStatus)> for Statuses {
    fn from_iter<I: IntoIterator<Item = (T, TestStatus)>>(tests: I) -> Self {
        let mut statuses = Self::default();
        for (test, status) in tests {
            statuses.insert(test, Some(status));
        }
        statuses
    }
}

/// Every status with the word that logs and files have for it.
pub const STATUS_WORDS: [(&str, TestStatus); 5] = [
    ("FAILED", TestStatus::Failed),
    ("PASSED", TestStatus::Passed),
    ("SKIPPED", TestStatus::Skipped),
    ("ERROR", TestStatus::Error),
    ("XFAIL", TestStatus::ExpectedFailure),
];

/// The status that is written so, by the whole word.
pub fn status_of(word: &str) -> Option<TestStatus> {
    let mut words = STATUS_WORDS.iter();
    words
        .find(|(known, _)| *known == word)
        .map(|(_, status)| *status)
}
