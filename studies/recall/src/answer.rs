//! Reading the answer out of a response, and whether it abstains (spec of the recall study, section 6).

use serde::{Deserialize, Serialize};

/// How answers are read. Keys that a recipe leaves out have the values below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reading {
    /// Where an answer may stand, the first that is there counts. A response with none of them is its own
    /// answer.
    pub forms: Vec<AnswerForm>,
    /// What an answer line begins with, in whatever case.
    pub line: String,
    /// Name of the tag around an answer.
    pub tag: String,
    /// Name of the tag around thoughts; everything up to the last closing one is left out.
    pub thinking: String,
    /// What says that there is no answer: a phrase of several words wherever it stands, a single word
    /// where it is the whole answer. In whatever case.
    pub abstentions: Vec<String>,
}

/// A place for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerForm {
    /// `\boxed{…}` with balanced braces; the last one that is closed.
    Boxed,
    /// The last line that begins with [`Reading::line`].
    Line,
    /// `<answer>…</answer>`; the last one that is closed.
    Tag,
}

impl Default for Reading {
    fn default() -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            forms: vec![AnswerForm::Tag, AnswerForm::Boxed, AnswerForm::Line],
            line: "Answer:".to_owned(),
            tag: "answer".to_owned(),
            thinking: "think".to_owned(),
            abstentions: owned(&[
                "not said",
                "never said",
                "not mentioned",
                "never mentioned",
                "no mention of",
                "not stated",
                "not specified",
                "not provided",
                "no information",
                "not enough information",
                "insufficient information",
                "not available",
                "not in the conversation",
                "do not know",
                "don't know",
                "cannot be determined",
                "can't be determined",
                "cannot answer",
                "can't answer",
                "cannot be answered",
                "no answer",
                "unknown",
                "unanswerable",
                "noanswer",
                "n/a",
            ]),
        }
    }
}

impl Reading {
    /// The answer in `response`, trimmed. A thought that is never closed leaves nothing to read: the answer
    /// is empty.
    pub fn answer(&self, response: &str) -> String {
        let said = self.without_thinking(response);
        let found = self.forms.iter().find_map(|form| match form {
            AnswerForm::Boxed => boxed(said),
            AnswerForm::Line => answer_line(said, &self.line),
            AnswerForm::Tag => tagged(said, &self.tag),
        });
        found.unwrap_or(said).trim().to_owned()
    }

    /// `response` behind its thoughts; empty when the last thought is not closed.
    pub fn without_thinking<'a>(&self, response: &'a str) -> &'a str {
        let (open, close) = (
            format!("<{}>", self.thinking),
            format!("</{}>", self.thinking),
        );
        let said = response
            .rfind(&close)
            .map_or(response, |at| &response[at + close.len()..]);
        if said.contains(&open) { "" } else { said }
    }

    /// Whether an answer says that there is none.
    pub fn abstains(&self, answer: &str) -> bool {
        let answer = plain(answer);
        let whole = answer.trim_matches(|c: char| !c.is_alphanumeric());
        self.abstentions
            .iter()
            .map(|phrase| plain(phrase))
            .any(|phrase| {
                if phrase.contains(' ') {
                    has_phrase(&answer, &phrase)
                } else {
                    !phrase.is_empty() && whole == phrase
                }
            })
    }
}

/// What stands in the last closed `\boxed{…}`; braces inside it are balanced.
pub fn boxed(text: &str) -> Option<&str> {
    const OPEN: &str = "\\boxed{";
    let contents = text.match_indices(OPEN).filter_map(|(at, _)| {
        let inside = &text[at + OPEN.len()..];
        let mut depth = 1;
        let end = inside.char_indices().find_map(|(i, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(i)
        })?;
        Some((at + OPEN.len() + end, &inside[..end]))
    });
    // One inside another closes first, and is part of an answer rather than the answer.
    contents
        .fold(None, |last: Option<(usize, &str)>, found| match last {
            Some((end, _)) if found.0 < end => last,
            _ => Some(found),
        })
        .map(|(_, content)| content)
}

/// What follows the last `prefix` that a line begins with, to the end of that line; if there is nothing on
/// it, the next line that says something. Marks of emphasis and headings around them are not part of either.
fn answer_line<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    const MARKS: [char; 4] = ['*', '_', '#', ' '];
    let mut lines = text.lines();
    let mut found = None;
    while let Some(line) = lines.next() {
        let line = line.trim().trim_start_matches(MARKS);
        let Some(rest) = behind(line, prefix) else {
            continue;
        };
        let rest = rest.trim_matches(MARKS);
        let next = || lines.clone().map(str::trim).find(|line| !line.is_empty());
        found = Some(if rest.is_empty() {
            next().unwrap_or("")
        } else {
            rest
        });
    }
    found
}

/// What follows `prefix` in `line`, whatever its case.
fn behind<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let head = line.get(..prefix.len())?;
    (!prefix.is_empty() && head.eq_ignore_ascii_case(prefix)).then(|| &line[prefix.len()..])
}

fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let end = text.rfind(&close)?;
    let start = text[..end].rfind(&open)? + open.len();
    Some(&text[start..end])
}

/// Lower case, straight apostrophes, single spaces.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase().replace(['\u{2019}', '\u{2018}'], "'");
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `phrase` stands in `text` with no letter or digit right before or after it.
fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        [before, after]
            .into_iter()
            .flatten()
            .all(|c| !c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_are_read_out_of_their_places() {
        let reading = Reading::default();
        let cases = [
            ("Paris", "Paris"),
            ("  Paris \n", "Paris"),
            ("So \\boxed{Paris}.", "Paris"),
            ("\\boxed{\\frac{1}{2}} or so", "\\frac{1}{2}"),
            ("\\boxed{a} then \\boxed{b}", "b"),
            ("\\boxed{a} then \\boxed{b", "a"),
            ("\\boxed{see \\boxed{b}}", "see \\boxed{b}"),
            ("I think.\nAnswer: Paris\nThanks", "Paris"),
            ("**Answer:** Paris**", "Paris"),
            ("ANSWER:\n\nParis", "Paris"),
            ("Answer: Rome\nNo.\nAnswer: Paris", "Paris"),
            ("The answer: Paris", "The answer: Paris"),
            ("<answer>a</answer> <answer> b </answer>", "b"),
            ("<answer>a</answer> <answer> b", "a"),
            ("<answer>a", "<answer>a"),
            ("<think>Rome? \\boxed{Rome}</think>Paris", "Paris"),
            ("Rome?</think>\\boxed{Paris}", "Paris"),
            ("<think>Rome, \\boxed{Rome}", ""),
            ("<think>a</think>b<think>c", ""),
            ("", ""),
        ];
        for (response, answer) in cases {
            assert_eq!(reading.answer(response), answer, "{response:?}");
        }
    }

    #[test]
    fn what_says_that_there_is_no_answer_abstains() {
        let reading = Reading::default();
        for answer in [
            "not said",
            "It was NOT  mentioned.",
            "No information available",
            "I don\u{2019}t know.",
            "Unknown.",
            "N/A",
        ] {
            assert!(reading.abstains(answer), "{answer:?}");
        }
        for answer in ["", "Paris", "an unknown soldier", "knot saidi", "not saida"] {
            assert!(!reading.abstains(answer), "{answer:?}");
        }
        let own: Reading = serde_json::from_str(r#"{"abstentions": ["keine Angabe"]}"#).unwrap();
        assert!(own.abstains("Keine Angabe!") && !own.abstains("not said"));
        assert!(serde_json::from_str::<Reading>(r#"{"form": []}"#).is_err());
    }

    proptest! {
        #[test]
        fn an_answer_is_part_of_its_response(response in "(\\\\boxed\\{|[{}ab<>/]|<think>|</think>|<answer>|</answer>|Answer:|\n|é){0,20}") {
            let reading = Reading::default();
            let answer = reading.answer(&response);
            prop_assert!(response.contains(&answer));
            prop_assert_eq!(answer.trim(), answer.as_str());
        }
    }
}
