//! The text of a critique, written and read: the one place that knows its format.
//!
//! The analysis walks the slots in program order, copies what each holds and says whether it is ok, so
//! that every verdict stands next to what it judges. The suggestion alone says what to do, so that it
//! can be followed without the analysis.

use thiserror::Error;

/// A change that a critique asks for: what the slot should hold instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    pub slot: usize,
    pub wanted: &'a str,
}

/// Why a text cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    #[error("the text does not have the form of a critique, or its parts contradict each other")]
    Malformed,
    #[error("the critique wants to replace a fragment that the program does not hold")]
    AbsentFragment,
    #[error("the critique wants to replace a fragment by itself")]
    NoOp,
}

/// A suggested replacement, in words of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suggestion<'a> {
    pub(super) wanted: &'a str,
    pub(super) instead_of: &'a str,
}

/// The critique of a program whose slots hold `present` and that needs `edits`, in slot order.
/// Without edits it says that the program is right.
pub fn write(present: &[&str], edits: &[Edit<'_>]) -> String {
    let marked: Vec<usize> = edits.iter().map(|edit| edit.slot).collect();
    let suggestions: Vec<Suggestion<'_>> = edits
        .iter()
        .map(|edit| Suggestion {
            wanted: edit.wanted,
            instead_of: present[edit.slot],
        })
        .collect();
    write_apart(present, &marked, &suggestions)
}

/// A critique whose analysis marks the slots `marked` as wrong and whose suggestions may be about
/// anything.
pub(super) fn write_apart(
    present: &[&str],
    marked: &[usize],
    suggestions: &[Suggestion<'_>],
) -> String {
    let walk: Vec<String> = present
        .iter()
        .enumerate()
        .map(|(slot, held)| {
            let verdict = if marked.contains(&slot) {
                "wrong"
            } else {
                "ok"
            };
            format!("{} {verdict}", quote(held))
        })
        .collect();
    let uses: Vec<String> = suggestions
        .iter()
        .map(|s| format!("use {} instead of {}", quote(s.wanted), quote(s.instead_of)))
        .collect();
    let (suggestions, judgment) = if uses.is_empty() {
        ("none".to_owned(), "Correct")
    } else {
        (uses.join("; "), "Incorrect")
    };
    format!(
        "Analysis: {}\nImprovement suggestions: {suggestions}.\nOverall judgment: {judgment}",
        walk.join(", ")
    )
}

/// A suggestion that names no fragment to replace; nobody can follow it.
pub(super) fn incomplete_suggestion(wanted: Option<&str>) -> String {
    let wanted = wanted.map(quote).unwrap_or_default();
    format!("Improvement suggestions: use {wanted}.")
}

/// The edits that a critique of a program with slots `present` asks for; none when it finds the
/// program right. The suggestion decides; where two slots hold what it wants replaced, the one that
/// the analysis marks as wrong is meant, else the first.
///
/// # Errors
/// A text without the three parts, or whose suggestion and judgment contradict each other; then a
/// suggestion about a fragment that is not there, or one that changes nothing.
pub fn read<'a>(text: &'a str, present: &[&str]) -> Result<Vec<Edit<'a>>, Unreadable> {
    let (analysis, suggestions, judged_right) = parts(text).ok_or(Unreadable::Malformed)?;
    let suggestions = read_suggestions(suggestions).ok_or(Unreadable::Malformed)?;
    if suggestions.is_empty() != judged_right {
        return Err(Unreadable::Malformed);
    }
    let mut edits = Vec::new();
    for (index, Suggestion { wanted, instead_of }) in suggestions.iter().enumerate() {
        let earlier = suggestions[..index]
            .iter()
            .filter(|s| s.instead_of == *instead_of)
            .count();
        let meant = meant_slots(analysis, instead_of, present);
        let slot = *meant.get(earlier).ok_or(Unreadable::AbsentFragment)?;
        if wanted == instead_of {
            return Err(Unreadable::NoOp);
        }
        edits.push(Edit { slot, wanted });
    }
    Ok(edits)
}

/// The slots that hold `fragment`, those first that the analysis marks as wrong.
fn meant_slots(analysis: &str, fragment: &str, present: &[&str]) -> Vec<usize> {
    let marked = format!("{} wrong", quote(fragment));
    let quoted = quote(fragment);
    let mut verdicts = analysis
        .match_indices(&quoted)
        .map(|(place, _)| analysis[place..].starts_with(&marked));
    let holding = (0..present.len()).filter(|slot| present[*slot] == fragment);
    let (mut first, last): (Vec<usize>, Vec<usize>) =
        holding.partition(|_| verdicts.next() == Some(true));
    first.extend(last);
    first
}

/// The text of the first two parts and whether the judgment is "Correct".
fn parts(text: &str) -> Option<(&str, &str, bool)> {
    let mut lines = text.lines();
    let analysis = lines.next()?.strip_prefix("Analysis: ")?;
    let suggestions = lines
        .next()?
        .strip_prefix("Improvement suggestions: ")?
        .strip_suffix('.')?;
    let judged_right = match lines.next()? {
        "Overall judgment: Correct" => true,
        "Overall judgment: Incorrect" => false,
        _ => return None,
    };
    (lines.next().is_none()).then_some((analysis, suggestions, judged_right))
}

fn read_suggestions(text: &str) -> Option<Vec<Suggestion<'_>>> {
    if text == "none" {
        return Some(Vec::new());
    }
    let read = |text| -> Option<Suggestion<'_>> {
        let mut rest = str::strip_prefix(text, "use ")?;
        let wanted = read_quote(&mut rest)?;
        rest = rest.strip_prefix(" instead of ")?;
        let instead_of = read_quote(&mut rest)?;
        rest.is_empty().then_some(Suggestion { wanted, instead_of })
    };
    text.split("; ").map(read).collect()
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
            "Analysis: `nothing` ok, `range(a, b)` wrong, `s += x` ok\n\
             Improvement suggestions: use `range(a, b + 1)` instead of `range(a, b)`.\n\
             Overall judgment: Incorrect"
        );
    }

    #[test]
    fn the_analysis_tells_equal_fragments_apart() {
        let held = ["s = 1", "s = 1"];
        for slot in [0, 1] {
            let edit = Edit {
                slot,
                wanted: "s = 0",
            };
            assert_eq!(read(&write(&held, &[edit]), &held), Ok(vec![edit]));
        }
    }

    #[test]
    fn what_cannot_be_followed_is_told_apart() {
        let edit = Edit {
            slot: 2,
            wanted: "s -= x",
        };
        let good = write(&HELD, &[edit]);
        let same = write(
            &HELD,
            &[Edit {
                slot: 2,
                wanted: "s += x",
            }],
        );
        assert_eq!(read(&same, &HELD), Err(Unreadable::NoOp));
        let other = write(&["", "range(a, b)", "s = x"], &[edit]);
        assert_eq!(read(&other, &HELD), Err(Unreadable::AbsentFragment));
        for text in [
            "",
            "Overall judgment: Correct",
            &good[..good.len() - 1],
            &good.replace("Incorrect", "Correct"),
            &good.replace(" instead of `s += x`", ""),
            &good.replace("use `s -= x` instead of `s += x`", "none"),
            &good.replace("Analysis", "Analyses"),
            &format!("{good}\nmore"),
        ] {
            assert_eq!(read(text, &HELD), Err(Unreadable::Malformed), "{text}");
        }
        // A wrong analysis does not stop anybody from following the suggestion.
        let careless = good.replace("`nothing` ok", "`nothing` wrong");
        assert_eq!(read(&careless, &HELD), Ok(vec![edit]));
    }
}
