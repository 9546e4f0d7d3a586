//! Finds the place of a hunk in a file: the only one, compared ever less strictly.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use super::{
    Rejection, Rung,
    hunk::{Hunk, HunkLine, Kind},
    lines::{Ending, Line},
    reject::{Nearest, quoted},
};
use crate::RelativePath;

/// Where a hunk fits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Landing {
    /// Index of the file's line that the first of `used`'s old lines is.
    pub(super) start: usize,
    pub(super) rung: Rung,
    /// The part of the hunk's lines that was compared and counts.
    pub(super) used: std::ops::Range<usize>,
    pub(super) shift: Shift,
}

/// How the file is indented beside the hunk.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shift {
    None,
    Deeper(Vec<u8>),
    Shallower(Vec<u8>),
}

/// Steps left for one patch; keeps hostile patches from taking minutes.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Budget {
    /// About a second.
    pub(super) fn new() -> Self {
        Self(1 << 29)
    }

    pub(super) fn spend(&mut self, path: &RelativePath, steps: usize) -> Result<(), Rejection> {
        match self.0.checked_sub(steps as u64) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(Rejection::Unsupported {
                path: path.clone(),
                detail: "the patch is too large for a file of this size".to_owned(),
            }),
        }
    }
}

/// The places of all `hunks` in the file of `lines`, in the hunks' order.
pub(super) fn locate(
    path: &RelativePath,
    lines: &[Line<'_>],
    hunks: &[Hunk],
    budget: &mut Budget,
) -> Result<Vec<Landing>, Rejection> {
    let mut file = File {
        path,
        lines,
        interned: BTreeMap::new(),
        budget,
    };
    let numbered = (1..).zip(hunks);
    let found: Vec<Found> = numbered
        .map(|(number, hunk)| file.find(number, hunk))
        .collect::<Result<_, _>>()?;
    let drifts: Vec<Option<i64>> = found
        .iter()
        .zip(hunks)
        .map(|(found, hunk)| match found {
            Found::Once(landing) => {
                let stated = hunk.start? + landing.used.start;
                Some(landing.start as i64 - stated as i64)
            }
            Found::Often(_) => None,
        })
        .collect();
    let budget = file.budget;
    let choose = |(at, found): (usize, Found)| match found {
        Found::Once(landing) => Ok(landing),
        Found::Often(hits) => {
            let before = drifts[..at].iter().rev().flatten().next();
            let after = drifts[at..].iter().flatten().next();
            let strict = |place: &usize| fits_the_ends(&hunks[at], *place, lines.len());
            let numbered = match (before, after) {
                (None, None) => by_numbers(hunks[at].start, &hits, Some(&-1), None).filter(strict),
                drifts => by_numbers(hunks[at].start, &hits, drifts.0, drifts.1),
            };
            let heading = &hunks[at].heading;
            if numbered.is_none() && !heading.is_empty() {
                budget.spend(path, 8 * lines.len())?;
            }
            match numbered.or_else(|| by_heading(heading, &hits, lines)) {
                Some(start) => Ok(Landing::of(0..hunks[at].lines.len(), start, Rung::Exact)),
                None => Err(Rejection::Ambiguous {
                    path: path.clone(),
                    hunk: at + 1,
                    looked_for: looked_for(&hunks[at]),
                    lines: hits.iter().take(6).map(|hit| hit + 1).collect(),
                }),
            }
        }
    };
    found.into_iter().enumerate().map(choose).collect()
}

/// The one of several places that the stated number means, when numbers are off by `before` or
/// `after` (and by the one from which they count).
fn by_numbers(
    stated: Option<usize>,
    hits: &[usize],
    before: Option<&i64>,
    after: Option<&i64>,
) -> Option<usize> {
    let stated = stated? as i64;
    let hit = |drift: &i64| {
        let place = usize::try_from(stated + drift).ok()?;
        hits.binary_search(&place).ok().map(|at| hits[at])
    };
    let mut places = [before, after].into_iter().flatten().filter_map(hit);
    let place = places.next()?;
    places.all(|other| other == place).then_some(place)
}

/// Whether a hunk with less context below than above ends where the file of `n_lines` ends, and one
/// with less above begins where it begins, as in every diff that a program made. Where equal lines
/// are at several places, a hunk that does not is not believed to be at its stated line.
fn fits_the_ends(hunk: &Hunk, place: usize, n_lines: usize) -> bool {
    let keeps = |line: &&HunkLine| line.kind == Kind::Keep;
    let above = hunk.lines.iter().take_while(keeps).count();
    let below = hunk.lines.iter().rev().take_while(keeps).count();
    let end = place + hunk.old().count();
    (below >= above || end == n_lines) && (above >= below || place == 0)
}

/// The one of several places that stands below the line of the heading, with nothing between that
/// is indented less.
fn by_heading(heading: &[u8], hits: &[usize], lines: &[Line<'_>]) -> Option<usize> {
    if heading.is_empty() {
        return None;
    }
    let is_heading = |line: &Line<'_>| line.text.trim_ascii() == heading;
    let mut places = (0..lines.len()).filter(|at| is_heading(&lines[*at]));
    let place = places.next().filter(|_| places.next().is_none())?;
    let depth = indentation(lines[place].text).len();
    let outside = |line: &Line<'_>| {
        !line.text.trim_ascii().is_empty() && indentation(line.text).len() <= depth
    };
    let length = lines[place + 1..]
        .iter()
        .take_while(|line| !outside(line))
        .count();
    let mut below = hits
        .iter()
        .filter(|hit| (place + 1..=place + length).contains(hit));
    below.next().copied().filter(|_| below.next().is_none())
}

enum Found {
    Once(Landing),
    /// Byte for byte at several places, in order.
    Often(Vec<usize>),
}

struct File<'a> {
    path: &'a RelativePath,
    lines: &'a [Line<'a>],
    /// By rung, the lines as numbers: equal lines, equal numbers.
    interned: BTreeMap<Rung, Interned<'a>>,
    budget: &'a mut Budget,
}

struct Interned<'a> {
    ids: HashMap<Key<'a>, u32>,
    lines: Vec<u32>,
}

type Key<'a> = (Cow<'a, [u8]>, Ending);

/// In no file.
const ABSENT: u32 = u32::MAX;

impl File<'_> {
    fn find(&mut self, number: usize, hunk: &Hunk) -> Result<Found, Rejection> {
        let whole = 0..hunk.lines.len();
        if hunk.old().next().is_none() {
            if self.lines.is_empty() {
                return Ok(Found::Once(Landing::of(whole, 0, Rung::Exact)));
            }
            return Err(self.reject(
                number,
                "it has no line of the file; give the lines around the change",
            ));
        }
        let exact = self.hits(Rung::Exact, hunk.old())?;
        match exact[..] {
            [] => {}
            [start] => return Ok(Found::Once(Landing::of(whole, start, Rung::Exact))),
            _ => return Ok(Found::Often(exact)),
        }
        let blank = |line: &HunkLine| line.text.trim_ascii().is_empty();
        if hunk.old().all(blank) {
            return Err(self.not_found(number, hunk));
        }
        for rung in [Rung::LineEnds, Rung::Indentation, Rung::Punctuation] {
            let hits = self.hits(rung, hunk.old())?;
            if let Some(landing) = self.only(number, hunk, whole.clone(), rung, &hits)? {
                return Ok(Found::Once(landing));
            }
        }
        if let Some(core) = core(hunk) {
            let rung = Rung::OuterContext;
            let old = hunk.lines[core.clone()].iter();
            let hits = self.hits(rung, old.filter(|line| line.kind != Kind::Add))?;
            if let Some(landing) = self.only(number, hunk, core, rung, &hits)? {
                return Ok(Found::Once(landing));
            }
        }
        Err(self.not_found(number, hunk))
    }

    /// The landing at the only hit; `None` when there is none.
    fn only(
        &self,
        number: usize,
        hunk: &Hunk,
        used: std::ops::Range<usize>,
        rung: Rung,
        hits: &[usize],
    ) -> Result<Option<Landing>, Rejection> {
        let start = match hits {
            [] => return Ok(None),
            [start] => *start,
            _ => {
                return Err(Rejection::Ambiguous {
                    path: self.path.clone(),
                    hunk: number,
                    looked_for: looked_for(hunk),
                    lines: hits.iter().take(6).map(|hit| hit + 1).collect(),
                });
            }
        };
        let mut landing = Landing::of(used, start, rung);
        if matches!(rung, Rung::Indentation | Rung::Punctuation) {
            let Some(shift) = shift(hunk.old(), &self.lines[start..]) else {
                let detail = format!(
                    "its lines are those at line {}, but they are not indented alike",
                    start + 1
                );
                return Err(self.reject(number, &detail));
            };
            landing.shift = shift;
        }
        Ok(Some(landing))
    }

    /// Where the lines are one after the other, in order.
    fn hits<'h>(
        &mut self,
        rung: Rung,
        pattern: impl Iterator<Item = &'h HunkLine>,
    ) -> Result<Vec<usize>, Rejection> {
        self.intern(rung)?;
        let interned = &self.interned[&rung];
        let pattern: Vec<u32> = pattern
            .map(|line| {
                let key = key(rung, &line.text, line.ending);
                interned.ids.get(&key).copied().unwrap_or(ABSENT)
            })
            .collect();
        if pattern.contains(&ABSENT) || pattern.len() > interned.lines.len() {
            return Ok(Vec::new());
        }
        let hits = occurrences(&pattern, &interned.lines);
        self.budget.spend(self.path, self.lines.len())?;
        Ok(hits)
    }

    fn intern(&mut self, rung: Rung) -> Result<(), Rejection> {
        if !self.interned.contains_key(&rung) {
            self.budget.spend(self.path, 8 * self.lines.len())?;
            let mut ids = HashMap::new();
            let mut lines = Vec::with_capacity(self.lines.len());
            for line in self.lines {
                let next = ids.len() as u32;
                lines.push(*ids.entry(key(rung, line.text, line.ending)).or_insert(next));
            }
            self.interned.insert(rung, Interned { ids, lines });
        }
        Ok(())
    }

    /// Says which line of the hunk is missing at the place that has most of them.
    fn not_found(&mut self, number: usize, hunk: &Hunk) -> Rejection {
        let mut rejection = Rejection::NotFound {
            path: self.path.clone(),
            hunk: number,
            looked_for: looked_for(hunk),
            nearest: None,
        };
        let old: Vec<&HunkLine> = hunk.old().collect();
        if self.lines.len().saturating_mul(old.len()) > 1 << 24
            || self
                .budget
                .spend(self.path, self.lines.len() * old.len())
                .is_err()
        {
            return rejection;
        }
        if self.intern(Rung::Indentation).is_err() {
            return rejection;
        }
        let interned = &self.interned[&Rung::Indentation];
        let ids: Vec<u32> = old
            .iter()
            .map(|line| {
                let key = key(Rung::Indentation, &line.text, line.ending);
                let blank = key.0.is_empty();
                let id = interned.ids.get(&key).copied();
                id.filter(|_| !blank).unwrap_or(ABSENT)
            })
            .collect();
        let shared = |start: usize| {
            let pairs = interned.lines[start..].iter().zip(&ids);
            pairs.filter(|(line, id)| line == id).count()
        };
        // Of equal ones the first; `max_by_key` would take the last.
        let places = (0..self.lines.len())
            .rev()
            .map(|start| (shared(start), start));
        let best = places.max_by_key(|(shared, _)| *shared);
        let Some((1.., start)) = best else {
            return rejection;
        };
        let present = |at: usize| {
            let key = key(Rung::Punctuation, &old[at].text, old[at].ending);
            let line = self.lines.get(start + at);
            line.is_some_and(|line| self::key(Rung::Punctuation, line.text, line.ending) == key)
        };
        if let (
            Some(at),
            Rejection::NotFound {
                looked_for,
                nearest,
                ..
            },
        ) = ((0..old.len()).find(|at| !present(*at)), &mut rejection)
        {
            *looked_for = quoted(&old[at].text);
            *nearest = Some(Nearest {
                line: start + at + 1,
                found: self.lines.get(start + at).map(|line| quoted(line.text)),
            });
        }
        rejection
    }

    fn reject(&self, number: usize, detail: &str) -> Rejection {
        Rejection::Hunk {
            path: self.path.clone(),
            hunk: number,
            detail: detail.to_owned(),
        }
    }
}

impl Landing {
    fn of(used: std::ops::Range<usize>, start: usize, rung: Rung) -> Self {
        Self {
            start,
            rung,
            used,
            shift: Shift::None,
        }
    }
}

/// The first line of a hunk that says something.
fn looked_for(hunk: &Hunk) -> String {
    let spoken = hunk.old().find(|line| !line.text.trim_ascii().is_empty());
    spoken.map_or_else(String::new, |line| quoted(&line.text))
}

/// A hunk without its outermost lines of context, when enough is left to go by: two lines of the
/// file, and one beside every added line.
fn core(hunk: &Hunk) -> Option<std::ops::Range<usize>> {
    let kind = |at: usize| hunk.lines.get(at).map(|line| line.kind);
    let mut core = 0..hunk.lines.len();
    if kind(0) == Some(Kind::Keep) && kind(1) != Some(Kind::Add) {
        core.start += 1;
    }
    if core.len() > 1
        && kind(core.end - 1) == Some(Kind::Keep)
        && kind(core.end - 2) != Some(Kind::Add)
    {
        core.end -= 1;
    }
    let lines = &hunk.lines[core.clone()];
    let old = || lines.iter().filter(|line| line.kind != Kind::Add);
    let enough = old().count() >= 2 && old().any(|line| !line.text.trim_ascii().is_empty());
    (core.len() < hunk.lines.len() && enough).then_some(core)
}

/// How `lines` are indented beside the lines of a hunk; `None` when not all alike.
fn shift<'h>(old: impl Iterator<Item = &'h HunkLine>, lines: &[Line<'_>]) -> Option<Shift> {
    let mut whole: Option<Shift> = None;
    for (line, file) in old.zip(lines) {
        let (ours, theirs) = (indentation(&line.text), indentation(file.text));
        if ours.len() == line.text.len() || theirs.len() == file.text.len() {
            continue;
        }
        let one = if ours == theirs {
            Shift::None
        } else if let Some(more) = theirs.strip_suffix(ours) {
            Shift::Deeper(more.to_vec())
        } else {
            Shift::Shallower(ours.strip_suffix(theirs)?.to_vec())
        };
        if whole.get_or_insert_with(|| one.clone()) != &one {
            return None;
        }
    }
    Some(whole.unwrap_or(Shift::None))
}

fn indentation(text: &[u8]) -> &[u8] {
    &text[..text.len() - text.trim_ascii_start().len()]
}

/// What is compared of a line on `rung`.
fn key(rung: Rung, text: &[u8], ending: Ending) -> Key<'_> {
    match rung {
        Rung::Exact => (Cow::Borrowed(text), ending),
        Rung::LineEnds | Rung::OuterContext => (Cow::Borrowed(text.trim_ascii_end()), Ending::Lf),
        Rung::Indentation => (Cow::Borrowed(text.trim_ascii()), Ending::Lf),
        Rung::Punctuation => (folded(text), Ending::Lf),
    }
}

/// Trimmed, with plain quotes, dashes and spaces for typographic ones.
fn folded(text: &[u8]) -> Cow<'_, [u8]> {
    let plain = || Cow::Borrowed(text.trim_ascii());
    if text.is_ascii() {
        return plain();
    }
    let Ok(utf8) = std::str::from_utf8(text) else {
        return plain();
    };
    let fold = |c: char| match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    };
    let text: String = utf8.chars().map(fold).collect();
    Cow::Owned(text.trim().as_bytes().to_vec())
}

/// Every start of `pattern` in `text`, in linear time (Knuth, Morris and Pratt).
fn occurrences(pattern: &[u32], text: &[u32]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for at in 1..pattern.len() {
        while length > 0 && pattern[at] != pattern[length] {
            length = borders[length - 1];
        }
        length += usize::from(pattern[at] == pattern[length]);
        borders[at] = length;
    }
    let mut hits = Vec::new();
    let mut length = 0;
    for (at, id) in text.iter().enumerate() {
        while length > 0 && (length == pattern.len() || *id != pattern[length]) {
            length = borders[length - 1];
        }
        length += usize::from(*id == pattern[length]);
        if length == pattern.len() {
            hits.push(at + 1 - length);
        }
    }
    hits
}
