//! A tokenizer with its template: messages to tokens, sampled tokens to text.

use jiff::civil::DateTime;
use record::{Message, TokenId};

use crate::{ChatError, SpecialTokens, Template, TemplateInput, Tokenizer, files::Extras};

/// What one family of models makes of messages.
#[derive(Clone, Debug)]
pub struct Chat {
    tokenizer: Tokenizer,
    template: Template,
    special: SpecialTokens,
    stop: Vec<TokenId>,
    /// What its files say beside this.
    extras: Extras,
}

/// Messages as tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderedChat {
    /// What the template made of the messages.
    pub text: String,
    pub tokens: Vec<TokenId>,
    /// As long as `tokens`: true where the template says that the assistant speaks, in
    /// `{% generation %}` blocks. All false for templates that have none.
    pub assistant_mask: Vec<bool>,
}

/// Ends every turn of the built-in template.
const END: &str = "<|end|>";

const SPEAKERS: [&str; 4] = ["<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"];

/// One token opens a turn and one closes it: `<|user|>…<|end|><|assistant|>…<|end|>`. The closing
/// token of an assistant turn is the assistant's own, for it has to learn to stop.
const BUILTIN: &str = "\
{%- for message in messages -%}
{{- '<|' + message.role + '|>' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content + eos_token -}}{%- endgeneration -%}
{%- else -%}
{{- message.content + eos_token -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
";

impl Chat {
    /// The special tokens that [`Chat::builtin`] needs in its vocabulary.
    pub fn builtin_special_tokens() -> Vec<String> {
        SPEAKERS
            .into_iter()
            .chain([END])
            .map(str::to_owned)
            .collect()
    }

    /// The chat of models that are trained from scratch: one token per speaker, `<|end|>` after
    /// every turn, nothing else between the contents.
    ///
    /// # Errors
    /// [`ChatError::MissingToken`] unless all of [`Chat::builtin_special_tokens`] are special tokens
    /// of `tokenizer`.
    pub fn builtin(tokenizer: Tokenizer) -> Result<Self, ChatError> {
        for token in Self::builtin_special_tokens() {
            if !tokenizer
                .special_tokens()
                .any(|(special, _)| special == token)
            {
                let purpose = "a special token of the built-in chat template";
                return Err(ChatError::MissingToken { token, purpose });
            }
        }
        let special = SpecialTokens {
            eos: Some(END.to_owned()),
            pad: Some(END.to_owned()),
            ..SpecialTokens::default()
        };
        Self::new(tokenizer, Template::new(BUILTIN)?, special, &[])
    }

    /// A chat from its parts. Its turns end at `special.eos` and at `more_stops`.
    ///
    /// # Errors
    /// [`ChatError::MissingToken`] when `special.eos` is not in the vocabulary.
    pub fn new(
        tokenizer: Tokenizer,
        template: Template,
        special: SpecialTokens,
        more_stops: &[TokenId],
    ) -> Result<Self, ChatError> {
        let mut stop = Vec::new();
        if let Some(eos) = &special.eos {
            let id = end_of_turn(&tokenizer, eos)?;
            stop.push(id);
        }
        for &id in more_stops {
            if !stop.contains(&id) {
                stop.push(id);
            }
        }
        Ok(Self {
            tokenizer,
            template,
            special,
            stop,
            extras: Extras::default(),
        })
    }

    /// The same chat with a date for templates that ask for it (`strftime_now`).
    pub fn at(&self, now: DateTime) -> Self {
        Self {
            template: self.template.at(now),
            ..self.clone()
        }
    }

    pub(crate) fn with_extras(self, extras: Extras) -> Self {
        Self { extras, ..self }
    }

    pub(crate) fn extras(&self) -> &Extras {
        &self.extras
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn template(&self) -> &Template {
        &self.template
    }

    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special
    }

    /// Sampling one of these ends an assistant turn.
    pub fn stop_tokens(&self) -> &[TokenId] {
        &self.stop
    }

    /// The tokens of `messages`, equal to those of `apply_chat_template` in `transformers` unless a
    /// message contains the text of a special token, which here stays text.
    ///
    /// A token belongs to the assistant when its first byte does.
    ///
    /// # Errors
    /// [`ChatError::Template`] when the template refuses the messages.
    pub fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<RenderedChat, ChatError> {
        let input = TemplateInput {
            add_generation_prompt,
            ..TemplateInput::default()
        };
        self.render_with(messages, &input)
    }

    /// [`Chat::render`] with tools, documents and switches of the template.
    ///
    /// # Errors
    /// [`ChatError::Template`] when the template refuses the messages.
    pub fn render_with(
        &self,
        messages: &[Message],
        input: &TemplateInput,
    ) -> Result<RenderedChat, ChatError> {
        let specials = self.tokenizer.special_tokens().map(|(token, _)| token);
        let specials: Vec<&str> = specials.collect();
        let marked = self
            .template
            .render(messages, input, &self.special, &specials)?;
        let tokens = self.tokenizer.encode_marked(&marked)?;
        Ok(RenderedChat {
            assistant_mask: tokens
                .iter()
                .map(|(_, range)| marked.is_assistant(range.start))
                .collect(),
            tokens: tokens.into_iter().map(|(id, _)| id).collect(),
            text: marked.text,
        })
    }

    /// What a sampled response says: its text without the stop token that may end it.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`], which byte-level tokenizers never give.
    pub fn response_text(&self, response: &[TokenId]) -> Result<String, ChatError> {
        let said = match response.split_last() {
            Some((last, said)) if self.stop.contains(last) => said,
            _ => response,
        };
        self.tokenizer.decode(said)
    }
}

/// The id of the token that ends a turn.
pub(crate) fn end_of_turn(tokenizer: &Tokenizer, eos: &str) -> Result<TokenId, ChatError> {
    tokenizer
        .token_to_id(eos)
        .ok_or_else(|| ChatError::MissingToken {
            token: eos.to_owned(),
            purpose: "the token that ends a turn (`eos_token`)",
        })
}
