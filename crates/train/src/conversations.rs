//! Whole conversations as supervised rows.

use chat::Chat;
use rayon::prelude::*;
use record::{Datum, Message, Speaker, TokenId};

use crate::TrainError;

/// Renders conversations with the chat's own template, a row each. The mask holds for every turn of the
/// assistant: for the tokens that the template puts after the generation prompt of that turn, up to and
/// including the stop token. What comes after the assistant's last turn is left out. The rows are made on
/// the threads of the rayon pool that this is called on.
///
/// # Errors
/// [`TrainError::NotAPrefix`] for a template that renders a conversation in another way than the prompts of
/// its turns.
pub fn conversations_to_rows(
    chat: &Chat,
    conversations: impl IntoIterator<Item = Vec<Message>>,
) -> Result<Vec<Datum>, TrainError> {
    let conversations: Vec<Vec<Message>> = conversations.into_iter().collect();
    let rows: Vec<Result<Datum, TrainError>> = conversations
        .par_iter()
        .enumerate()
        .map(|(index, messages)| row(chat, messages, index))
        .collect();
    // The first one that cannot be rendered is named, whichever thread found it.
    rows.into_iter().collect()
}

fn row(chat: &Chat, messages: &[Message], index: usize) -> Result<Datum, TrainError> {
    let tokens = chat.render(messages, false)?.tokens;
    let mut mask = vec![false; tokens.len()];
    let turns = messages.iter().enumerate();
    for (turn, _) in turns.filter(|(_, message)| message.role == Speaker::Assistant) {
        let asked = chat.render(&messages[..turn], true)?.tokens;
        let Some(response) = tokens.strip_prefix(asked.as_slice()) else {
            return Err(TrainError::NotAPrefix { index });
        };
        mask[asked.len()..asked.len() + response_length(chat, response)].fill(true);
    }
    let end = mask
        .iter()
        .rposition(|&said| said)
        .map_or(0, |last| last + 1);
    mask.truncate(end);
    Ok(Datum {
        mask,
        ..Datum::supervised(&tokens[..end], &[])
    })
}

/// Tokens of the response that the rest of a chat begins with, its stop token included.
pub(crate) fn response_length(chat: &Chat, rest: &[TokenId]) -> usize {
    let stop = rest.iter().position(|id| chat.stop_tokens().contains(id));
    stop.map_or(rest.len(), |position| position + 1)
}

#[cfg(test)]
mod tests {
    use chat::{BpeOptions, Tokenizer};

    use super::*;
    use crate::{Example, examples_to_rows};

    fn chat() -> Chat {
        let options = BpeOptions {
            vocabulary: 300,
            special_tokens: Chat::builtin_special_tokens(),
        };
        let tokenizer = Tokenizer::train(["where is she now", "in Rome"], &options).unwrap();
        Chat::builtin(tokenizer).unwrap()
    }

    #[test]
    fn every_turn_of_the_assistant_is_learnt_and_nothing_else() {
        let chat = chat();
        let messages = vec![
            Message::system("be short"),
            Message::user("where is she now?"),
            Message::assistant("in Rome"),
            Message::user("and he?"),
            Message::assistant("not said"),
            Message::user("thanks"),
        ];
        let rows = conversations_to_rows(&chat, [messages]).unwrap();
        let row = &rows[0];
        let mut said: Vec<Vec<TokenId>> = vec![Vec::new()];
        for (&id, &learnt) in row.tokens.iter().zip(&row.mask) {
            match (learnt, said.last_mut()) {
                (true, Some(run)) => run.push(id),
                (false, Some(run)) if !run.is_empty() => said.push(Vec::new()),
                _ => {}
            }
        }
        let texts: Vec<String> = said
            .iter()
            .map(|run| chat.response_text(run).unwrap())
            .collect();
        assert_eq!(texts, ["in Rome", "not said"]);
        let ends = |run: &Vec<TokenId>| chat.stop_tokens().contains(run.last().unwrap());
        assert!(said.iter().all(ends));
    }

    #[test]
    fn one_turn_is_the_row_of_its_example() {
        let chat = chat();
        let prompt = vec![Message::user("where is she now?")];
        let whole = [prompt.clone(), vec![Message::assistant("in Rome")]].concat();
        let example = Example {
            prompt,
            answer: "in Rome".to_owned(),
        };
        assert_eq!(
            conversations_to_rows(&chat, [whole]).unwrap(),
            examples_to_rows(&chat, [example]).unwrap()
        );
    }
}
