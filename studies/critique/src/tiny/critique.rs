//! Writing critiques of every quality.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use record::Seed;

use super::draft::Draft;
use super::function::{Choices, Function};
use super::kind::Kind;
use super::wording::{Edit, Suggestion, incomplete_suggestion, write, write_apart};

/// A critique, and what the program becomes when it is followed to the letter: the program as it was
/// when there is nothing to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub text: String,
    pub program: String,
}

/// Writes a critique of the program that `choices` makes.
///
/// Edits stay within the function's own fragments and the analysis marks what they change, unless
/// there is a `stranger`: then one edit in five brings a constant or a fragment that the slot never has,
/// from the other function if need be, and one in twelve comes with an analysis that marks another
/// slot.
pub fn write_critique(
    function: &Function,
    choices: &Choices,
    stranger: Option<&Function>,
    kind: Kind,
    rng: &mut ChaCha8Rng,
) -> Written {
    let subject = Subject {
        function,
        choices,
        held: function.fragments(choices),
        stranger,
    };
    match kind {
        Kind::Good => subject.repaired(),
        Kind::Correct => subject.found_right(),
        Kind::WrongSuggestion => subject.spoiled(rng),
        Kind::Edit if stranger.is_some() && rng.random_range(0..12u32) == 0 => {
            subject.carelessly_edited(rng)
        }
        Kind::Edit => subject.edited_at(1, rng),
        Kind::SeveralEdits => {
            let n = rng.random_range(2..=3);
            subject.edited_at(n, rng)
        }
        Kind::NoOp => {
            let slot = subject.any_slot(rng);
            subject.kept_at(slot)
        }
        Kind::AbsentFragment => {
            let slot = subject.any_slot(rng);
            // Often the fragment that would repair the slot: it must not help.
            let right = rng.random_range(0..3u32) == 0;
            subject.misquoted_at(slot, right, rng)
        }
        Kind::Malformed => subject.malformed(rng),
        Kind::Contradiction => {
            let text = if rng.random_range(0..10u32) < 6 {
                subject
                    .edited_at(1, rng)
                    .text
                    .replace("judgment: Incorrect", "judgment: Correct")
            } else {
                subject
                    .found_right()
                    .text
                    .replace("judgment: Correct", "judgment: Incorrect")
            };
            subject.unchanged(text)
        }
        Kind::Truncated => {
            let whole = subject.edited_at(1, rng).text;
            let cut = rng.random_range(1..whole.len());
            subject.unchanged(whole[..cut].trim_end().to_owned())
        }
        Kind::Empty => subject.unchanged(String::new()),
    }
}

/// The critique of a kind that probes what a reviser does with it. On a wrong program the ones that
/// change nothing point straight at the bug, and the misquoting one names the right fragment: a
/// reviser that repairs the program after them follows the statement, not the critique.
pub fn probe(draft: &Draft, kind: Kind) -> Written {
    let Draft {
        function, choices, ..
    } = draft;
    let mut rng = Seed(draft.index).stream(kind.name(), 0).rng();
    let held = function.fragments(choices);
    let subject = Subject {
        function,
        choices,
        held,
        stranger: None,
    };
    match (kind, draft.planted()) {
        (Kind::NoOp, Some(planted)) => subject.kept_at(planted.slot),
        (Kind::AbsentFragment, Some(planted)) => subject.misquoted_at(planted.slot, true, &mut rng),
        _ => write_critique(function, choices, None, kind, &mut rng),
    }
}

/// A program under criticism.
struct Subject<'a> {
    function: &'a Function,
    choices: &'a Choices,
    held: Vec<&'a str>,
    stranger: Option<&'a Function>,
}

impl<'a> Subject<'a> {
    fn unchanged(&self, text: String) -> Written {
        Written {
            text,
            program: self.function.program_with(&self.held),
        }
    }

    fn edited(&self, edits: &[Edit<'_>]) -> Written {
        let mut held = self.held.clone();
        for edit in edits {
            held[edit.slot] = edit.wanted;
        }
        Written {
            text: write(&self.held, edits),
            program: self.function.program_with(&held),
        }
    }

    fn found_right(&self) -> Written {
        self.edited(&[])
    }

    fn repaired(&self) -> Written {
        let repair = |slot: usize| Edit {
            slot,
            wanted: &self.function.slots[slot].right,
        };
        self.edited(&self.choices.wrong_slots().map(repair).collect::<Vec<_>>())
    }

    /// Four of ten suggestions about a wrong program concern a wrong slot.
    fn spoiled(&self, rng: &mut ChaCha8Rng) -> Written {
        let wrong_fragments = |slot: usize| -> Vec<&'a str> {
            let wrong = self.function.slots[slot]
                .wrong
                .iter()
                .map(|w| w.fragment.as_str());
            wrong
                .filter(|fragment| *fragment != self.held[slot])
                .collect()
        };
        let open = |slot: &usize| !wrong_fragments(*slot).is_empty();
        let wrong: Vec<usize> = self.choices.wrong_slots().filter(open).collect();
        let all: Vec<usize> = (0..self.held.len()).filter(open).collect();
        let hit = !wrong.is_empty() && rng.random_range(0..10u32) < 4;
        let slot = *any(if hit { &wrong } else { &all }, rng);
        let wanted = *any(&wrong_fragments(slot), rng);
        self.edited(&[Edit { slot, wanted }])
    }

    fn edited_at(&self, n: usize, rng: &mut ChaCha8Rng) -> Written {
        let mut slots: Vec<usize> = (0..self.held.len()).collect();
        slots.shuffle(rng);
        slots.truncate(n);
        slots.sort_unstable();
        let wanted: Vec<(usize, String)> = slots
            .into_iter()
            .map(|slot| (slot, self.wanted(slot, rng)))
            .collect();
        let edits: Vec<Edit<'_>> = wanted
            .iter()
            .map(|(slot, wanted)| Edit {
                slot: *slot,
                wanted,
            })
            .collect();
        self.edited(&edits)
    }

    /// An edit whose analysis marks another slot, or the right one if that alone tells which of two
    /// equal fragments is meant.
    fn carelessly_edited(&self, rng: &mut ChaCha8Rng) -> Written {
        let slot = self.any_slot(rng);
        let instead_of = self.held[slot];
        let clear = self.held.iter().filter(|held| **held == instead_of).count() == 1;
        let marked = if clear { self.any_slot(rng) } else { slot };
        let wanted = self.wanted(slot, rng);
        let suggestion = Suggestion {
            wanted: &wanted,
            instead_of,
        };
        Written {
            text: write_apart(&self.held, &[marked], &[suggestion]),
            ..self.edited(&[Edit {
                slot,
                wanted: &wanted,
            }])
        }
    }

    fn any_slot(&self, rng: &mut ChaCha8Rng) -> usize {
        rng.random_range(0..self.held.len())
    }

    /// Something that the slot does not hold.
    fn wanted(&self, slot: usize, rng: &mut ChaCha8Rng) -> String {
        let strange = match (self.stranger, rng.random_range(0..10u32)) {
            (Some(_), 0) => other_constant(self.any_fragment(self.function, slot, rng), rng),
            (Some(stranger), 1) => {
                let slot = rng.random_range(0..stranger.slots.len());
                Some(self.any_fragment(stranger, slot, rng).to_owned())
            }
            _ => None,
        };
        let usable = strange.filter(|f| !f.is_empty() && f != self.held[slot]);
        usable.unwrap_or_else(|| {
            let slot_of = &self.function.slots[slot];
            let others: Vec<&str> = (0..slot_of.n_choices())
                .map(|choice| slot_of.fragment(choice))
                .filter(|fragment| *fragment != self.held[slot])
                .collect();
            (*any(&others, rng)).to_owned()
        })
    }

    fn any_fragment<'f>(&self, of: &'f Function, slot: usize, rng: &mut ChaCha8Rng) -> &'f str {
        let slot = &of.slots[slot];
        slot.fragment(rng.random_range(0..slot.n_choices()))
    }

    fn kept_at(&self, slot: usize) -> Written {
        let edit = Edit {
            slot,
            wanted: self.held[slot],
        };
        self.unchanged(write(&self.held, &[edit]))
    }

    /// Suggests the slot's right fragment, or any other, instead of one that the program lacks.
    fn misquoted_at(&self, slot: usize, right: bool, rng: &mut ChaCha8Rng) -> Written {
        let program = self.function.program_with(&self.held);
        let own = &self.function.slots[slot];
        let wanted = if right {
            own.right.clone()
        } else {
            self.wanted(slot, rng)
        };
        let mut quotes: Vec<String> = (0..own.n_choices())
            .map(|choice| own.fragment(choice).to_owned())
            .collect();
        quotes.extend(other_constant(self.held[slot], rng));
        if let Some(stranger) = self.stranger {
            quotes.push(any(&stranger.slots, rng).right.clone());
        }
        quotes.retain(|quote| !quote.is_empty() && *quote != wanted && !program.contains(quote));
        if quotes.is_empty() {
            // All that could be misquoted occurs in the program; no program of this world holds this.
            quotes.push("pass".to_owned());
        }
        let suggestion = Suggestion {
            wanted: &wanted,
            instead_of: any(&quotes, rng).as_str(),
        };
        self.unchanged(write_apart(&self.held, &[slot], &[suggestion]))
    }

    fn malformed(&self, rng: &mut ChaCha8Rng) -> Written {
        let slot = self.any_slot(rng);
        let wanted = self.wanted(slot, rng);
        let edit = self
            .edited(&[Edit {
                slot,
                wanted: &wanted,
            }])
            .text;
        let line = |index: usize| edit.lines().nth(index).unwrap_or_default();
        let text = match rng.random_range(0..8u32) {
            0 => format!("{}\n{}", line(0), line(1)),
            1 => format!("{}\n{}", line(0), line(2)),
            2 => line(rng.random_range(0..3)).to_owned(),
            3 => format!(
                "{}\n{}\n{}",
                line(0),
                incomplete_suggestion(Some(&wanted)),
                line(2)
            ),
            4 => format!("{}\n{}\n{}", line(0), incomplete_suggestion(None), line(2)),
            5 => {
                let mut words: Vec<&str> = edit.split_whitespace().collect();
                words.shuffle(rng);
                words.join(" ")
            }
            _ => (*any(&CHATTER, rng)).to_owned(),
        };
        self.unchanged(text)
    }
}

/// Texts that say nothing that could be followed.
const CHATTER: [&str; 8] = [
    "There is a mistake somewhere.",
    "All good.",
    "Please repair it.",
    "Do what the statement asks.",
    "Overall judgment: Incorrect",
    "Overall judgment: Correct",
    "Analysis: it does something else.\nImprovement suggestions: do the right thing.\n\
     Overall judgment: Incorrect",
    "Improvement suggestions: repair the line that is wrong.\nOverall judgment: Incorrect",
];

/// The fragment with one digit replaced; `None` without digits.
fn other_constant(fragment: &str, rng: &mut ChaCha8Rng) -> Option<String> {
    let digits: Vec<(usize, char)> = fragment
        .char_indices()
        .filter(|(_, c)| c.is_ascii_digit())
        .collect();
    if digits.is_empty() {
        return None;
    }
    let (place, old) = *any(&digits, rng);
    let new = (b'0' + rng.random_range(0..10u8)) as char;
    (new != old).then(|| format!("{}{new}{}", &fragment[..place], &fragment[place + 1..]))
}

fn any<'a, T>(from: &'a [T], rng: &mut ChaCha8Rng) -> &'a T {
    &from[rng.random_range(0..from.len())]
}

#[cfg(test)]
mod tests;
