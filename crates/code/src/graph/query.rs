//! Finding nodes by words: the query language of planners, and the index that answers it.
//!
//! Spec of the repair study, section 3.5. A query is words and any of `symbol:NAME`, `path:PART`,
//! `+MUST`, `-NOT` and `"a phrase"`.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{Graph, NodeKind, NodeRef};

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

/// A node that a query found, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub node: NodeRef,
    pub score: f64,
    /// `symbol:parse`, `path:http`, `word:header`, …
    pub reasons: Vec<String>,
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

    /// The same words without what they must or must not be: what is asked when nothing was found.
    pub fn relaxed(&self) -> Self {
        let loose = [&self.symbols, &self.paths, &self.must, &self.phrases];
        let mut query = Self {
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

/// What a query is answered from. Made of one state of a graph.
#[derive(Debug, Default)]
pub struct Index {
    entries: Vec<Entry>,
    /// Entries by each word of name, path, signature and documentation.
    postings: FxHashMap<String, Vec<u32>>,
    by_name: FxHashMap<String, Vec<u32>>,
}

#[derive(Debug)]
struct Entry {
    node: NodeRef,
    kind: NodeKind,
    /// Lowercase.
    name: String,
    path: String,
    text: String,
}

/// How weak a match may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    Strict,
    Relaxed,
}

impl Index {
    pub fn new(graph: &Graph) -> Self {
        let mut index = Self::default();
        for node in graph.nodes() {
            let kind = graph.kind(node);
            if matches!(kind, NodeKind::Repository | NodeKind::Package) {
                continue;
            }
            let described = graph.node(node);
            let text =
                format!("{} {}", described.signature, described.documentation).to_lowercase();
            let place = index.entries.len() as u32;
            let said = format!(
                "{} {} {} {}",
                described.name, described.path, described.signature, described.documentation
            );
            for word in words(&said) {
                index.postings.entry(word).or_default().push(place);
            }
            let name = described.name.to_lowercase();
            index.by_name.entry(name.clone()).or_default().push(place);
            index.entries.push(Entry {
                node,
                kind,
                name,
                path: described.path.to_lowercase(),
                text,
            });
        }
        index
    }

    /// The best `limit` nodes, best first, with as many files among them as there are. When nothing
    /// is found the query is relaxed once; second, whether it was.
    pub fn search(&self, query: &Query, limit: usize) -> (Vec<Hit>, bool) {
        let strict = self.hits(query, Strictness::Strict);
        let (mut hits, relaxed) = match strict.is_empty() {
            false => (strict, false),
            true => (self.hits(&query.relaxed(), Strictness::Relaxed), true),
        };
        hits.sort_by(|one, other| {
            let by_score = other.score.total_cmp(&one.score);
            by_score.then_with(|| one.node.cmp(&other.node))
        });
        (self.by_folders(hits, limit), relaxed)
    }

    fn hits(&self, query: &Query, strictness: Strictness) -> Vec<Hit> {
        let (exact, partial, path_score) = match strictness {
            Strictness::Strict => (8.0, 4.0, 7.0),
            Strictness::Relaxed => (6.0, 2.5, 4.0),
        };
        let mut found: FxHashMap<u32, (f64, Vec<String>)> = FxHashMap::default();
        let mut add = |place: u32, score: f64, reason: String| {
            let entry = found.entry(place).or_default();
            entry.0 += score;
            entry.1.push(reason);
        };
        for symbol in &query.symbols {
            let name = symbol.rsplit(['.', ':']).next().unwrap_or(symbol);
            for place in self.by_name.get(name).into_iter().flatten() {
                add(*place, exact, format!("symbol:{symbol}"));
            }
            for (known, places) in &self.by_name {
                if known.contains(name) && known != name {
                    for place in places {
                        add(*place, partial, format!("symbol:{symbol}"));
                    }
                }
            }
        }
        for path in &query.paths {
            for (place, entry) in (0u32..).zip(&self.entries) {
                if entry.path.contains(path.as_str()) {
                    add(place, path_score, format!("path:{path}"));
                }
            }
        }
        for phrase in &query.phrases {
            for (place, entry) in (0u32..).zip(&self.entries) {
                if entry.text.contains(phrase.as_str()) || entry.name.contains(phrase.as_str()) {
                    add(place, 4.0, format!("phrase:{phrase}"));
                }
            }
        }
        for must in &query.must {
            for place in self.postings.get(must.as_str()).into_iter().flatten() {
                add(*place, 1.0, format!("must:{must}"));
            }
        }
        self.score_words(query, &mut add);
        let keeps = |entry: &Entry| {
            let has = |part: &String| {
                entry.name.contains(part.as_str())
                    || entry.path.contains(part.as_str())
                    || entry.text.contains(part.as_str())
            };
            query.must.iter().all(has) && !query.not.iter().any(has)
        };
        let hits = found.into_iter().filter_map(|(place, (score, reasons))| {
            let entry = &self.entries[place as usize];
            keeps(entry).then(|| Hit {
                node: entry.node,
                score: score + kind_bonus(entry.kind),
                reasons,
            })
        });
        hits.collect()
    }

    /// Words weigh by how rare they are. A query of words alone needs one that tells something.
    fn score_words(&self, query: &Query, add: &mut impl FnMut(u32, f64, String)) {
        let nodes = self.entries.len() as f64;
        let frequency = |word: &String| self.postings.get(word.as_str()).map_or(0, Vec::len);
        let others = [&query.symbols, &query.paths, &query.must, &query.phrases];
        let words_alone = others.into_iter().all(|parts| parts.is_empty());
        let is_strong = |word: &String| {
            let frequency = frequency(word);
            frequency > 0 && (is_specific(word) || frequency as f64 <= (nodes * 0.02).max(3.0))
        };
        let any_strong = query.words.iter().any(is_strong);
        for word in &query.words {
            let places = self.postings.get(word.as_str()).into_iter().flatten();
            let frequency = frequency(word) as f64;
            let specificity = f64::from(u8::from(is_specific(word)));
            let mut weight =
                ((1.0 + specificity) * ((nodes + 1.0) / (frequency + 1.0)).ln()).clamp(0.05, 6.0);
            if frequency >= nodes * 0.1 {
                weight *= 0.3;
            }
            for place in places {
                let entry = &self.entries[*place as usize];
                let in_name =
                    entry.name.contains(word.as_str()) || entry.path.contains(word.as_str());
                // One weak word means what is called so, not what mentions it.
                if words_alone && !any_strong && !in_name {
                    continue;
                }
                let nearness = if entry.name == *word {
                    1.5
                } else if in_name {
                    1.0
                } else {
                    0.6
                };
                add(*place, weight * nearness, format!("word:{word}"));
            }
        }
    }

    /// Takes from each folder in turn, the best first.
    fn by_folders(&self, hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
        let paths: BTreeMap<NodeRef, &str> = match hits.len() {
            0 => return hits,
            _ => {
                let wanted: BTreeSet<NodeRef> = hits.iter().map(|hit| hit.node).collect();
                let entries = self
                    .entries
                    .iter()
                    .filter(|entry| wanted.contains(&entry.node));
                entries
                    .map(|entry| (entry.node, entry.path.as_str()))
                    .collect()
            }
        };
        let mut seen: FxHashMap<&str, usize> = FxHashMap::default();
        let mut ranked: Vec<(usize, Hit)> = hits
            .into_iter()
            .map(|hit| {
                let path = paths.get(&hit.node).copied().unwrap_or_default();
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let turn = seen.entry(folder).or_default();
                *turn += 1;
                (*turn, hit)
            })
            .collect();
        // Neighbours of a turn keep their order; three of a folder go before others' first weak ones.
        ranked.sort_by_key(|(turn, _)| turn.div_ceil(3));
        let hits = ranked.into_iter().map(|(_, hit)| hit);
        hits.take(limit).collect()
    }
}

/// Written like a name of a program: with an underscore, a digit or more than ten letters.
fn is_specific(word: &str) -> bool {
    word.contains('_') || word.len() > 10 || word.chars().any(|c| c.is_ascii_digit())
}

fn kind_bonus(kind: NodeKind) -> f64 {
    match kind {
        NodeKind::Function | NodeKind::Class => 0.25,
        NodeKind::File | NodeKind::TestFile => 0.05,
        _ => 0.0,
    }
}
