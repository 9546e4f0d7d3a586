//! Chat templates: Jinja as `transformers` runs it, on minijinja.
//!
//! What differs between the two engines and matters to published templates is levelled here: block
//! whitespace, Python's JSON and floats, `raise_exception`, a clock that is given and never read,
//! line ends, `none is iterable`, and the `{% generation %}` blocks that mark assistant text.

use std::sync::Arc;

use jiff::civil::DateTime;
use minijinja::{
    Environment, Error, ErrorKind, State, Value,
    syntax::SyntaxConfig,
    value::{Kwargs, Serde, from_args},
};
use minijinja_contrib::pycompat::unknown_method_callback;
use record::{FunctionCall, Message, ToolCall};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::{
    ChatError, SpecialTokens,
    marked::{self, MarkedText},
    python,
};

/// What a template may be given beside the messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateInput {
    /// End with the beginning of an assistant's turn.
    pub add_generation_prompt: bool,
    /// The functions that the assistant may call, as JSON schemas; like messages they are only text.
    pub tools: Vec<Json>,
    /// What the assistant may look up; like messages they are only text.
    pub documents: Vec<Json>,
    /// Switches of the template (`enable_thinking`), said by whoever runs the model: they may write
    /// special tokens.
    pub variables: Map<String, Json>,
}

/// One compiled chat template.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    environment: Arc<Environment<'static>>,
}

const NAME: &str = "chat_template";

/// Instructions that one rendering may take: far more than a chat of thousands of turns needs, and some
/// seconds at most.
const FUEL: u64 = 50_000_000;

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

    /// The text of `messages`. What could be or become one of `specials` inside a message or a tool is
    /// guarded, so that it stays ordinary text.
    ///
    /// # Errors
    /// [`ChatError::Template`] when the template refuses the messages.
    pub(crate) fn render(
        &self,
        messages: &[Message],
        input: &TemplateInput,
        tokens: &SpecialTokens,
        specials: &[&str],
    ) -> Result<MarkedText, ChatError> {
        let guarded: Vec<Message> = messages
            .iter()
            .map(|message| guard_message(message, specials))
            .collect();
        let listed = |list: &[Json]| match list {
            [] => Value::from(()),
            list => {
                let guarded = list.iter().map(|one| guard_json(one, specials));
                Value::from(Serde(guarded.collect::<Vec<_>>()))
            }
        };
        let mut variables = tokens.to_variables();
        variables.extend(input.variables.clone());
        let context = minijinja::context! {
            messages => Value::from(Serde(guarded.into_iter().map(Shown::of).collect::<Vec<_>>())),
            add_generation_prompt => input.add_generation_prompt,
            tools => listed(&input.tools),
            documents => listed(&input.documents),
            ..Value::from(Serde(variables))
        };
        let rendered = self.environment.get_template(NAME)?.render(context)?;
        Ok(MarkedText::parse(&rendered))
    }
}

/// A message as templates see it: some read what was thought under another name, which `transformers`
/// fills in.
#[derive(Serialize)]
struct Shown {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(flatten)]
    message: Message,
}

impl Shown {
    fn of(message: Message) -> Self {
        Self {
            thinking: message.reasoning_content.clone(),
            message,
        }
    }
}

fn guard_message(message: &Message, specials: &[&str]) -> Message {
    let guard = |text: &String| marked::guard(text, specials);
    let guard_call = |call: &ToolCall| ToolCall {
        id: call.id.as_ref().map(guard),
        kind: call.kind,
        function: FunctionCall {
            name: guard(&call.function.name),
            arguments: guard_json(&call.function.arguments, specials),
        },
    };
    Message {
        role: message.role,
        content: guard(&message.content),
        reasoning_content: message.reasoning_content.as_ref().map(guard),
        tool_calls: message.tool_calls.iter().map(guard_call).collect(),
        tool_call_id: message.tool_call_id.as_ref().map(guard),
        name: message.name.as_ref().map(guard),
    }
}

fn guard_json(value: &Json, specials: &[&str]) -> Json {
    match value {
        Json::String(text) => Json::String(marked::guard(text, specials)),
        Json::Array(items) => items
            .iter()
            .map(|item| guard_json(item, specials))
            .collect(),
        Json::Object(fields) => fields
            .iter()
            .map(|(key, field)| (marked::guard(key, specials), guard_json(field, specials)))
            .collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
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
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(method);
    environment.set_formatter(|out, state, value| match f64::try_from(value.clone()) {
        Ok(float) if value.is_number() && !value.is_integer() && float.is_finite() => out
            .write_str(&python::float_repr(float))
            .map_err(Error::from),
        _ => minijinja::escape_formatter(out, state, value),
    });
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

/// Methods of Python's own types.
fn method(
    state: &mut State,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    match (name, value.as_str()) {
        ("rsplit", Some(text)) => {
            let (separator, most): (String, Option<usize>) = from_args(arguments)?;
            let parts: Vec<&str> = match most {
                Some(most) => text.rsplitn(most + 1, &separator).collect(),
                None => text.rsplit(&separator).collect(),
            };
            Ok(parts.into_iter().rev().map(Value::from).collect())
        }
        ("title", Some(text)) if arguments.is_empty() => Ok(python::title(text).into()),
        _ => unknown_method_callback(state, value, name, arguments),
    }
}

fn invalid(message: impl ToString) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_string())
}

/// `json.dumps` with the options that `transformers` passes on.
fn tojson(value: Serde<Json>, options: Kwargs) -> Result<Value, Error> {
    let indent = match options.get::<Option<Value>>("indent")? {
        None => None,
        Some(indent) if indent.is_none() => None,
        Some(indent) => Some(match indent.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(indent)?),
        }),
    };
    let mut style = python::JsonStyle::new(indent);
    if let Some((item, key)) = separators(options.get::<Option<Value>>("separators")?)? {
        (style.item_separator, style.key_separator) = (item, key);
    }
    style.sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    style.ensure_ascii = options
        .get::<Option<bool>>("ensure_ascii")?
        .unwrap_or(false);
    options.assert_all_used()?;
    Ok(Value::from_safe_string(style.print(&value)))
}

fn separators(given: Option<Value>) -> Result<Option<(String, String)>, Error> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(None);
    };
    let parts: Vec<String> = given.try_iter()?.map(|part| part.to_string()).collect();
    match <[String; 2]>::try_from(parts) {
        Ok([item, key]) => Ok(Some((item, key))),
        Err(_) => Err(invalid("`separators` of tojson must be a pair of texts")),
    }
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
        let input = TemplateInput {
            add_generation_prompt: true,
            ..TemplateInput::default()
        };
        Ok(Template::new(source)?
            .render(&messages, &input, &tokens, &[])?
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
            ("{{ 'é'|tojson(ensure_ascii=true) }}", r#""\u00e9""#),
            (
                "{{ [1, {}]|tojson(separators=(',', ':'), indent='\t') }}",
                "[\n\t1,\n\t{}\n]",
            ),
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
        let endless =
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}";
        let error = render(endless).unwrap_err();
        assert!(error.to_string().contains("fuel"), "{error}");
        assert!(matches!(render("\u{E001}"), Err(ChatError::Template(_))));
    }

    #[test]
    fn the_clock_is_given() {
        let template = Template::new("{{ strftime_now('%d %b %Y') }}").unwrap();
        let dated = template.at(jiff::civil::date(2026, 3, 9).at(1, 2, 3, 0));
        let tokens = SpecialTokens::default();
        let render = |template: &Template| {
            let input = TemplateInput::default();
            template.render(&[], &input, &tokens, &[])
        };
        assert_eq!(render(&dated).unwrap().text, "09 Mar 2026");
        assert!(render(&template).is_err());
    }
}
