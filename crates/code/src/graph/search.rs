//! The index that answers queries: which nodes a query finds, and how well each fits.
//!
//! Spec of the repair study, section 3.5.

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;

use super::{FileIndex, NodeRef, Query, candidates::folder, haystack::Haystack};

/// A node that a query found, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit<N = NodeRef> {
    pub node: N,
    pub score: f64,
    /// `symbol:parse`, `path:http`, `word:header`, …
    pub reasons: Vec<String>,
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
    /// By entry, a place among the texts.
    pub(super) said: Vec<u32>,
    /// Name, signature and documentation; lowercase, each once.
    pub(super) texts: Haystack,
    /// By file, the same as `paths`.
    pub(super) path_texts: Haystack,
}

/// Hits that are ranked; what scores less has no turn.
const RANKED: usize = 1024;

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

/// What something scores, and a bit for each part of the query that gave it.
#[derive(Clone, Copy, Default)]
struct Score {
    score: f64,
    reasons: u64,
}

impl Score {
    fn add(&mut self, score: f64, reasons: u64) {
        self.score += score;
        self.reasons |= reasons;
    }
}

/// Scores of entries, and which parts of the query gave them.
struct Scores {
    by_entry: Vec<Score>,
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
        if entry.reasons == 0 {
            self.touched.push(place);
        }
        entry.add(score, reason);
    }

    /// Adds to each entry what is known of what it has, `of_entries` telling which that is.
    fn add_known(&mut self, known: &[Score], of_entries: &[u32]) {
        for (place, number) in (0..).zip(of_entries) {
            let Score { score, reasons } = known[*number as usize];
            if reasons != 0 {
                self.add(place, score, reasons);
            }
        }
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
            by_entry: vec![Score::default(); self.entries.len()],
            touched: Vec::new(),
            reasons: Vec::new(),
        };
        let mut by_name = vec![Score::default(); self.names.len()];
        for symbol in &query.symbols {
            let name = symbol.rsplit(['.', ':']).next().unwrap_or(symbol);
            let reason = scores.reason(format!("symbol:{symbol}"));
            self.names.each_with(name, |known| {
                let is_it = self.names.piece(known).len() == name.len();
                by_name[known as usize].add(if is_it { exact } else { partial }, reason);
            });
        }
        let mut by_path = vec![Score::default(); self.path_texts.len()];
        for path in &query.paths {
            let reason = scores.reason(format!("path:{path}"));
            let of_path = |known| by_path[known as usize].add(path_score, reason);
            self.path_texts.each_with(path, of_path);
        }
        let mut by_text = vec![Score::default(); self.texts.len()];
        for phrase in &query.phrases {
            let reason = scores.reason(format!("phrase:{phrase}"));
            let of_text = |known| by_text[known as usize].add(4.0, reason);
            self.texts.each_with(phrase, of_text);
        }
        for (is_asked, known, of_entries) in [
            (!query.symbols.is_empty(), &by_name, &self.called),
            (!query.paths.is_empty(), &by_path, &self.files),
            (!query.phrases.is_empty(), &by_text, &self.said),
        ] {
            if is_asked {
                scores.add_known(known, of_entries);
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
            let Score { score, reasons } = scores.by_entry[*place as usize];
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
        Mention {
            paths: self.path_texts.marked(word),
            texts: is_much.then(|| self.texts.marked(word)),
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
            let called = (words_alone && !any_strong)
                .then(|| (self.names.marked(word), self.path_texts.marked(word)));
            for place in self.places(word) {
                if is_enough && scores.by_entry[*place as usize].reasons == 0 {
                    continue;
                }
                let is_meant = |(names, paths): &(Vec<bool>, Vec<bool>)| {
                    let (called, file) =
                        (self.called[*place as usize], self.files[*place as usize]);
                    names[called as usize] || paths[file as usize]
                };
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
    /// By file.
    paths: Vec<bool>,
    /// By text, where that was found out for all of them.
    texts: Option<Vec<bool>>,
    finder: Finder<'a>,
}

impl Mention<'_> {
    /// In the entry's name, path or text.
    fn is_in<N>(&self, index: &Index<N>, place: u32) -> bool {
        let (said, file) = (index.said[place as usize], index.files[place as usize]);
        let is_in_text = || match &self.texts {
            Some(texts) => texts[said as usize],
            None => self
                .finder
                .find(index.texts.piece(said).as_bytes())
                .is_some(),
        };
        self.paths[file as usize] || is_in_text()
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
