//! The rule that makes facts of a turn without asking anyone.

use crate::task::TurnSpec;

use super::{
    dates::{self, Day},
    fact::FactKind,
    manager::CountTokens,
    sentences::{pieces, sentences},
};

/// What the rule takes out of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    pub kind: FactKind,
    pub text: String,
    /// The utterance's own name and its session's.
    pub source_ids: Vec<String>,
}

/// One fact a sentence, behind its speaker, with the dates that follow from the turn's own; sentences that
/// are nothing but a greeting, thanks or a farewell are dropped. What says when it happened is episodic, the
/// rest semantic. Sentences of more than `limit` tokens become several facts (0: no limit). With `possessive`,
/// what a speaker says of something of their own is said of it by name: `Ann: my cat is grey.` becomes
/// `Ann's cat is grey.`
pub fn extract(
    turn: &TurnSpec,
    limit: usize,
    possessive: bool,
    count: &CountTokens,
) -> Vec<Extracted> {
    let today = turn.timestamp.as_deref().and_then(Day::read);
    let mut extracted = Vec::new();
    for utterance in &turn.utterances {
        let source_ids: Vec<String> = utterance
            .source_id
            .iter()
            .chain(&turn.session_id)
            .cloned()
            .collect();
        for sentence in sentences(&utterance.text) {
            if is_courtesy(sentence, turn) {
                continue;
            }
            let kind = if dates::says_when(sentence) {
                FactKind::Episodic
            } else {
                FactKind::Semantic
            };
            let resolved = match today {
                Some(today) => dates::resolve(sentence, today),
                None => sentence.to_owned(),
            };
            let text = match &utterance.speaker {
                Some(speaker) => match own(&resolved).filter(|_| possessive) {
                    Some(rest) => format!("{speaker}'s {rest}"),
                    None => format!("{speaker}: {resolved}"),
                },
                None => resolved,
            };
            let limit = if limit == 0 { usize::MAX } else { limit };
            extracted.extend(
                pieces(&text, limit, &|text| count(text))
                    .into_iter()
                    .map(|piece| Extracted {
                        kind,
                        text: piece.to_owned(),
                        source_ids: source_ids.clone(),
                    }),
            );
        }
    }
    extracted
}

/// What follows `my` in a sentence that begins with it.
fn own(sentence: &str) -> Option<&str> {
    let (first, rest) = sentence.split_once(' ')?;
    first.eq_ignore_ascii_case("my").then_some(rest)
}

/// The turn as it is, in pieces of at most `limit` tokens that end where lines end, or, within lines that are
/// longer than that, where words end.
pub fn chunks(turn: &TurnSpec, limit: usize, count: &CountTokens) -> Vec<Extracted> {
    let mut found: Vec<Extracted> = Vec::new();
    let mut open: Option<Extracted> = None;
    for utterance in &turn.utterances {
        let line = utterance.line();
        for piece in pieces(&line, limit, &|text| count(text)) {
            let longer = open
                .as_ref()
                .map(|open| format!("{}\n{piece}", open.text))
                .filter(|longer| count(longer) <= limit);
            let chunk = match (longer, &mut open) {
                (Some(longer), Some(open)) => {
                    open.text = longer;
                    open
                }
                _ => {
                    found.extend(open.take());
                    open.insert(Extracted {
                        kind: FactKind::Episodic,
                        text: piece.to_owned(),
                        source_ids: Vec::new(),
                    })
                }
            };
            if let Some(source) = &utterance.source_id
                && !chunk.source_ids.contains(source)
            {
                chunk.source_ids.push(source.clone());
            }
        }
    }
    found.extend(open);
    for chunk in &mut found {
        chunk.source_ids.extend(turn.session_id.clone());
    }
    found
}

/// Whether a sentence says nothing but hello, thank you, goodbye, or that one is listening. Names of the
/// turn's speakers may stand in it, and behind a word of greeting any word in upper case.
fn is_courtesy(sentence: &str, turn: &TurnSpec) -> bool {
    const WORDS: &[&str] = &[
        "hi", "hello", "hey", "hiya", "yo", "there", "bye", "goodbye", "cheers", "welcome",
        "thanks", "thank", "you", "ok", "okay", "wow", "haha", "lol", "yeah", "yep", "yes", "no",
        "nope", "sure", "cool", "great", "nice", "awesome", "amazing", "right", "oh", "ah", "hmm",
        "again", "everyone", "all", "so", "much", "a", "lot", "very", "too", "well", "dear",
        "friend", "please", "sorry",
    ];
    const PHRASES: &[&str] = &[
        "good morning",
        "good afternoon",
        "good evening",
        "good night",
        "how are you",
        "how are you doing",
        "how are things",
        "how is it going",
        "how's it going",
        "how have you been",
        "what's up",
        "nice to meet you",
        "nice to see you",
        "good to see you",
        "great to see you",
        "great to hear from you",
        "long time no see",
        "long time no talk",
        "see you",
        "see you soon",
        "see you later",
        "see you then",
        "talk to you later",
        "talk to you soon",
        "talk soon",
        "take care",
        "have a good day",
        "have a great day",
        "have a nice day",
        "my pleasure",
        "no problem",
        "you're welcome",
        "you are welcome",
        "got it",
        "i see",
        "sounds good",
        "sounds great",
        "that's great",
        "that's awesome",
    ];
    const CHINESE: &[&str] = &[
        "你好",
        "您好",
        "大家好",
        "早上好",
        "上午好",
        "下午好",
        "晚上好",
        "早安",
        "晚安",
        "谢谢",
        "谢谢你",
        "谢谢您",
        "多谢",
        "非常感谢",
        "再见",
        "拜拜",
        "回头见",
        "明天见",
        "好的",
        "好",
        "嗯",
        "是的",
        "不客气",
        "没关系",
        "哈哈",
        "好久不见",
        "最近怎么样",
        "最近好吗",
        "你好吗",
    ];
    const GREETINGS: &[&str] = &[
        "hi", "hello", "hey", "hiya", "dear", "bye", "goodbye", "thanks", "thank", "welcome",
    ];
    let sentence = sentence.replace('’', "'");
    let is_name = |word: &str| {
        turn.utterances
            .iter()
            .filter_map(|utterance| utterance.speaker.as_deref())
            .any(|speaker| {
                let speaker = speaker.to_lowercase();
                speaker == word || speaker.split_whitespace().any(|part| part == word)
            })
    };
    let clauses = sentence.split(|character: char| {
        !character.is_alphanumeric() && !matches!(character, ' ' | '\'' | '-' | '_')
    });
    clauses.map(str::trim).all(|clause| {
        let lower = clause.to_lowercase();
        if lower.is_empty() || CHINESE.contains(&lower.as_str()) || is_name(&lower) {
            return true;
        }
        let words = lower.split_whitespace().zip(clause.split_whitespace());
        let greets = words
            .clone()
            .next()
            .is_some_and(|(word, _)| GREETINGS.contains(&word));
        let without_names: Vec<&str> = words
            .filter(|(word, written)| {
                let is_named = greets && written.starts_with(char::is_uppercase);
                !is_name(word) && (!is_named || WORDS.contains(word))
            })
            .map(|(word, _)| word)
            .collect();
        PHRASES.contains(&without_names.join(" ").as_str())
            || without_names.iter().all(|word| WORDS.contains(word))
    })
}
