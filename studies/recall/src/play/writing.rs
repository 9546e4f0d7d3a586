//! What a history turn leaves in the memory: by rules, or by what policies say.

use record::Fault;

use super::{
    ANSWER, Ask, EXTRACT, FACT_SPLIT, LONG_MEM, MEMORY, SHORT_MEM, Walk, blocks, roles_of,
};
use crate::{
    event::Event,
    memory::{Author, Extraction, FactLine, MemoryManager, OpRecord, ViewBudget, protocol},
    prompts::{
        extract_prompt, fact_split_prompt, long_mem_prompt, memory_prompt, short_mem_prompt,
    },
    task::{TurnRole, TurnSpec},
};

impl Walk<'_> {
    pub(super) async fn remember(
        &mut self,
        turn: &TurnSpec,
        asker: &mut impl Ask,
    ) -> Result<(), Fault> {
        match self.stage.manager.config().extraction {
            Extraction::None | Extraction::Chunk | Extraction::Rule => {
                self.by_rule(turn);
                return Ok(());
            }
            Extraction::Model => self.by_model(turn, asker).await?,
            Extraction::Policy => self.by_policy(turn, asker).await?,
            Extraction::FourRoles => self.by_four_roles(turn, asker).await?,
        }
        self.compress(turn);
        self.ask_about(turn, asker).await
    }

    /// Whether no policy is asked in history turns.
    pub(super) fn writes_by_rule(&self) -> bool {
        roles_of(self.stage.manager.config().extraction) == [ANSWER]
    }

    pub(super) fn by_rule(&mut self, turn: &TurnSpec) {
        let memory_ops = self.stage.manager.extract_facts(&mut self.state, turn);
        let event = self.event(turn, "rule");
        self.notes.events.push(Event {
            memory_ops,
            ..event
        });
        self.compress(turn);
    }

    /// What becomes of the recent turns belongs to the last event of the turn.
    fn compress(&mut self, turn: &TurnSpec) {
        let manager = self.stage.manager;
        let compressed = manager.compress_short_term(&mut self.state, turn);
        let (tokens, items) = (self.state.token_len() as u32, self.state.len() as u32);
        if let Some(event) = self.notes.events.last_mut() {
            event.memory_ops.extend(compressed);
            (event.memory_tokens, event.memory_items) = (tokens, items);
        }
    }

    async fn by_model(&mut self, turn: &TurnSpec, asker: &mut impl Ask) -> Result<(), Fault> {
        let question = self.visible_question();
        let messages = extract_prompt(&self.stage.config.prompt, turn, question.as_deref());
        let author = author(
            self.stage.manager,
            turn,
            EXTRACT,
            &turn.observation(),
            asker,
        );
        let said = asker.ask(EXTRACT, turn.turn_id, &messages).await?;
        let pieces = protocol::read_extraction(&said.text);
        let manager = self.stage.manager;
        let done = manager.apply_pieces(&mut self.state, pieces, &author);
        self.note(turn, &author, said.text, done);
        Ok(())
    }

    async fn by_policy(&mut self, turn: &TurnSpec, asker: &mut impl Ask) -> Result<(), Fault> {
        let (config, manager) = (self.stage.config, self.stage.manager);
        let near = manager
            .neighbours(
                &self.state,
                &turn.observation(),
                manager.config().shown_neighbours,
            )
            .map_err(Fault::infra)?;
        let budget = match config.prompt.show_ids {
            true => config.prompt.writing_budget(),
            false => config.prompt.reading_budget(),
        };
        let view = manager.render_view(&self.state, &near, &budget);
        let seen = self.seen(view, &near);
        let question = self.visible_question();
        let messages = memory_prompt(
            &config.prompt,
            &seen.view,
            turn,
            config.format,
            question.as_deref(),
        );
        let author = author(manager, turn, MEMORY, &turn.observation(), asker);
        let said = asker.ask(MEMORY, turn.turn_id, &messages).await?;
        let done = manager.apply_written(&mut self.state, &said.text, config.format, &author);
        self.note(turn, &author, said.text, done);
        if let Some(event) = self.notes.events.last_mut() {
            event.retrieved = seen.retrieved;
            event.budget = blocks(seen.view.tokens);
        }
        Ok(())
    }

    /// `fact_split` takes the turn apart, `long_mem` decides on every important fact, `short_mem` folds
    /// the others into the summary.
    async fn by_four_roles(&mut self, turn: &TurnSpec, asker: &mut impl Ask) -> Result<(), Fault> {
        let (config, manager) = (self.stage.config, self.stage.manager);
        let question = self.visible_question();
        let messages = fact_split_prompt(&config.prompt, turn, config.format, question.as_deref());
        let by = author(manager, turn, FACT_SPLIT, &turn.observation(), asker);
        let said = asker.ask(FACT_SPLIT, turn.turn_id, &messages).await?;
        let split = protocol::read_split(&said.text, config.format);
        let unread = split.unreadable.iter();
        let unread = unread.map(|(text, why)| protocol::Piece::Malformed {
            text: text.clone(),
            why: why.clone(),
            span: 0..text.len(),
        });
        let refused = manager.apply_pieces(&mut self.state, unread.collect(), &by);
        self.note(turn, &by, said.text, refused);
        for fact in &split.important {
            self.decide(turn, fact, asker).await?;
        }
        self.summarize(turn, &split.unimportant, asker).await
    }

    async fn decide(
        &mut self,
        turn: &TurnSpec,
        fact: &str,
        asker: &mut impl Ask,
    ) -> Result<(), Fault> {
        let (config, manager) = (self.stage.config, self.stage.manager);
        let near = manager
            .neighbours(&self.state, fact, manager.config().shown_neighbours)
            .map_err(Fault::infra)?;
        let budget = ViewBudget {
            total: config.prompt.context_tokens,
            core: 0,
            summary: 0,
            window: 0,
            fact_line: FactLine::IdAndTime,
            ..ViewBudget::default()
        };
        let view = manager.render_view(&self.state, &near, &budget);
        let messages = long_mem_prompt(&config.prompt, fact, &view, config.format);
        let author = author(manager, turn, LONG_MEM, fact, asker);
        let said = asker.ask(LONG_MEM, turn.turn_id, &messages).await?;
        let pieces = protocol::read_decisions(&said.text, fact, config.format);
        let done = manager.apply_pieces(&mut self.state, pieces, &author);
        self.note(turn, &author, said.text, done);
        Ok(())
    }

    async fn summarize(
        &mut self,
        turn: &TurnSpec,
        facts: &[String],
        asker: &mut impl Ask,
    ) -> Result<(), Fault> {
        if facts.is_empty() {
            return Ok(());
        }
        let prompt = &self.stage.config.prompt;
        let messages = short_mem_prompt(prompt, self.state.summary(), facts);
        let author = author(
            self.stage.manager,
            turn,
            SHORT_MEM,
            &facts.join("\n"),
            asker,
        );
        let said = asker.ask(SHORT_MEM, turn.turn_id, &messages).await?;
        let pieces = protocol::read_short_memory(&said.text);
        let manager = self.stage.manager;
        let done = manager.apply_pieces(&mut self.state, pieces, &author);
        self.note(turn, &author, said.text, done);
        Ok(())
    }

    /// The event of a call that wrote to the memory.
    fn note(&mut self, turn: &TurnSpec, by: &Author, said: String, memory_ops: Vec<OpRecord>) {
        let event = self.event(turn, &by.agent_role);
        self.notes.events.push(Event {
            step_id: by.step_id,
            response: Some(said),
            memory_ops,
            ..event
        });
    }

    /// The next question to come, where history turns may see it.
    fn visible_question(&self) -> Option<String> {
        if !self.stage.config.prompt.query_visible_during_history {
            return None;
        }
        let ahead = &self.task.public.turns[self.at..];
        let target = ahead.iter().find(|turn| turn.turn_role == TurnRole::Target);
        target.map(TurnSpec::observation)
    }
}

/// Whoever is asked next, having read `read`.
fn author(
    manager: &MemoryManager,
    turn: &TurnSpec,
    role: &str,
    read: &str,
    asker: &impl Ask,
) -> Author {
    Author {
        observation_tokens: manager.count(read) as u32,
        ..Author::role(turn, role, Some(asker.next_step()))
    }
}
