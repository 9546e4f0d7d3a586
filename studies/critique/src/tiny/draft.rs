//! Drawing drafts: a function, a right or wrong program for it, and the hidden test calls.

use std::collections::HashSet;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use record::Seed;
use serde::{Deserialize, Serialize};

use super::arguments::Call;
use super::families::{Family, TaskSet};
use super::function::{Bug, Choices, Function};

/// Hidden test calls per function.
pub const N_CALLS: usize = 20;
/// Hidden test inputs per program: each is a run of its own.
pub const N_INPUTS: usize = 8;

/// Which functions a draft may use. No function is in both, for any seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    Train,
    HeldOut,
}

impl Split {
    /// The split of the function `spec`: held out are the specs whose BLAKE3 hash leaves a remainder
    /// below 20 modulo 100.
    ///
    /// A wrong fragment is a bug of one function, so disjoint functions make disjoint bugs.
    pub fn of(spec: &str) -> Self {
        let mut first = [0; 8];
        first.copy_from_slice(&blake3::hash(spec.as_bytes()).as_bytes()[..8]);
        if u64::from_le_bytes(first) % 100 < 20 {
            Self::HeldOut
        } else {
            Self::Train
        }
    }

    /// The name that task names and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::HeldOut => "held-out",
        }
    }
}

/// A task that nobody has run yet: the right program must still give the expected outputs, and a
/// wrong program that gives the same ones (a harmless bug) must be thrown away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Draft {
    pub split: Split,
    /// Its place in the stream it was drawn from.
    pub index: u64,
    pub function: Function,
    /// What the program under criticism holds: all right, or one slot wrong.
    pub choices: Choices,
    /// Arguments of the hidden test calls of `f`.
    pub calls: Vec<Call>,
}

/// The one slot in which a draft's program is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planted<'a> {
    pub slot: usize,
    pub fragment: &'a str,
    pub right: &'a str,
    pub bug: Bug,
}

impl Draft {
    /// Whether its programs read standard input.
    pub fn reads_stdin(&self) -> bool {
        TaskSet::Programs.families().contains(&self.function.family)
    }

    /// The program under criticism.
    pub fn program(&self) -> String {
        self.function.program(&self.choices)
    }

    /// The bug in it; none when the program is right.
    pub fn planted(&self) -> Option<Planted<'_>> {
        let slot = self.choices.wrong_slots().next()?;
        let holds = &self.function.slots[slot];
        let wrong = &holds.wrong[self.choices.0[slot] - 1];
        Some(Planted {
            slot,
            fragment: &wrong.fragment,
            right: &holds.right,
            bug: wrong.bug,
        })
    }

    /// A name made from the content: the same name always means the same task, whatever the seed.
    pub fn name(&self) -> String {
        let content = format!(
            "{}\n{}\n{:?}",
            self.function.statement,
            self.program(),
            self.calls
        );
        let hash = blake3::hash(content.as_bytes()).to_hex();
        format!(
            "{}-{}-{}",
            self.split.name(),
            self.function.family,
            &hash[..12]
        )
    }
}

/// Draft `index` of a split, independent of all other indices; two indices may give the same draft.
///
/// `share_right` in [0, 1] is the chance that the program is right.
pub fn draft(set: TaskSet, seed: Seed, split: Split, index: u64, share_right: f64) -> Draft {
    Plan::of(set, seed, split, index, share_right).draft(0)
}

/// The drafts of a split in order of index, without repeating a statement with the same program.
///
/// An index whose draft came before is drawn anew with the same family and the same rightness; an
/// index that stays a repetition (its family has no more such drafts) is skipped. The stream ends
/// after a long run of skipped indices: the split is then exhausted.
///
/// Of functions there are about 3,500 right and 30,000 wrong drafts to train on and 1,200 and 6,500 held-out ones.
/// The mix of families and the share of right programs hold as long as their drafts last: up to some
/// 3,000 drafts to train on and 1,000 held-out ones. For supervised rows, where repetitions do no
/// harm, [`draft`] keeps the mix at any number.
pub fn drafts(set: TaskSet, seed: Seed, split: Split, share_right: f64) -> Drafts {
    Drafts {
        set,
        seed,
        split,
        share_right,
        next: 0,
        seen: HashSet::new(),
    }
}

/// See [`drafts`].
#[derive(Clone, Debug)]
pub struct Drafts {
    set: TaskSet,
    seed: Seed,
    split: Split,
    share_right: f64,
    next: u64,
    seen: HashSet<[u8; 32]>,
}

impl Drafts {
    pub fn split(&self) -> Split {
        self.split
    }

    const ATTEMPTS: u64 = 24;
    const SKIPS: usize = 64;
}

impl Iterator for Drafts {
    type Item = Draft;

    fn next(&mut self) -> Option<Draft> {
        for _ in 0..Self::SKIPS {
            let plan = Plan::of(self.set, self.seed, self.split, self.next, self.share_right);
            self.next += 1;
            for attempt in 0..Self::ATTEMPTS {
                let (function, choices) = plan.problem(attempt);
                let shown = format!("{}\n\n{}", function.statement, function.program(&choices));
                if self.seen.insert(*blake3::hash(shown.as_bytes()).as_bytes()) {
                    return Some(plan.with_calls(function, choices, attempt));
                }
            }
        }
        None
    }
}

/// What an index fixes before any part of the function is drawn, so that redrawing a repetition
/// shifts neither the mix of families nor the share of right programs.
struct Plan {
    set: TaskSet,
    stream: Seed,
    split: Split,
    index: u64,
    family: Family,
    right: bool,
}

impl Plan {
    fn of(set: TaskSet, seed: Seed, split: Split, index: u64, share_right: f64) -> Self {
        let world = match set {
            TaskSet::Functions => "tiny",
            TaskSet::Programs => "tiny-programs",
        };
        let stream = seed.stream(world, 0).stream(split.name(), index);
        let mut rng = stream.rng();
        let families = set.families();
        let family = families[rng.random_range(0..families.len())];
        let right = rng.random_bool(share_right.clamp(0.0, 1.0));
        Self {
            set,
            stream,
            split,
            index,
            family,
            right,
        }
    }

    fn draft(&self, attempt: u64) -> Draft {
        let (function, choices) = self.problem(attempt);
        self.with_calls(function, choices, attempt)
    }

    fn problem(&self, attempt: u64) -> (Function, Choices) {
        let mut rng = self.stream.stream("attempt", attempt).rng();
        let function = self.function(&mut rng);
        let mut choices = function.right();
        if !self.right {
            let slot = rng.random_range(0..function.slots.len());
            choices = choices.with(slot, rng.random_range(1..function.slots[slot].n_choices()));
        }
        (function, choices)
    }

    fn with_calls(&self, function: Function, choices: Choices, attempt: u64) -> Draft {
        let n = match self.set {
            TaskSet::Functions => N_CALLS,
            TaskSet::Programs => N_INPUTS,
        };
        let calls = function
            .arguments
            .calls(n, &mut self.stream.stream("calls", attempt).rng());
        Draft {
            split: self.split,
            index: self.index,
            function,
            choices,
            calls,
        }
    }

    fn function(&self, rng: &mut ChaCha8Rng) -> Function {
        // Every family has functions in both splits (tested), so a few draws suffice.
        loop {
            let function = self.family.draw(rng);
            if Split::of(&function.spec) == self.split {
                return function;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const SEED: Seed = Seed(3);

    fn some(split: Split, n: usize) -> Vec<Draft> {
        drafts(TaskSet::Functions, SEED, split, 0.3)
            .take(n)
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_drafts_and_another_seed_others() {
        assert_eq!(some(Split::Train, 50), some(Split::Train, 50));
        assert_eq!(
            draft(TaskSet::Functions, SEED, Split::Train, 7, 0.3),
            draft(TaskSet::Functions, SEED, Split::Train, 7, 0.3)
        );
        let other: Vec<_> = drafts(TaskSet::Functions, Seed(4), Split::Train, 0.3)
            .take(50)
            .collect();
        assert_ne!(some(Split::Train, 50), other);
    }

    #[test]
    fn a_statement_has_one_spec_and_a_spec_has_one_split() {
        let mut specs = BTreeMap::new();
        for split in [Split::Train, Split::HeldOut] {
            for draft in some(split, 2_000) {
                assert_eq!(Split::of(&draft.function.spec), split);
                let statement = draft.function.statement.clone();
                let spec = specs
                    .entry(statement)
                    .or_insert_with(|| draft.function.spec.clone());
                assert_eq!(*spec, draft.function.spec);
            }
        }
    }

    #[test]
    fn no_set_repeats_a_draft_and_the_splits_share_no_statement_and_no_bug() {
        let mut shown = Vec::new();
        let mut bugs = Vec::new();
        for split in [Split::Train, Split::HeldOut] {
            let drafts = some(split, 2_000);
            let programs: BTreeSet<_> = drafts
                .iter()
                .map(|d| (d.function.statement.clone(), d.program()))
                .collect();
            assert_eq!(programs.len(), drafts.len());
            let statements: BTreeSet<_> = drafts
                .iter()
                .map(|d| d.function.statement.clone())
                .collect();
            shown.push(statements);
            let planted: BTreeSet<_> = drafts
                .iter()
                .filter_map(|d| {
                    let planted = d.planted()?;
                    Some((
                        d.function.spec.clone(),
                        planted.slot,
                        planted.fragment.to_owned(),
                    ))
                })
                .collect();
            bugs.push(planted);
        }
        assert!(shown[0].is_disjoint(&shown[1]));
        assert!(bugs[0].is_disjoint(&bugs[1]));
    }

    #[test]
    fn the_mix_of_families_and_of_right_programs_is_as_asked() {
        for split in [Split::Train, Split::HeldOut] {
            let drafts = some(split, 900);
            let right = drafts.iter().filter(|d| d.planted().is_none()).count();
            assert!((230..310).contains(&right), "{right} right of 900");
            for family in Family::FUNCTIONS {
                let n = drafts
                    .iter()
                    .filter(|d| d.function.family == family)
                    .count();
                assert!((70..130).contains(&n), "{n} of {family} in {split:?}");
            }
        }
        assert!(
            drafts(TaskSet::Functions, SEED, Split::Train, 0.0)
                .take(50)
                .all(|d| d.planted().is_some())
        );
        assert!(
            drafts(TaskSet::Functions, SEED, Split::Train, 1.0)
                .take(50)
                .all(|d| d.planted().is_none())
        );
    }

    #[test]
    fn programs_are_a_world_of_their_own_with_enough_to_draw() {
        for (split, n) in [(Split::Train, 3_000), (Split::HeldOut, 1_000)] {
            let drafts: Vec<Draft> = drafts(TaskSet::Programs, SEED, split, 0.3)
                .take(n)
                .collect();
            assert_eq!(drafts.len(), n);
            for draft in &drafts {
                assert!(draft.reads_stdin() && draft.calls.len() == N_INPUTS);
                assert_eq!(Split::of(&draft.function.spec), split);
            }
            for family in Family::PROGRAMS {
                let of_family = |one: &&Draft| one.function.family == family;
                let found = drafts.iter().filter(of_family).count();
                assert!(found * 10 > n, "{found} of {family} in {split:?}");
            }
        }
    }

    #[test]
    fn an_exhausted_split_ends_the_stream() {
        let n = drafts(TaskSet::Functions, SEED, Split::HeldOut, 1.0).count();
        assert!((300..3_000).contains(&n), "{n} held-out functions");
    }

    #[test]
    fn a_fifth_of_the_functions_is_held_out_in_every_family() {
        for family in Family::FUNCTIONS {
            let specs: BTreeSet<_> = (0..4_000)
                .map(|index| family.draw(&mut SEED.stream("spec", index).rng()).spec)
                .collect();
            let held = specs
                .iter()
                .filter(|spec| Split::of(spec) == Split::HeldOut)
                .count();
            let share = held as f64 / specs.len() as f64;
            assert!(
                (0.1..0.3).contains(&share),
                "{share} of {} in {family}",
                specs.len()
            );
        }
    }
}
