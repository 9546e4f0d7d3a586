//! Chat templates: Jinja as `transformers` runs it, on minijinja.
//!
//! What differs between the two engines and matters to published templates is levelled here: block
//! whitespace, Python's JSON and floats, `raise_exception`, a clock that is given and never read,
//! line ends, `none is iterable`, and the `{% generation %}` blocks that mark assistant text.

use std::sync::Arc;

use jiff::civil::DateTime;
use minijinja::{
    Environment, Error, ErrorKind, Value,
    syntax::SyntaxConfig,
    value::{Kwargs, Serde},
};
use minijinja_contrib::pycompat::unknown_method_callback;
use record::Message;

use crate::{
    ChatError, SpecialTokens,
    marked::{self, MarkedText},
    python,
};

/// One compiled chat template.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    environment: Arc<Environment<'static>>,
}

const NAME: &str = "chat_template";

impl Template {
    /// Compiles a Jinja chat template.
    ///
    /// # Errors
    /// [`ChatError::Template`] with the line when the source does not compile, or when it holds one
    /// of the private-use characters U+E000 to U+E002, which this crate uses as marks.
    pub fn new(source: &str) -> Result<Self, ChatError> {
        if source.contains(marked::is_mark) {
            return Err(ChatError::Template(
                "the source holds one of the characters U+E000, U+E001 and U+E002, which are \
                 reserved; remove it"
                    .to_owned(),
            ));
        }
        let mut environment = environment()?;
        let runnable = mark_generation(&source.replace("\r\n", "\n"));
        environment.add_template_owned(NAME, runnable)?;
        Ok(Self {
            source: source.to_owned(),
            environment: Arc::new(environment),
        })
    }

    /// The template as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The same template with a date for `strftime_now`, which is undefined without one.
    pub fn at(&self, now: DateTime) -> Self {
        let mut environment = Environment::clone(&self.environment);
        environment.add_function("strftime_now", move |format: String| {
            jiff::fmt::strtime::format(format, now).map_err(invalid)
        });
        Self {
            source: self.source.clone(),
            environment: Arc::new(environment),
        }
    }

    /// The text of `messages`. What reads as one of `specials` inside a message is guarded, so that
    /// it stays ordinary text.
    ///
    /// # Errors
    /// [`ChatError::Template`] when the template refuses the messages.
    pub(crate) fn render<'a>(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
        tokens: &SpecialTokens,
        specials: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<MarkedText, ChatError> {
        let guarded: Vec<Message> = messages
            .iter()
            .map(|message| Message {
                role: message.role,
                content: marked::guard(&message.content, specials.clone()),
            })
            .collect();
        let context = minijinja::context! {
            messages => Value::from(Serde(guarded)),
            add_generation_prompt,
            tools => (),
            documents => (),
            ..Value::from(Serde(tokens))
        };
        let rendered = self.environment.get_template(NAME)?.render(context)?;
        Ok(MarkedText::parse(&rendered))
    }
}

fn environment() -> Result<Environment<'static>, ChatError> {
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    environment.set_unknown_method_callback(unknown_method_callback);
    environment.add_function(
        "raise_exception",
        |message: String| -> Result<Value, Error> { Err(invalid(message)) },
    );
    environment.add_filter("tojson", tojson);
    environment.add_filter("mark", |text: String| {
        format!("{}{text}{}", marked::BEGIN, marked::END)
    });
    environment.add_test("iterable", |value: &Value| {
        !value.is_none() && value.try_iter().is_ok()
    });
    Ok(environment)
}

fn invalid(message: impl ToString) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_string())
}

fn tojson(value: Serde<serde_json::Value>, options: Kwargs) -> Result<Value, Error> {
    let indent = options.get::<Option<usize>>("indent")?;
    // Non-ASCII text is always written as it is, whatever `ensure_ascii` says, as in transformers.
    let _ = options.get::<Option<bool>>("ensure_ascii")?;
    options.assert_all_used()?;
    Ok(Value::from_safe_string(python::to_json(&value, indent)))
}

/// `source` with its `{% generation %}` blocks turned into `{% filter mark %}` blocks.
fn mark_generation(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let inner = &tag[2..end];
        let name = inner.trim_matches(|c: char| matches!(c, '-' | '+') || c.is_whitespace());
        let replaced = match name {
            "generation" => inner.replace("generation", "filter mark"),
            "endgeneration" => inner.replace("endgeneration", "endfilter"),
            _ => inner.to_owned(),
        };
        out.push_str("{%");
        out.push_str(&replaced);
        out.push_str("%}");
        rest = &tag[end + 2..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str) -> Result<String, ChatError> {
        let messages = [Message::user("hi"), Message::assistant("yes")];
        let tokens = SpecialTokens {
            eos: Some("</s>".to_owned()),
            ..SpecialTokens::default()
        };
        let none = std::iter::empty();
        Ok(Template::new(source)?
            .render(&messages, true, &tokens, none)?
            .text)
    }

    #[test]
    fn templates_mean_what_they_mean_in_transformers() {
        let cases = [
            // Blocks swallow their line end and the indent before them.
            ("{% if true %}\n  a\n  {% endif %}\nb", "  a\nb"),
            ("a\r\nb", "a\nb"),
            (
                "{{ {'b': [1, 2.0, 1e-7], 'a': none}|tojson }}",
                r#"{"b": [1, 2.0, 1e-07], "a": null}"#,
            ),
            ("{{ {'b': 1}|tojson(indent=2) }}", "{\n  \"b\": 1\n}"),
            ("{{ 'é'|tojson(ensure_ascii=true) }}", "\"é\""),
            (
                "{{ none is iterable }}{{ tools is iterable }}{{ [] is iterable }}",
                "FalseFalseTrue",
            ),
            (
                "{{ messages[0].content.strip().upper() }}{{ messages[1]['role'] }}",
                "HIassistant",
            ),
            ("{{ strftime_now is defined }}", "False"),
            ("{{ eos_token }}{{ bos_token is defined }}", "</s>False"),
            ("{%- generation -%} x {%- endgeneration -%} y", "xy"),
            (
                "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% endfor %}",
                "yes",
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(render(source).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn a_template_can_refuse() {
        let error = render("{{ raise_exception('roles must alternate') }}").unwrap_err();
        assert!(
            error.to_string().contains("roles must alternate"),
            "{error}"
        );
        assert!(matches!(render("{% if %}"), Err(ChatError::Template(_))));
        assert!(matches!(render("\u{E001}"), Err(ChatError::Template(_))));
    }

    #[test]
    fn the_clock_is_given() {
        let template = Template::new("{{ strftime_now('%d %b %Y') }}").unwrap();
        let dated = template.at(jiff::civil::date(2026, 3, 9).at(1, 2, 3, 0));
        let tokens = SpecialTokens::default();
        assert_eq!(
            dated
                .render(&[], false, &tokens, std::iter::empty())
                .unwrap()
                .text,
            "09 Mar 2026"
        );
        assert!(
            template
                .render(&[], false, &tokens, std::iter::empty())
                .is_err()
        );
    }
}
