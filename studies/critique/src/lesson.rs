//! Critiques that somebody wrote, as rows that a critic is supervised on.

use rand::seq::SliceRandom;
use record::{Message, Seed};
use serde::{Deserialize, Serialize};

use crate::prompts::SYSTEM;

/// A row of the critic's supervised data: what it is asked and the critique that answers it, columns as the original
/// has them (spec of the critique study, sections 1.3 and 2). Other columns are for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriticLesson {
    /// The user's turn, without a hint.
    pub critic_instruction: String,
    pub critique: String,
}

impl CriticLesson {
    /// The chat and the answer to learn, both without white space at their ends. The stop token comes from the
    /// chat's template, and nothing before the answer is learnt.
    pub fn lesson(&self) -> (Vec<Message>, String) {
        let prompt = vec![
            Message::system(SYSTEM),
            Message::user(self.critic_instruction.trim()),
        ];
        (prompt, self.critique.trim().to_owned())
    }
}

/// The order in which `n` lessons come in an epoch: each once, in every epoch otherwise.
pub fn lesson_order(n: usize, seed: Seed, epoch: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut seed.stream("epoch", epoch).rng());
    order
}

#[cfg(test)]
mod tests {
    use record::Speaker;

    use super::*;

    #[test]
    fn a_row_is_a_chat_with_the_stock_system_message() {
        let row =
            r#"{"critic_instruction": "\nLook at this. ", "critique": " Fine.\n", "task_id": 3}"#;
        let row: CriticLesson = serde_json::from_str(row).unwrap();
        let (chat, answer) = row.lesson();
        let said: Vec<(Speaker, &str)> = chat
            .iter()
            .map(|message| (message.role, message.content.as_str()))
            .collect();
        let told = (Speaker::System, SYSTEM);
        assert_eq!(said, [told, (Speaker::User, "Look at this.")]);
        assert_eq!(answer, "Fine.");
    }

    #[test]
    fn every_epoch_has_every_lesson_in_an_order_of_its_own() {
        let epochs: Vec<Vec<usize>> = (0..3)
            .map(|epoch| lesson_order(20, Seed(1), epoch))
            .collect();
        for epoch in &epochs {
            let mut sorted = epoch.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
        assert_eq!(epochs[0], lesson_order(20, Seed(1), 0));
    }
}
