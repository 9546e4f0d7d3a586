//! The query language in which planners ask for nodes.
//!
//! Spec of the repair study, section 3.5. A query is words and any of `symbol:NAME`, `path:PART`,
//! `+MUST`, `-NOT` and `"a phrase"`.

/// A query, parsed. Parts beyond their caps are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub symbols: Vec<String>,
    pub paths: Vec<String>,
    pub must: Vec<String>,
    pub not: Vec<String>,
    pub phrases: Vec<String>,
    pub words: Vec<String>,
}

/// Words that say nothing about code.
const STOPWORDS: [&str; 40] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "do", "does", "for", "from",
    "has", "have", "how", "if", "in", "into", "is", "it", "its", "not", "of", "on", "or", "should",
    "so", "that", "the", "their", "there", "this", "to", "was", "when", "which", "will", "with",
];

impl Query {
    const SYMBOLS: usize = 3;
    const PATHS: usize = 3;
    const MUST: usize = 6;
    const NOT: usize = 6;
    const PHRASES: usize = 6;
    const WORDS: usize = 24;

    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let (phrase, after) = quoted.split_once('"').unwrap_or((quoted, ""));
                add(&mut query.phrases, Self::PHRASES, phrase);
                rest = after.trim_start();
                continue;
            }
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = after.trim_start();
            if let Some(symbol) = word.strip_prefix("symbol:") {
                add(&mut query.symbols, Self::SYMBOLS, symbol);
            } else if let Some(path) = word.strip_prefix("path:") {
                add(&mut query.paths, Self::PATHS, path);
            } else if let Some(must) = word.strip_prefix('+') {
                add(&mut query.must, Self::MUST, must);
            } else if let Some(not) = word.strip_prefix('-') {
                add(&mut query.not, Self::NOT, not);
            } else {
                for word in words(word) {
                    if !STOPWORDS.contains(&word.as_str()) {
                        add(&mut query.words, Self::WORDS, &word);
                    }
                }
            }
        }
        query
    }

    /// The same without what must or must not be, and with the words of all its parts: what is asked when
    /// nothing was found.
    pub fn relaxed(&self) -> Self {
        let loose = [&self.symbols, &self.paths, &self.must, &self.phrases];
        let mut query = Self {
            symbols: self.symbols.clone(),
            paths: self.paths.clone(),
            words: self.words.clone(),
            ..Self::default()
        };
        for text in loose.into_iter().flatten() {
            for word in words(text) {
                add(&mut query.words, Self::WORDS, &word);
            }
        }
        query
    }

    pub fn is_empty(&self) -> bool {
        let parts = [
            &self.symbols,
            &self.paths,
            &self.must,
            &self.phrases,
            &self.words,
        ];
        parts.into_iter().all(Vec::is_empty)
    }
}

fn add(parts: &mut Vec<String>, most: usize, text: &str) {
    let text = text.trim().to_lowercase();
    if !text.is_empty() && parts.len() < most && !parts.contains(&text) {
        parts.push(text);
    }
}

/// The words of a text: whole identifiers, and the parts of those in snake or camel case; lowercase.
pub fn words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |word: &str| {
        let word = word.to_lowercase();
        if word.len() > 1 && !found.contains(&word) {
            found.push(word);
        }
    };
    for identifier in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        add(identifier.trim_matches('_'));
        for part in identifier.split('_') {
            add(part);
            let mut start = 0;
            let letters: Vec<(usize, char)> = part.char_indices().collect();
            for pair in letters.windows(2) {
                let [(_, before), (at, here)] = pair else {
                    continue;
                };
                if here.is_uppercase() && !before.is_uppercase() {
                    add(&part[start..*at]);
                    start = *at;
                }
            }
            if start > 0 {
                add(&part[start..]);
            }
        }
    }
    found
}
