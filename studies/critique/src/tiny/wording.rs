//! The text of a critique, written and read: the one place that knows its format.
//!
//! The analysis walks the slots in program order and copies what each holds, so that every comparison
//! stands next to the two things that it compares; at a slot that is wrong it says what is wanted
//! there. The two other parts follow from the first.

use thiserror::Error;

/// A change that a critique asks for: what the slot should hold instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    pub slot: usize,
    pub wanted: &'a str,
}

/// Why a text is not a critique of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    #[error("the text does not have the form of a critique, or its parts contradict each other")]
    Malformed,
    #[error("the critique quotes a fragment that the program does not hold there")]
    AbsentFragment,
    #[error("the critique wants a fragment that is already there")]
    NoOp,
}

/// The critique of a program whose slots hold `present` and that needs `edits`, in slot order.
/// Without edits it says that the program is right.
pub fn write(present: &[&str], edits: &[Edit<'_>]) -> String {
    let wanted = |slot| {
        edits
            .iter()
            .find(|edit| edit.slot == slot)
            .map(|edit| edit.wanted)
    };
    let walk: Vec<String> = present
        .iter()
        .enumerate()
        .map(|(slot, held)| match wanted(slot) {
            None => format!("{} ok", quote(held)),
            Some(wanted) => format!("{} want {}", quote(held), quote(wanted)),
        })
        .collect();
    let uses: Vec<String> = edits
        .iter()
        .map(|edit| format!("use {}", quote(edit.wanted)))
        .collect();
    let (suggestions, judgment) = if uses.is_empty() {
        ("none".to_owned(), "Correct")
    } else {
        (uses.join("; "), "Incorrect")
    };
    assemble(&walk.join(", "), &suggestions, judgment)
}

/// The three parts under their headings.
pub(super) fn assemble(analysis: &str, suggestions: &str, judgment: &str) -> String {
    format!(
        "Analysis: {analysis}\nImprovement suggestions: {suggestions}.\nOverall judgment: {judgment}"
    )
}

/// The edits that a critique of a program with slots `present` asks for; none when it finds the
/// program right.
///
/// # Errors
/// [`Unreadable::Malformed`] unless [`write`] could have written the text about some program with as
/// many slots; then a misquoted or a superfluous edit.
pub fn read<'a>(text: &'a str, present: &[&str]) -> Result<Vec<Edit<'a>>, Unreadable> {
    let walk = text
        .strip_prefix("Analysis: ")
        .and_then(|rest| read_walk(rest.lines().next()?))
        .ok_or(Unreadable::Malformed)?;
    let quotes: Vec<&str> = walk.iter().map(|(quote, _)| *quote).collect();
    let edits: Vec<Edit<'a>> = walk
        .iter()
        .enumerate()
        .filter_map(|(slot, (_, wanted))| {
            Some(Edit {
                slot,
                wanted: (*wanted)?,
            })
        })
        .collect();
    if quotes.len() != present.len() || write(&quotes, &edits) != text {
        return Err(Unreadable::Malformed);
    }
    if quotes != present {
        return Err(Unreadable::AbsentFragment);
    }
    if edits.iter().any(|edit| edit.wanted == present[edit.slot]) {
        return Err(Unreadable::NoOp);
    }
    Ok(edits)
}

/// The quoted fragment of every slot and what is wanted there.
fn read_walk(mut rest: &str) -> Option<Vec<(&str, Option<&str>)>> {
    let mut walk = Vec::new();
    loop {
        let quote = read_quote(&mut rest)?;
        let wanted = if let Some(after) = rest.strip_prefix(" want ") {
            rest = after;
            Some(read_quote(&mut rest)?)
        } else {
            rest = rest.strip_prefix(" ok")?;
            None
        };
        walk.push((quote, wanted));
        if rest.is_empty() {
            return Some(walk);
        }
        rest = rest.strip_prefix(", ")?;
    }
}

/// What an absent line is called.
const NOTHING: &str = "nothing";

fn quote(fragment: &str) -> String {
    format!(
        "`{}`",
        if fragment.is_empty() {
            NOTHING
        } else {
            fragment
        }
    )
}

fn read_quote<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let (fragment, after) = rest.strip_prefix('`')?.split_once('`')?;
    *rest = after;
    Some(if fragment == NOTHING { "" } else { fragment })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: [&str; 3] = ["", "range(a, b)", "s += x"];

    #[test]
    fn a_critique_reads_back_into_its_edits() {
        for edits in [
            vec![],
            vec![Edit {
                slot: 0,
                wanted: "if not xs: return 0",
            }],
            vec![
                Edit {
                    slot: 1,
                    wanted: "",
                },
                Edit {
                    slot: 2,
                    wanted: "s -= x",
                },
            ],
        ] {
            assert_eq!(read(&write(&HELD, &edits), &HELD), Ok(edits));
        }
    }

    #[test]
    fn the_text_is_this() {
        let text = write(
            &HELD,
            &[Edit {
                slot: 1,
                wanted: "range(a, b + 1)",
            }],
        );
        assert_eq!(
            text,
            "Analysis: `nothing` ok, `range(a, b)` want `range(a, b + 1)`, `s += x` ok\n\
             Improvement suggestions: use `range(a, b + 1)`.\nOverall judgment: Incorrect"
        );
    }

    #[test]
    fn what_cannot_be_followed_is_told_apart() {
        let edit = [Edit {
            slot: 2,
            wanted: "s -= x",
        }];
        let good = write(&HELD, &edit);
        let same = write(
            &HELD,
            &[Edit {
                slot: 2,
                wanted: "s += x",
            }],
        );
        assert_eq!(read(&same, &HELD), Err(Unreadable::NoOp));
        let other = write(&["", "range(a, b)", "s = x"], &edit);
        assert_eq!(read(&other, &HELD), Err(Unreadable::AbsentFragment));
        for text in [
            "",
            "Overall judgment: Correct",
            &good[..good.len() - 1],
            &good.replace("Incorrect", "Correct"),
            &good.replace("use `s -= x`", "use `s += 1`"),
            &good.replace("use `s -= x`", "none"),
            &format!("{good}\n"),
            &write(&HELD[1..], &[]),
        ] {
            assert_eq!(read(text, &HELD), Err(Unreadable::Malformed), "{text}");
        }
    }
}
