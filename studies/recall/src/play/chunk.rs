//! Questions about what was just read, asked of the memory right behind it.

use record::Fault;

use super::{Ask, CHUNK_QA, Walk, said_to_the_end};
use crate::{
    event::ChunkAnswer,
    metrics::grade,
    prompts::{answer_prompt, shown},
    task::TurnSpec,
};

impl Walk<'_> {
    /// Asks what the task has to ask about the turn alone, where `chunk_qa` is paid for it (spec, section 4.1,
    /// Fine-Mem's chunk reward). Nothing of it is remembered.
    pub(super) async fn ask_about(
        &mut self,
        turn: &TurnSpec,
        asker: &mut impl Ask,
    ) -> Result<(), Fault> {
        let config = self.stage.config;
        if !config.step_rewards.asks_about_chunks() {
            return Ok(());
        }
        let task = self.task;
        for question in task.chunk_questions(turn.turn_id) {
            let timestamp = question.timestamp.as_deref();
            let (_, view) = self.found(&question.text)?;
            let prompt = answer_prompt(&config.prompt, shown(&view), &question.text, timestamp);
            let step_id = asker.next_step();
            let said = asker.ask(CHUNK_QA, turn.turn_id, &prompt).await?;
            let response = said_to_the_end(&said);
            let grade = grade(question.asked(), response, self.metric(), &config.answer);
            self.notes.chunk_answers.push(ChunkAnswer {
                turn_id: turn.turn_id,
                step_id,
                question: question.text.clone(),
                response: said.text,
                grade,
            });
        }
        Ok(())
    }
}
