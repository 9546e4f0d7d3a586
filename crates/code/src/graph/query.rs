//! Finding nodes by words: the query language of planners, and the index that answers it.
//!
//! Spec of the repair study, section 3.5. A query is words and any of `symbol:NAME`, `path:PART`,
//! `+MUST`, `-NOT` and `"a phrase"`.

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;

use super::{FileIndex, NodeRef, candidates::folder, haystack::Haystack};

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
pub struct Hit<N = NodeRef> {
    pub node: N,
    pub score: f64,
    /// `symbol:parse`, `path:http`, `word:header`, …
    pub reasons: Vec<String>,
}

/// Hits that are ranked; what scores less has no turn.
const RANKED: usize = 1024;

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

/// What a query is answered from. Made of one state of a graph, whose nodes `N` stands for.
#[derive(Debug)]
pub struct Index<N = NodeRef> {
    pub(super) entries: Vec<Entry<N>>,
    /// By entry, what its kind scores.
    pub(super) bonuses: Vec<f64>,
    /// By entry, a place among the paths.
    pub(super) files: Vec<FileIndex>,
    /// By entry, a place among the names.
    pub(super) called: Vec<u32>,
    /// Lowercase, by file.
    pub(super) paths: Vec<String>,
    /// Places among the postings: entries by each word of name, path, signature and documentation.
    pub(super) vocabulary: FxHashMap<String, u32>,
    pub(super) postings: Vec<Vec<u32>>,
    /// Lowercase, each once.
    pub(super) names: Haystack,
    /// By entry, its signature and documentation; lowercase.
    pub(super) texts: Haystack,
    /// By file, the same as `paths`.
    pub(super) path_texts: Haystack,
}

#[derive(Debug)]
pub(super) struct Entry<N> {
    pub(super) node: N,
    /// Lowercase, of what it stands in.
    pub(super) owner: String,
}

/// How weak a match may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    Strict,
    Relaxed,
}

/// Scores of entries, and which parts of the query gave them.
struct Scores {
    by_entry: Vec<(f64, u64)>,
    touched: Vec<u32>,
    /// Fewer than the bits of a mark: the caps of a query see to that.
    reasons: Vec<String>,
}

impl Scores {
    fn reason(&mut self, reason: String) -> u64 {
        self.reasons.push(reason);
        1 << (self.reasons.len() - 1).min(63)
    }

    fn add(&mut self, place: u32, score: f64, reason: u64) {
        let entry = &mut self.by_entry[place as usize];
        if entry.1 == 0 {
            self.touched.push(place);
        }
        entry.0 += score;
        entry.1 |= reason;
    }
}

/// An entry with its score.
#[derive(Clone, Copy)]
struct Found {
    place: u32,
    score: f64,
    reasons: u64,
}

impl<N: Clone> Index<N> {
    fn places(&self, word: &str) -> &[u32] {
        let known = self.vocabulary.get(word);
        known.map_or(&[], |known| &self.postings[*known as usize])
    }

    fn name(&self, place: u32) -> &str {
        self.names.piece(self.called[place as usize])
    }

    /// The best `limit` nodes: each folder has its turn, three nodes at a time, best first. When nothing
    /// is found the query is relaxed once; second, whether it was.
    pub fn search(&self, query: &Query, limit: usize) -> (Vec<Hit<N>>, bool) {
        let (strict, reasons) = self.found(query, Strictness::Strict);
        if !strict.is_empty() {
            return (self.hits(strict, &reasons, limit), false);
        }
        let (relaxed, reasons) = self.found(&query.relaxed(), Strictness::Relaxed);
        (self.hits(relaxed, &reasons, limit), true)
    }

    fn found(&self, query: &Query, strictness: Strictness) -> (Vec<Found>, Vec<String>) {
        let (exact, partial, path_score) = match strictness {
            Strictness::Strict => (8.0, 4.0, 7.0),
            Strictness::Relaxed => (6.0, 2.5, 4.0),
        };
        let mut scores = Scores {
            by_entry: vec![(0.0, 0); self.entries.len()],
            touched: Vec::new(),
            reasons: Vec::new(),
        };
        for symbol in &query.symbols {
            let name = symbol.rsplit(['.', ':']).next().unwrap_or(symbol);
            let reason = scores.reason(format!("symbol:{symbol}"));
            // Nothing scores nothing.
            let mut by_name = vec![0.0; self.names.len()];
            for known in self.names.pieces_with(name) {
                let is_it = self.names.piece(known).len() == name.len();
                by_name[known as usize] = if is_it { exact } else { partial };
            }
            // In the order of the entries, which is that of memory.
            for (place, called) in (0u32..).zip(&self.called) {
                let score = by_name[*called as usize];
                if score > 0.0 {
                    scores.add(place, score, reason);
                }
            }
        }
        for path in &query.paths {
            let reason = scores.reason(format!("path:{path}"));
            let has_it = self.path_texts.marked(path);
            for (place, file) in (0u32..).zip(&self.files) {
                if has_it[*file as usize] {
                    scores.add(place, path_score, reason);
                }
            }
        }
        for phrase in &query.phrases {
            let reason = scores.reason(format!("phrase:{phrase}"));
            let (in_name, in_text) = (self.names.marked(phrase), self.texts.marked(phrase));
            for ((place, called), in_text) in (0u32..).zip(&self.called).zip(in_text) {
                if in_text || in_name[*called as usize] {
                    scores.add(place, 4.0, reason);
                }
            }
        }
        for must in &query.must {
            let reason = scores.reason(format!("must:{must}"));
            for place in self.places(must) {
                scores.add(*place, 0.0, reason);
            }
        }
        self.score_words(query, &mut scores);
        let asked = scores.touched.len();
        let [musts, nots]: [Vec<Mention>; 2] = [&query.must, &query.not].map(|words| {
            let found = words.iter().map(|word| self.mention(word, asked));
            found.collect()
        });
        for must in &musts {
            scores.touched.retain(|place| must.is_in(self, *place));
        }
        for not in &nots {
            scores.touched.retain(|place| !not.is_in(self, *place));
        }
        let found = scores.touched.iter().map(|place| {
            let (score, reasons) = scores.by_entry[*place as usize];
            Found {
                place: *place,
                score: score + self.bonuses[*place as usize],
                reasons,
            }
        });
        (found.collect(), scores.reasons)
    }

    /// Where a word is, for somebody who asks about so many entries.
    fn mention<'a>(&self, word: &'a str, asked: usize) -> Mention<'a> {
        /// Looking through a few texts one by one is faster than through all of them in a row.
        const FEW: usize = 8;
        let is_much = asked > self.entries.len() / FEW;
        let (names, paths) = (self.names.marked(word), self.path_texts.marked(word));
        let anywhere = is_much.then(|| {
            let mut marked = self.texts.marked(word);
            let places = marked.iter_mut().zip(&self.called).zip(&self.files);
            for ((marked, called), file) in places {
                *marked |= names[*called as usize] | paths[*file as usize];
            }
            marked
        });
        Mention {
            names,
            paths,
            anywhere,
            finder: Finder::new(word),
        }
    }

    /// Words weigh by how rare they are. A query of words alone needs one that tells something.
    fn score_words(&self, query: &Query, scores: &mut Scores) {
        let nodes = self.entries.len() as f64;
        let frequency = |word: &String| self.places(word).len();
        let others = [&query.symbols, &query.paths, &query.must, &query.phrases];
        let words_alone = others.into_iter().all(|parts| parts.is_empty());
        let is_strong = |word: &String| {
            let frequency = frequency(word);
            frequency > 0 && (is_specific(word) || frequency as f64 <= (nodes * 0.02).max(3.0))
        };
        let any_strong = query.words.iter().any(is_strong);
        // The rarest first: once there is plenty to rank, what the commonest words alone would add could
        // only come last.
        let mut by_frequency: Vec<&String> = query.words.iter().collect();
        by_frequency.sort_by_key(|word| frequency(word));
        for word in by_frequency {
            let frequency = frequency(word) as f64;
            let is_common = frequency >= nodes * 0.1;
            let specificity = f64::from(u8::from(is_specific(word)));
            let mut weight =
                ((1.0 + specificity) * ((nodes + 1.0) / (frequency + 1.0)).ln()).clamp(0.05, 6.0);
            if is_common {
                weight *= 0.3;
            }
            let is_enough = is_common && scores.touched.len() >= RANKED;
            let reason = scores.reason(format!("word:{word}"));
            // One weak word means what is called so, not what mentions it.
            let called = (words_alone && !any_strong).then(|| self.mention(word, 0));
            for place in self.places(word) {
                if is_enough && scores.by_entry[*place as usize].1 == 0 {
                    continue;
                }
                let is_meant = |called: &Mention| called.is_called(self, *place);
                if !called.as_ref().is_none_or(is_meant) {
                    continue;
                }
                scores.add(*place, weight, reason);
            }
        }
    }

    fn hits(&self, mut found: Vec<Found>, reasons: &[String], limit: usize) -> Vec<Hit<N>> {
        let by_score = |one: &Found, two: &Found| {
            let by_score = two.score.total_cmp(&one.score);
            by_score.then_with(|| one.place.cmp(&two.place))
        };
        if found.len() > RANKED.max(limit) {
            found.select_nth_unstable_by(RANKED.max(limit), by_score);
            found.truncate(RANKED.max(limit));
        }
        // Of equal scores what is named in the query comes before what mentions it.
        let asked: Vec<(&str, &str)> = reasons.iter().map(|reason| named(reason)).collect();
        let named = |found: &Found| {
            let entry = &self.entries[found.place as usize];
            let own = (0..)
                .zip(&asked)
                .filter(|(bit, _)| found.reasons >> *bit & 1 == 1);
            let count = |(owner, name): &(&str, &str)| {
                let is_named = self.name(found.place) == *name;
                let is_owned = !owner.is_empty() && entry.owner == *owner;
                usize::from(is_named) + usize::from(is_named && is_owned)
            };
            own.map(|(_, asked)| count(asked)).sum::<usize>()
        };
        let mut found: Vec<(usize, Found)> = found.iter().map(|it| (named(it), *it)).collect();
        found.sort_unstable_by(|(named_one, one), (named_two, two)| {
            let by_score = two.score.total_cmp(&one.score);
            by_score
                .then_with(|| named_two.cmp(named_one))
                .then_with(|| one.place.cmp(&two.place))
        });
        let found = found.into_iter().map(|(_, found)| found);
        let mut seen: FxHashMap<&str, usize> = FxHashMap::default();
        let mut ranked: Vec<(usize, Found)> = found
            .map(|found| {
                let file = self.files[found.place as usize];
                let turn = seen.entry(folder(&self.paths[file as usize])).or_default();
                *turn += 1;
                (*turn, found)
            })
            .collect();
        // Neighbours of a turn keep their order.
        ranked.sort_by_key(|(turn, _)| turn.div_ceil(3));
        let hits = ranked.into_iter().take(limit).map(|(_, found)| {
            let own = (0..)
                .zip(reasons)
                .filter(|(bit, _)| found.reasons >> *bit & 1 == 1);
            Hit {
                node: self.entries[found.place as usize].node.clone(),
                score: found.score,
                reasons: own.map(|(_, reason)| reason.clone()).collect(),
            }
        });
        hits.collect()
    }
}

/// A word, and where it is.
struct Mention<'a> {
    /// By name, and by file.
    names: Vec<bool>,
    paths: Vec<bool>,
    /// By entry, in name, path or text, where that was found out for all of them.
    anywhere: Option<Vec<bool>>,
    finder: Finder<'a>,
}

impl Mention<'_> {
    /// In its name or its path.
    fn is_called<N>(&self, index: &Index<N>, place: u32) -> bool {
        let (called, file) = (index.called[place as usize], index.files[place as usize]);
        self.names[called as usize] || self.paths[file as usize]
    }

    fn is_in<N: Clone>(&self, index: &Index<N>, place: u32) -> bool {
        if let Some(anywhere) = &self.anywhere {
            return anywhere[place as usize];
        }
        let text = index.texts.piece(place).as_bytes();
        self.is_called(index, place) || self.finder.find(text).is_some()
    }
}

/// The name that a part of a query asks for, and before it that of what it stands in.
fn named(reason: &str) -> (&str, &str) {
    let asked = reason.split_once(':').map_or("", |(_, asked)| asked);
    let (owner, name) = asked.rsplit_once(['.', ':']).unwrap_or(("", asked));
    (owner.rsplit(['.', ':']).next().unwrap_or(owner), name)
}

/// Written like a name of a program: with an underscore, a digit or more than ten letters.
fn is_specific(word: &str) -> bool {
    word.contains('_') || word.len() > 10 || word.chars().any(|c| c.is_ascii_digit())
}
