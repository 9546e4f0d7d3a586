//! A planner that is a policy: it sees what it is told, what it began its last reply with, and the latest
//! observation (spec of the repair study, sections 1.6 and 1.8).

use record::{Fault, Message};
use rollout::Cx;

use super::{Asked, Choice, PLANNER, PlannerConfig, RulePlanner};
use crate::{
    environment::{Observation, PlannerEnv},
    wire::{Reply, system_prompt},
};

/// Characters of the last reply that are shown.
const PREAMBLE: usize = 240;

#[derive(Debug)]
pub struct ModelPlanner {
    config: PlannerConfig,
    last: String,
    rules: RulePlanner,
}

impl ModelPlanner {
    pub fn new(config: PlannerConfig) -> Self {
        Self {
            config,
            last: String::new(),
            rules: RulePlanner::default(),
        }
    }

    pub(super) async fn ask(
        &mut self,
        step: u32,
        observation: &Observation,
        cx: &mut Cx,
    ) -> Result<Asked, Fault> {
        let messages = messages(&self.config, &self.last, observation);
        let call = cx.next_step();
        cx.at_turn(step);
        let text = cx.ask(PLANNER, &messages).await?.text;
        Ok(Asked { text, call })
    }

    pub(super) fn choose(&mut self, asked: Asked, env: &PlannerEnv<'_>) -> Choice {
        let reply = Reply::read(&asked.text, self.config.format, self.config.reading);
        self.last = first_sentence(&asked.text);
        let mut choice = Choice {
            reply,
            text: Some(asked.text),
            call: Some(asked.call),
            fallback: None,
            gives_up: false,
        };
        if let (Err(fault), true) = (&choice.reply.action, self.config.rule_fallback) {
            let by_rule = self.rules.next(env);
            choice.fallback = Some(fault.to_string());
            choice.gives_up = by_rule.gives_up;
            choice.reply = by_rule.reply;
        }
        choice
    }
}

/// What the policy is asked; `last` is what its last reply began with.
pub(crate) fn messages(
    config: &PlannerConfig,
    last: &str,
    observation: &Observation,
) -> Vec<Message> {
    let mut messages = Vec::new();
    if config.instructions {
        messages.push(Message::system(system_prompt(config.format)));
    }
    if config.preamble && !last.is_empty() {
        messages.push(Message::assistant(last));
    }
    messages.push(Message::user(observation.text.clone()));
    messages
}

fn first_sentence(text: &str) -> String {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, c)| {
            let is_last = text[at + c.len_utf8()..].starts_with(char::is_whitespace);
            *c == '\n' || (matches!(c, '.' | '!' | '?') && is_last)
        })
        .map_or(text.len(), |(at, c)| at + c.len_utf8());
    text[..end].trim().chars().take(PREAMBLE).collect()
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn a_sentence_ends_where_it_does() {
        assert_eq!(
            first_sentence(" Look at a.py first. Then go. "),
            "Look at a.py first."
        );
        assert_eq!(first_sentence("no end"), "no end");
        assert_eq!(first_sentence("one\ntwo"), "one");
        assert_eq!(first_sentence(&"x".repeat(500)).len(), 240);
        assert_eq!(first_sentence(""), "");
    }
}
