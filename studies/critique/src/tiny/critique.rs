//! Writing critiques of every quality, and telling what a critique is.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::function::{Choices, Function};
use super::wording::{Edit, Unreadable, assemble, read, write};

/// What a written critique is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Repairs a wrong slot, or finds that none is wrong.
    Good,
    /// Finds the program right, whatever it is.
    Correct,
    /// Puts a wrong fragment into some slot.
    WrongSuggestion,
    /// Wants what is already there.
    NoOp,
    /// Quotes a fragment that is not there, and wants another instead.
    AbsentFragment,
    /// Lacks a part, or contradicts itself.
    Malformed,
    /// One of the first three, cut off at any character.
    Truncated,
    Empty,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Good,
        Self::Correct,
        Self::WrongSuggestion,
        Self::NoOp,
        Self::AbsentFragment,
        Self::Malformed,
        Self::Truncated,
        Self::Empty,
    ];

    /// Whether the program stays as it is under every critique of this kind.
    pub fn changes_nothing(self) -> bool {
        !matches!(self, Self::Good | Self::WrongSuggestion)
    }
}

/// A critique, and what the program becomes when it is followed to the letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub text: String,
    /// The slots after the edit; those before it when there is nothing to follow.
    pub choices: Choices,
}

/// Writes a critique of the program that `choices` makes.
pub fn write_critique(
    function: &Function,
    choices: &Choices,
    kind: Kind,
    rng: &mut ChaCha8Rng,
) -> Written {
    let program = Program { function, choices };
    match kind {
        Kind::Good => {
            let wrong: Vec<usize> = choices.wrong_slots().collect();
            if wrong.is_empty() {
                return program.found_right();
            }
            program.edited(wrong[rng.random_range(0..wrong.len())], 0)
        }
        Kind::Correct => program.found_right(),
        Kind::WrongSuggestion => program.wrongly_edited(rng),
        Kind::NoOp => {
            let slot = rng.random_range(0..function.slots.len());
            let text = program.edited(slot, choices.0[slot]).text;
            program.unchanged(text)
        }
        Kind::AbsentFragment => program.misquoted(rng),
        Kind::Malformed => program.malformed(rng),
        Kind::Truncated => {
            let kinds = [Kind::Good, Kind::Correct, Kind::WrongSuggestion];
            let whole = write_critique(
                function,
                choices,
                kinds[rng.random_range(0..kinds.len())],
                rng,
            );
            let cut = rng.random_range(1..whole.text.len());
            program.unchanged(whole.text[..cut].trim_end().to_owned())
        }
        Kind::Empty => program.unchanged(String::new()),
    }
}

/// The one critique of a draft that is exactly right.
pub fn right_critique(draft: &Draft) -> String {
    let edit = draft.planted().map(|planted| Edit {
        slot: planted.slot,
        wanted: planted.right,
    });
    write(&draft.function.fragments(&draft.choices), edit.as_slice())
}

/// What a sampled critique of a draft turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Letter for letter the right one.
    Exact,
    /// Finds a wrong program right.
    FalseCorrect,
    /// Asks for an edit that can be followed, but not for the right one.
    OtherEdit,
    NoOp,
    AbsentFragment,
    Malformed,
}

/// Classifies a critique of a draft.
pub fn classify(draft: &Draft, text: &str) -> Class {
    if text == right_critique(draft) {
        return Class::Exact;
    }
    match read(text, &draft.function.fragments(&draft.choices)) {
        Ok(edits) if edits.is_empty() => Class::FalseCorrect,
        Ok(_) => Class::OtherEdit,
        Err(Unreadable::NoOp) => Class::NoOp,
        Err(Unreadable::AbsentFragment) => Class::AbsentFragment,
        Err(Unreadable::Malformed) => Class::Malformed,
    }
}

/// A program under criticism.
#[derive(Clone, Copy)]
struct Program<'a> {
    function: &'a Function,
    choices: &'a Choices,
}

impl Program<'_> {
    fn unchanged(self, text: String) -> Written {
        Written {
            text,
            choices: self.choices.clone(),
        }
    }

    fn found_right(self) -> Written {
        self.unchanged(write(&self.function.fragments(self.choices), &[]))
    }

    fn edited(self, slot: usize, choice: usize) -> Written {
        let wanted = self.function.slots[slot].fragment(choice);
        Written {
            text: write(
                &self.function.fragments(self.choices),
                &[Edit { slot, wanted }],
            ),
            choices: self.choices.with(slot, choice),
        }
    }

    fn any_slot(self, rng: &mut ChaCha8Rng) -> usize {
        rng.random_range(0..self.function.slots.len())
    }

    /// A choice of the slot other than `not`.
    fn other_choice(self, slot: usize, not: usize, rng: &mut ChaCha8Rng) -> usize {
        let choice = rng.random_range(0..self.function.slots[slot].n_choices() - 1);
        if choice < not { choice } else { choice + 1 }
    }

    /// Four of ten edits of a wrong program hit a wrong slot, and put another wrong fragment there.
    fn wrongly_edited(self, rng: &mut ChaCha8Rng) -> Written {
        let room = |slot: usize| {
            let others = self.function.slots[slot].wrong.len();
            others > usize::from(self.choices.0[slot] != 0)
        };
        let wrong: Vec<usize> = self
            .choices
            .wrong_slots()
            .filter(|slot| room(*slot))
            .collect();
        let open: Vec<usize> = (0..self.function.slots.len())
            .filter(|slot| room(*slot))
            .collect();
        let from = if !wrong.is_empty() && rng.random_range(0..10u32) < 4 {
            wrong
        } else {
            open
        };
        let slot = from[rng.random_range(0..from.len())];
        let held = self.choices.0[slot];
        let mut choices: Vec<usize> = (1..self.function.slots[slot].n_choices()).collect();
        choices.retain(|choice| *choice != held);
        self.edited(slot, choices[rng.random_range(0..choices.len())])
    }

    fn misquoted(self, rng: &mut ChaCha8Rng) -> Written {
        let slot = self.any_slot(rng);
        let quoted = self.other_choice(slot, self.choices.0[slot], rng);
        let wanted = self.other_choice(slot, quoted, rng);
        let imagined = self.choices.with(slot, quoted);
        let text = Program {
            choices: &imagined,
            ..self
        }
        .edited(slot, wanted)
        .text;
        self.unchanged(text)
    }

    fn malformed(self, rng: &mut ChaCha8Rng) -> Written {
        let right = self.found_right().text;
        let slot = self.any_slot(rng);
        let choice = self.other_choice(slot, self.choices.0[slot], rng);
        let edit = self.edited(slot, choice).text;
        let wanted = self.function.slots[slot].fragment(choice);
        let (analysis, suggestions) = (line(&edit, 0), line(&edit, 1));
        let text = match rng.random_range(0..8u32) {
            // A part is missing.
            0 => format!("{analysis}\n{suggestions}"),
            1 => format!("{analysis}\n{}", line(&edit, 2)),
            2 => format!("{suggestions}\n{}", line(&edit, 2)),
            3 => line(&edit, rng.random_range(0..3)).to_owned(),
            // The parts contradict each other.
            4 => format!("{analysis}\n{suggestions}\n{}", line(&right, 2)),
            5 => format!("{analysis}\n{}\n{}", line(&right, 1), line(&edit, 2)),
            6 => format!("{}\n{suggestions}\n{}", line(&right, 0), line(&edit, 2)),
            // No walk at all.
            _ => assemble(&format!("use `{wanted}`"), "none", "Incorrect"),
        };
        self.unchanged(text)
    }
}

fn line(text: &str, index: usize) -> &str {
    text.lines().nth(index).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use record::Seed;

    use super::*;
    use crate::format::{Gate, Judgment, read_critique};
    use crate::tiny::{Split, drafts};

    fn written(kind: Kind) -> Vec<(Draft, Written)> {
        drafts(Seed(5), Split::Train, 0.3)
            .take(400)
            .map(|draft| {
                let mut rng = Seed(6).stream("written", draft.index).rng();
                let written = write_critique(&draft.function, &draft.choices, kind, &mut rng);
                (draft, written)
            })
            .collect()
    }

    /// Follows a critique by reading it, independently of how it was written.
    fn followed(draft: &Draft, text: &str) -> String {
        let mut fragments = draft.function.fragments(&draft.choices);
        for edit in read(text, &fragments).unwrap_or_default() {
            fragments[edit.slot] = edit.wanted;
        }
        draft.function.program_with(&fragments)
    }

    #[test]
    fn reading_a_critique_gives_the_program_that_writing_it_promised() {
        for kind in Kind::ALL {
            for (draft, written) in written(kind) {
                let promised = draft.function.program(&written.choices);
                assert_eq!(
                    followed(&draft, &written.text),
                    promised,
                    "{kind:?}: {}",
                    written.text
                );
                if kind.changes_nothing() {
                    assert_eq!(promised, draft.program());
                }
            }
        }
    }

    #[test]
    fn a_good_critique_repairs_and_a_wrong_suggestion_never_does() {
        for (draft, written) in written(Kind::Good) {
            assert_eq!(written.text, right_critique(&draft));
            assert_eq!(
                draft.function.program(&written.choices),
                draft.function.reference()
            );
        }
        for (draft, written) in written(Kind::WrongSuggestion) {
            let program = draft.function.program(&written.choices);
            assert_ne!(program, draft.program());
            assert_ne!(program, draft.function.reference());
        }
    }

    #[test]
    fn classes_are_told_apart() {
        let expected = [
            (Kind::NoOp, Class::NoOp),
            (Kind::AbsentFragment, Class::AbsentFragment),
            (Kind::WrongSuggestion, Class::OtherEdit),
            (Kind::Malformed, Class::Malformed),
            (Kind::Truncated, Class::Malformed),
            (Kind::Empty, Class::Malformed),
            (Kind::Good, Class::Exact),
        ];
        for (kind, class) in expected {
            for (draft, written) in written(kind) {
                assert_eq!(
                    classify(&draft, &written.text),
                    class,
                    "{kind:?}: {}",
                    written.text
                );
            }
        }
        for (draft, written) in written(Kind::Correct) {
            let class = if draft.planted().is_none() {
                Class::Exact
            } else {
                Class::FalseCorrect
            };
            assert_eq!(classify(&draft, &written.text), class);
        }
    }

    #[test]
    fn whole_critiques_pass_the_strict_gate_and_broken_ones_mostly_do_not() {
        for (draft, written) in written(Kind::Good) {
            let reading = read_critique(&written.text, Gate::Strict);
            let truth = if draft.planted().is_some() {
                Judgment::Incorrect
            } else {
                Judgment::Correct
            };
            assert_eq!(reading.judgment, Some(truth));
            assert!(reading.parts.is_some());
        }
        for (_, written) in written(Kind::Truncated) {
            assert_eq!(read_critique(&written.text, Gate::Strict).judgment, None);
        }
    }
}
