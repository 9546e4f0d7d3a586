//! What the names of datasets say of them: by whole words from the beginning, so that `chronicles` is no `icl`.

/// The name of a dataset, in words.
pub(crate) struct SourceName {
    suite: Option<Suite>,
    /// Behind the suite, in lower case.
    words: Vec<String>,
}

/// Collections of datasets, whose names stand before those of their parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    MemAlpha,
    MemoryAgentBench,
}

impl SourceName {
    pub(crate) fn of(data_source: &str) -> Self {
        let name = data_source.to_lowercase();
        let words = name.split(|letter: char| !letter.is_alphanumeric());
        let mut words: Vec<String> = words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        let suites = [
            ("memalpha", Suite::MemAlpha),
            ("memoryagentbench", Suite::MemoryAgentBench),
        ];
        let found = suites
            .into_iter()
            .find_map(|(name, suite)| Some((words_that_spell(&words, name)?, suite)));
        if let Some((length, _)) = found {
            words.drain(..length);
        }
        Self {
            suite: found.map(|(_, suite)| suite),
            words,
        }
    }

    pub(crate) fn is_of(&self, suite: Suite) -> bool {
        self.suite == Some(suite)
    }

    /// Whether its first words, of a suite those behind it, spell `name`: `ruler_qa1_197K` begins with `ruler`
    /// and with `rulerqa1`.
    pub(crate) fn begins(&self, name: &str) -> bool {
        words_that_spell(&self.words, name).is_some()
    }

    /// The same of one of a suite.
    pub(crate) fn begins_in(&self, suite: Suite, name: &str) -> bool {
        self.is_of(suite) && self.begins(name)
    }
}

/// How many of the first words are `name` when nothing stands between them.
fn words_that_spell(words: &[String], name: &str) -> Option<usize> {
    let mut rest = name;
    for (index, word) in words.iter().enumerate() {
        rest = rest.strip_prefix(word.as_str())?;
        if rest.is_empty() {
            return Some(index + 1);
        }
    }
    None
}
