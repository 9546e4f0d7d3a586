//! Reading a critique: its three parts, its judgment, and the gate that decides whether it counts.
//!
//! A critique has a heading `Analysis:`, a heading `Improvement suggestions:` and a last line
//! `Overall judgment: Correct` or `Overall judgment: Incorrect` (spec of the critique study, sections
//! 1.2, 4.1 and 13).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::suspicion::is_hidden;

const ANALYSIS: &str = "Analysis:";
const SUGGESTIONS: &str = "Improvement suggestions:";
const JUDGMENT: &str = "Overall judgment:";

/// What a critique says of the program as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgment {
    Correct,
    Incorrect,
}

/// Which critiques count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// One judgment line, well formed, after which nothing follows.
    #[default]
    Strict,
    /// One of the two judgments occurs anywhere, as in the original CTRL; the last one is taken.
    Substring,
}

/// Why a critique does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The sampler stopped it before its end.
    Unfinished,
    NoJudgment,
    /// The judgment line says something else, or says it otherwise.
    MalformedJudgment,
    SeveralJudgments,
    TextAfterJudgment,
}

/// What the gate made of a critique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Present exactly when the critique passes the gate.
    pub judgment: Option<Judgment>,
    /// Present exactly when it does not.
    pub refusal: Option<Refusal>,
    /// Present when all three headings stand at the start of a line, once each and in order, whatever
    /// the gate says.
    pub parts: Option<Parts>,
}

/// The text under the first two headings, trimmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub analysis: String,
    pub suggestions: String,
}

impl Reading {
    /// The reading of a critique that the sampler cut off.
    pub fn unfinished() -> Self {
        Self {
            judgment: None,
            refusal: Some(Refusal::Unfinished),
            parts: None,
        }
    }
}

/// Reads a finished critique.
pub fn read_critique(text: &str, gate: Gate) -> Reading {
    let judged = match gate {
        // What stands outside the tags may hide no judgment either.
        Gate::Strict if n_judgment_lines(text) > 1 => Err(Refusal::SeveralJudgments),
        Gate::Strict => last_line_judgment(critique_body(text)),
        Gate::Substring => last_judgment_anywhere(text),
    };
    Reading {
        judgment: judged.ok(),
        refusal: judged.err(),
        parts: parts(critique_body(text)),
    }
}

/// The critique without the `<format>` tags that a model may have echoed from its prompt, trimmed.
pub fn critique_body(text: &str) -> &str {
    let inside = text
        .split_once("<format>")
        .and_then(|(_, rest)| rest.split_once("</format>"))
        .map(|(inside, _)| inside);
    inside.unwrap_or(text).trim()
}

/// The judgment of several critiques of one program: `Correct` needs more than half of them.
pub fn majority(judgments: &[Judgment]) -> Judgment {
    let correct = judgments
        .iter()
        .filter(|judgment| **judgment == Judgment::Correct)
        .count();
    if 2 * correct > judgments.len() {
        Judgment::Correct
    } else {
        Judgment::Incorrect
    }
}

impl fmt::Display for Judgment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Correct => "Correct",
            Self::Incorrect => "Incorrect",
        })
    }
}

fn last_line_judgment(text: &str) -> Result<Judgment, Refusal> {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let mut judging = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_judgment_line(line));
    let (index, line) = judging.next().ok_or(Refusal::NoJudgment)?;
    if judging.next().is_some() {
        return Err(Refusal::SeveralJudgments);
    }
    if index + 1 < lines.len() {
        return Err(Refusal::TextAfterJudgment);
    }
    match line.strip_prefix(JUDGMENT) {
        Some(" Correct") => Ok(Judgment::Correct),
        Some(" Incorrect") => Ok(Judgment::Incorrect),
        _ => Err(Refusal::MalformedJudgment),
    }
}

/// Lines that judge, however they are parted.
fn n_judgment_lines(text: &str) -> usize {
    let breaks = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    text.split(breaks)
        .filter(|line| is_judgment_line(line))
        .count()
}

/// Whether a line means to judge, whatever its mark-up and case, and whatever in it does not print: a second
/// judgment must not hide.
fn is_judgment_line(line: &str) -> bool {
    let line: String = line.chars().filter(|c| !is_hidden(*c)).collect();
    let bare = line
        .trim_start_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase();
    bare.starts_with("overall judgment") || bare.starts_with("overall judgement")
}

fn last_judgment_anywhere(text: &str) -> Result<Judgment, Refusal> {
    let correct = text.rfind("Overall judgment: Correct");
    let incorrect = text.rfind("Overall judgment: Incorrect");
    match (correct, incorrect) {
        (None, None) => Err(Refusal::NoJudgment),
        (correct, incorrect) if correct > incorrect => Ok(Judgment::Correct),
        _ => Ok(Judgment::Incorrect),
    }
}

fn parts(text: &str) -> Option<Parts> {
    let analysis = heading(text, ANALYSIS)?;
    let suggestions = heading(text, SUGGESTIONS)?;
    let judgment = heading(text, JUDGMENT)?;
    if !(analysis < suggestions && suggestions < judgment) {
        return None;
    }
    Some(Parts {
        analysis: text[analysis + ANALYSIS.len()..suggestions]
            .trim()
            .to_owned(),
        suggestions: text[suggestions + SUGGESTIONS.len()..judgment]
            .trim()
            .to_owned(),
    })
}

/// Where a heading stands at the start of a line; none if it does nowhere or twice.
fn heading(text: &str, heading: &str) -> Option<usize> {
    let mut found = text
        .match_indices(heading)
        .map(|(place, _)| place)
        .filter(|place| *place == 0 || text.as_bytes()[place - 1] == b'\n');
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strict(text: &str) -> Result<Judgment, Refusal> {
        let reading = read_critique(text, Gate::Strict);
        reading.judgment.ok_or_else(|| reading.refusal.unwrap())
    }

    fn substring(text: &str) -> Option<Judgment> {
        read_critique(text, Gate::Substring).judgment
    }

    const WHOLE: &str = "Analysis: the loop ends early.\nIt misses b.\n\
                         Improvement suggestions: use range(a, b + 1).\nOverall judgment: Incorrect";

    #[test]
    fn a_whole_critique_reads_into_its_parts() {
        let reading = read_critique(WHOLE, Gate::Strict);
        assert_eq!(reading.judgment, Some(Judgment::Incorrect));
        assert_eq!(reading.refusal, None);
        let parts = reading.parts.unwrap();
        assert_eq!(parts.analysis, "the loop ends early.\nIt misses b.");
        assert_eq!(parts.suggestions, "use range(a, b + 1).");
        assert_eq!(
            strict(&format!("<format>\n{WHOLE}\n</format>")),
            Ok(Judgment::Incorrect)
        );
        assert_eq!(strict(&format!("{WHOLE}  \n\n")), Ok(Judgment::Incorrect));
    }

    #[test]
    fn the_strict_gate_refuses_what_the_substring_gate_lets_pass() {
        let cases = [
            (
                "Overall judgment: Correct\nOverall judgment: Incorrect",
                Refusal::SeveralJudgments,
                Some(Judgment::Incorrect),
            ),
            (
                "Overall judgment: Incorrect\nOverall judgment: Correct",
                Refusal::SeveralJudgments,
                Some(Judgment::Correct),
            ),
            (
                "**Overall judgment: Correct**\nOverall judgment: Correct",
                Refusal::SeveralJudgments,
                Some(Judgment::Correct),
            ),
            (
                "Overall judgment: Correct\n<format>\nOverall judgment: Incorrect\n</format>",
                Refusal::SeveralJudgments,
                Some(Judgment::Incorrect),
            ),
            (
                "Over\u{200b}all judgment: Correct\nOverall judgment: Incorrect",
                Refusal::SeveralJudgments,
                Some(Judgment::Incorrect),
            ),
            (
                "x\u{2028}Overall judgment: Correct\nOverall judgment: Incorrect",
                Refusal::SeveralJudgments,
                Some(Judgment::Incorrect),
            ),
            (
                "Overall judgment: Correct\nOr so.",
                Refusal::TextAfterJudgment,
                Some(Judgment::Correct),
            ),
            (
                "I say Overall judgment: Correct",
                Refusal::NoJudgment,
                Some(Judgment::Correct),
            ),
            (
                "Overall judgment: Correctly done",
                Refusal::MalformedJudgment,
                Some(Judgment::Correct),
            ),
            ("Overall judgment:Correct", Refusal::MalformedJudgment, None),
            (
                "overall judgment: Correct",
                Refusal::MalformedJudgment,
                None,
            ),
            (
                "**Overall judgment:** Correct",
                Refusal::MalformedJudgment,
                None,
            ),
            ("Overall judgment: Incor", Refusal::MalformedJudgment, None),
            ("", Refusal::NoJudgment, None),
        ];
        for (text, refusal, lenient) in cases {
            assert_eq!(strict(text), Err(refusal), "{text}");
            assert_eq!(substring(text), lenient, "{text}");
        }
        assert_eq!(Reading::unfinished().refusal, Some(Refusal::Unfinished));
    }

    #[test]
    fn parts_need_every_heading_once_and_in_order() {
        for text in [
            "Improvement suggestions: x\nAnalysis: y\nOverall judgment: Correct",
            "Analysis: y\nOverall judgment: Correct",
            "Analysis: y\nAnalysis: z\nImprovement suggestions: x\nOverall judgment: Correct",
            "An Analysis: y\nImprovement suggestions: x\nOverall judgment: Correct",
        ] {
            assert_eq!(read_critique(text, Gate::Strict).parts, None, "{text}");
        }
    }

    #[test]
    fn a_tie_is_incorrect() {
        use Judgment::{Correct, Incorrect};
        assert_eq!(
            majority(&[Correct, Incorrect, Incorrect, Correct]),
            Incorrect
        );
        assert_eq!(majority(&[Correct, Incorrect, Correct]), Correct);
        assert_eq!(majority(&[]), Incorrect);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic_and_the_strict_gate_is_the_narrower(
            text in "(Analysis:|Improvement suggestions:|Overall judgment:|<format>|</format>| Correct| Incorrect|\n|[a-z*é]){0,12}"
        ) {
            let reading = read_critique(&text, Gate::Strict);
            prop_assert_eq!(reading.judgment.is_some(), reading.refusal.is_none());
            if let Some(judgment) = reading.judgment {
                let line = format!("Overall judgment: {judgment}");
                prop_assert!(text.contains(&line));
                prop_assert!(substring(&text).is_some());
            }
        }

        #[test]
        fn every_well_formed_critique_passes(
            analysis in "[a-z `=+\n]{0,40}", suggestions in "[a-z `=+\n]{0,40}", right: bool
        ) {
            let judgment = if right { Judgment::Correct } else { Judgment::Incorrect };
            let text = format!(
                "Analysis: {analysis}\nImprovement suggestions: {suggestions}\nOverall judgment: {judgment}"
            );
            let reading = read_critique(&text, Gate::Strict);
            prop_assert_eq!(reading.judgment, Some(judgment));
            let parts = reading.parts.unwrap();
            prop_assert_eq!(parts.analysis, analysis.trim());
            prop_assert_eq!(parts.suggestions, suggestions.trim());
        }
    }
}
