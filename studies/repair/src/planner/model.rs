//! A planner that is a policy: it sees what it is told, what it began its last reply with, and the latest
//! observation (spec of the repair study, sections 1.6 and 1.8).

use policy::ToolChoice;
use record::{Fault, Message, StopReason};
use rollout::{Cx, Tools};

use super::{Asked, Choice, PLANNER, PlannerConfig, RulePlanner};
use crate::{
    action::{ActionFault, FaultCode, tool_schemas},
    environment::{Observation, PlannerEnv},
    wire::{Reading, Reply, WireFormat, calling_prompt, has_calls, system_prompt, write_calls},
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
        let calls = self.config.format == WireFormat::Tools && cx.is_asked_in_messages(PLANNER)?;
        let (system, tools) = match calls {
            true => (calling_prompt(), tools()),
            false => (system_prompt(self.config.format), Tools::default()),
        };
        let messages = told(&self.config, system, &self.last, observation);
        let call = cx.next_step();
        cx.at_turn(step);
        let answer = cx.ask_with(PLANNER, &messages, &tools).await?;
        Ok(Asked {
            text: answer.text,
            tool_calls: answer.tool_calls,
            calls_apart: calls,
            is_cut_off: answer.stop == StopReason::Length,
            call,
        })
    }

    pub(super) fn choose(&mut self, asked: Asked, env: &PlannerEnv<'_>) -> Choice {
        let PlannerConfig {
            format, reading, ..
        } = self.config;
        self.last = first_sentence(&asked.text);
        // Servers that know nothing of tools leave calls in the text.
        let (mut reply, text) = match asked.tool_calls.as_slice() {
            [] => {
                let is_bare = asked.calls_apart && !has_calls(&asked.text);
                let reply = match (is_bare, reading) {
                    (true, Reading::Strict) => Reply::of_calls(&[], reading),
                    _ => Reply::read(&asked.text, format, reading),
                };
                (reply, asked.text)
            }
            calls => {
                let text = [asked.text.trim(), &write_calls(calls)].join("\n");
                (Reply::of_calls(calls, reading), text.trim().to_owned())
            }
        };
        if asked.is_cut_off && reply.action.is_err() {
            let detail = "the reply was cut off at its limit of tokens before its action was whole; write less before \
                          the action, and a shorter one";
            reply.action = Err(ActionFault::new(FaultCode::ReplyCutOff, detail));
        }
        let mut choice = Choice {
            reply,
            text: Some(text),
            call: Some(asked.call),
            fallback: None,
            gives_up: false,
        };
        if let (Err(fault), true) = (&choice.reply.action, self.config.rule_fallback) {
            let by_rule = self.rules.next(env);
            // Where rules have nothing left, the model may have: it is told what was wrong and asked on.
            if !by_rule.gives_up || env.is_mended() {
                choice.fallback = Some(fault.to_string());
                choice.reply = by_rule.reply;
            }
        }
        choice
    }
}

/// What a policy is asked that writes calls in its text; `last` is what its last reply began with.
pub(crate) fn messages(
    config: &PlannerConfig,
    last: &str,
    observation: &Observation,
) -> Vec<Message> {
    told(config, system_prompt(config.format), last, observation)
}

fn told(
    config: &PlannerConfig,
    system: String,
    last: &str,
    observation: &Observation,
) -> Vec<Message> {
    let mut messages = Vec::new();
    if config.instructions {
        messages.push(Message::system(system));
    }
    if config.preamble && !last.is_empty() {
        messages.push(Message::assistant(last));
    }
    messages.push(Message::user(observation.text.clone()));
    messages
}

/// Every reply is a call.
fn tools() -> Tools {
    Tools {
        functions: tool_schemas(),
        choice: ToolChoice::Required,
    }
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
