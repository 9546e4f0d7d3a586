//! A model that says whether an answer is right: the optional role `judge` (spec of the recall study,
//! sections 1.8 and 3).
//!
//! It is the only role that is shown gold answers, and what it says goes into grades alone. A judge that says
//! neither yes nor no is a fault and never a 0.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use record::{Episode, Fault, Message, StopReason};
use serde::{Deserialize, Serialize};

use crate::{
    answer::Reading,
    event::{Grade, Notes},
    metrics::{Asked, Metric},
    play::Ask,
};

/// The role that judges answers, under `reward.judge`. Never train the policy that plays it.
pub const JUDGE: &str = "judge";

/// What a judge said of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    pub right: bool,
    /// BLAKE3 of all that the judge was shown, in hex digits.
    pub key: String,
    /// The call, as its index in the episode's calls; absent where the verdict was known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<u32>,
}

/// The verdicts of the steps before. Those of a running step are not in it, so that what an episode asks does
/// not depend on which of its neighbours was faster.
#[derive(Debug, Default)]
pub(crate) struct ModelJudge {
    known: Mutex<HashMap<String, bool>>,
}

/// How strict a judge is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rubric {
    /// All that the right answer says must be there.
    Whole,
    /// The same, and lengths of time may be off by one.
    Duration,
    /// What holds now must be there; what held before may be.
    Newest,
    /// The gold answer describes a good response.
    Preference,
    /// The right answer is that nobody said.
    Abstention,
}

impl Rubric {
    /// LongMemEval's kinds of questions have rules of their own.
    fn of(asked: &Asked<'_>, metric: Metric) -> Self {
        let name = asked.question_type.to_lowercase();
        if asked.abstain {
            return Self::Abstention;
        }
        if metric != Metric::LongMemEval {
            return Self::Whole;
        }
        match name {
            name if name.contains("temporal") => Self::Duration,
            name if name.contains("update") => Self::Newest,
            name if name.contains("preference") => Self::Preference,
            _ => Self::Whole,
        }
    }

    fn rule(self) -> &'static str {
        match self {
            Self::Whole => {
                "Say yes if the response gives the right answer, in whatever words, or all the steps \
                 that lead to it. Say no if it gives another answer, or a part of it alone."
            }
            Self::Duration => {
                "Say yes if the response gives the right answer, in whatever words, or all the steps \
                 that lead to it. Say no if it gives another answer, or a part of it alone. A number of \
                 days, weeks, months or years that is one too large or too small is right."
            }
            Self::Newest => {
                "The right answer has changed over time, and the one below is the newest. Say yes if the \
                 response gives it as what holds now, even if it also tells what held before. Otherwise \
                 say no."
            }
            Self::Preference => {
                "The right answer below describes what a good response does. Say yes if the response \
                 remembers what the user told and makes right use of it; it need not do everything that \
                 is described. Otherwise say no."
            }
            Self::Abstention => {
                "The question cannot be answered from the conversations. Say yes if the response says so, \
                 or says that only something else is known. Say no if it answers."
            }
        }
    }
}

/// The chat that asks for a verdict.
pub(crate) fn judge_prompt(
    question: &str,
    asked: &Asked<'_>,
    answer: &str,
    rubric: Rubric,
) -> Vec<Message> {
    let gold = match (rubric, asked.answers) {
        (Rubric::Abstention, []) => "nobody said".to_owned(),
        (Rubric::Abstention, reasons) => format!("nobody said ({})", reasons.join("; ")),
        (_, answers) => answers.join("\nor: "),
    };
    vec![Message::user(format!(
        "You judge a response to a question about past conversations.\n\n{}\n\nQuestion: {question}\n\n\
         Right answer: {gold}\n\nResponse: {answer}\n\nIs the response right? Reply with yes or no alone.",
        rubric.rule()
    ))]
}

/// The longest of the chats that ask about `question`, without the answers.
pub(crate) fn bare_prompt(question: &str) -> Vec<Message> {
    let asked = Asked {
        question_type: "",
        answers: &[],
        abstain: false,
    };
    judge_prompt(question, &asked, "", Rubric::Duration)
}

/// Yes or no: the first word if it is one of them, otherwise whichever of the two words the reply has. A reply
/// with both or neither has no verdict, nor has one that was cut before it came to one.
pub(crate) fn read_verdict(reply: &str, stop: StopReason, reading: &Reading) -> Option<bool> {
    let said = reading.without_thinking(reply).to_lowercase();
    let mut words = said
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    match words.clone().next() {
        Some("yes") => return Some(true),
        Some("no") => return Some(false),
        _ if stop == StopReason::Length => return None,
        _ => {}
    }
    let has_yes = words.clone().any(|word| word == "yes");
    let has_no = words.any(|word| word == "no");
    (has_yes != has_no).then_some(has_yes)
}

impl ModelJudge {
    /// Puts a judge's verdict in place of the score of a grade. Asks the role [`JUDGE`] through `asker`, unless
    /// an earlier step asked the same.
    ///
    /// # Errors
    /// Those of the role; a grader fault where it says neither yes nor no.
    pub(crate) async fn judge(
        &self,
        asker: &mut impl Ask,
        turn_id: u32,
        question: &str,
        asked: &Asked<'_>,
        grade: &mut Grade,
        reading: &Reading,
    ) -> Result<(), Fault> {
        let rubric = Rubric::of(asked, grade.metric);
        let messages = judge_prompt(question, asked, &grade.answer, rubric);
        let key = key_of(&messages);
        let known = self.known().get(&key).copied();
        let (right, step_id) = match known {
            Some(right) => (right, None),
            None => {
                let step_id = asker.next_step();
                let said = asker.ask(JUDGE, turn_id, &messages).await?;
                let right = read_verdict(&said.text, said.stop, reading).ok_or_else(|| {
                    Fault::grader(format!(
                        "turn {turn_id}: the judge was to say yes or no, and said {:?}; bind `{JUDGE}` to a \
                         policy that can judge, with enough max_tokens",
                        said.text
                    ))
                })?;
                (right, Some(step_id))
            }
        };
        grade.score = f64::from(right);
        grade.judged = Some(Judged {
            right,
            key,
            step_id,
        });
        Ok(())
    }

    /// Keeps the verdicts of an episode of a training step that is over. Evaluations leave nothing behind: a
    /// resumed run does not see them again.
    pub(crate) fn learn(&self, episode: &Episode) {
        if episode.id.step == 0 {
            return;
        }
        let events = Notes::of(episode).map_or_else(Vec::new, |notes| notes.events);
        let grades = events.into_iter().filter_map(|event| event.grade);
        let verdicts = grades.filter_map(|grade| grade.judged);
        let mut known = self.known();
        for verdict in verdicts {
            // Of two verdicts on the same thing in one step the first holds, in the order of episodes.
            known.entry(verdict.key).or_insert(verdict.right);
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        // Every entry is whole at any time.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key_of(messages: &[Message]) -> String {
    let text: String = messages
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_one_of_two_words() {
        let reading = Reading::default();
        let read = |reply| read_verdict(reply, StopReason::Stop, &reading);
        for (reply, verdict) in [
            ("yes", Some(true)),
            ("No.", Some(false)),
            ("**Yes**, although no date is given", Some(true)),
            ("I would say no", Some(false)),
            ("<think>yes?</think> no", Some(false)),
            ("<think>yes", None),
            ("yesterday", None),
            ("I would not say yes, so no", None),
            ("", None),
        ] {
            assert_eq!(read(reply), verdict, "{reply:?}");
        }
        let cut = |reply| read_verdict(reply, StopReason::Length, &reading);
        assert_eq!(cut("No, because the"), Some(false));
        assert_eq!(cut("The answer says yes"), None);
    }

    #[test]
    fn kinds_of_questions_have_their_rules() {
        let answers = ["18 days".to_owned(), "two weeks and four days".to_owned()];
        let asked = |question_type, abstain| Asked {
            question_type,
            answers: &answers,
            abstain,
        };
        for (question_type, abstain, metric, rubric) in [
            (
                "temporal-reasoning",
                false,
                Metric::LongMemEval,
                Rubric::Duration,
            ),
            (
                "temporal-reasoning",
                true,
                Metric::LongMemEval,
                Rubric::Abstention,
            ),
            (
                "knowledge-update",
                false,
                Metric::LongMemEval,
                Rubric::Newest,
            ),
            (
                "single-session-preference",
                false,
                Metric::LongMemEval,
                Rubric::Preference,
            ),
            ("multi-session", false, Metric::LongMemEval, Rubric::Whole),
            ("temporal", false, Metric::Locomo, Rubric::Whole),
            ("adversarial", true, Metric::Locomo, Rubric::Abstention),
        ] {
            assert_eq!(Rubric::of(&asked(question_type, abstain), metric), rubric);
        }
        let prompt = |rubric| judge_prompt("How long?", &asked("", false), "19 days", rubric);
        let text = &prompt(Rubric::Duration)[0].content;
        for part in [
            "How long?",
            "18 days\nor: two weeks",
            "19 days",
            "one too large",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!prompt(Rubric::Whole)[0].content.contains("one too large"));
        assert_ne!(
            key_of(&prompt(Rubric::Whole)),
            key_of(&prompt(Rubric::Duration))
        );
    }
}
