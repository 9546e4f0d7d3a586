"""Writes chats.json and expected.json of every template with `transformers`, the authority on them.

Run in this directory after changing a template or the chats below: `python3 generate.py`.
"""

import datetime
import json
import pathlib

from transformers import AutoTokenizer
from transformers.utils import chat_template_utils

here = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 3, 9, 4, 5, 6)


class FrozenClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = FrozenClock

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather at a place, in °C; \"now\" <b>only</b>.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "A town"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": ["integer", "null"], "default": 1.0},
                "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "empty": {},
            },
            "required": ["place"],
        },
    },
}
ADD = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}


def call(name, arguments, id=None):
    called = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"id": id, **called} if id else called


SYSTEM = {"role": "system", "content": "  You are terse.\n"}
USER = {"role": "user", "content": "hello, big  world, it's b"}
SAID = {"role": "assistant", "content": "Hi there!\n"}
AGAIN = {"role": "user", "content": "and <tool_response> now? ☃"}
THOUGHT = {"role": "assistant", "content": "<think>\nhm, 2+2\n</think>\n\n4"}
THINKS = {"role": "assistant", "content": "five", "reasoning_content": "\nit was 4, so\n"}
CALLS = {
    "role": "assistant",
    "content": "",
    "tool_calls": [call("get_weather", {"place": "Zürich \"HB\"", "days": 2, "where": {"lat": 47.4}}, "abcdef123")],
}
CALLS_TWICE = {
    "role": "assistant",
    "content": "Let me see.",
    "tool_calls": [
        call("get_weather", {"place": "Bern"}, "abcdef124"),
        call("add", {"a": 1e-7, "b": [], "c": {}, "d": None, "e": True}, "abcdef125"),
    ],
}
CALLS_IN_TEXT = {"role": "assistant", "content": "", "tool_calls": [call("add", '{"a": 1}')]}
ANSWERED = {"role": "tool", "content": "{\"temp\": 11.5}", "tool_call_id": "abcdef123", "name": "get_weather"}
ANSWERED_TOO = {"role": "tool", "content": "42", "tool_call_id": "abcdef124", "name": "add"}# Words that stand inside special tokens.
INSIDE = {
    "type": "function",
    "function": {
        "name": "tool",
        "parameters": {"type": "object", "properties": {"user": {"type": "string"}, "a": {}, "system": {}}},
    },
}
END = {"role": "user", "content": "end"}

CHATS = [
    {"messages": [USER]},
    {"messages": [USER], "add_generation_prompt": True},
    {"messages": [SYSTEM, USER, SAID, AGAIN], "add_generation_prompt": True},
    {"messages": [USER, SAID]},
    {"messages": [USER], "tools": [WEATHER], "add_generation_prompt": True},
    {"messages": [SYSTEM, USER], "tools": [WEATHER, ADD], "add_generation_prompt": True},
    {"messages": [SYSTEM, USER, CALLS, ANSWERED], "tools": [WEATHER], "add_generation_prompt": True},
    {"messages": [USER, CALLS, ANSWERED, SAID, AGAIN], "tools": [WEATHER], "add_generation_prompt": True},
    {"messages": [USER, CALLS_TWICE, ANSWERED, ANSWERED_TOO, SAID], "tools": [WEATHER, ADD]},
    {"messages": [USER, CALLS_IN_TEXT, ANSWERED_TOO], "add_generation_prompt": True},
    {"messages": [USER, THOUGHT, AGAIN, THINKS]},
    {"messages": [USER, THOUGHT, AGAIN, CALLS, ANSWERED, THINKS], "tools": [WEATHER]},
    {"messages": [USER], "variables": {"enable_thinking": False}, "add_generation_prompt": True},
    {"messages": [USER], "variables": {"tools_in_user_message": False}, "tools": [WEATHER]},
    {"messages": [USER, CALLS], "variables": {"builtin_tools": ["get_weather", "code_interpreter"]}},
    {"messages": [USER, AGAIN]},
    {"messages": [SAID, USER]},
    {"messages": [SYSTEM, ANSWERED]},
    {"messages": [SYSTEM], "tools": [WEATHER]},
    {"messages": [SYSTEM, USER], "documents": [{"title": "one", "text": "a long text\nof two lines that is cut"}, {"title": "two", "text": ""}]},
    {"messages": [USER, SAID], "variables": {"date_string": "1 May 2020", "style": "loud"}},
    {"messages": [END, THINKS, END], "tools": [INSIDE], "add_generation_prompt": True},
]


def expected(tokenizer, template, chat):
    variables = chat.get("variables", {})
    options = {
        "chat_template": template,
        "tools": chat.get("tools"),
        "documents": chat.get("documents"),
        "add_generation_prompt": chat.get("add_generation_prompt", False),
        **variables,
    }
    try:
        text = tokenizer.apply_chat_template(chat["messages"], tokenize=False, **options)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    encoded = tokenizer.apply_chat_template(
        chat["messages"], tokenize=True, return_dict=True, return_assistant_tokens_mask=True, **options
    )
    return {"text": text, "tokens": encoded["input_ids"], "assistant_mask": encoded["assistant_masks"]}


def main():
    tokenizer = AutoTokenizer.from_pretrained(here.parent / "fixtures" / "chat")
    tokenizer.bos_token = "<|user|>"
    (here / "chats.json").write_text(json.dumps(CHATS, indent=1, ensure_ascii=False) + "\n")
    for case in sorted(path for path in here.iterdir() if (path / "template.jinja").is_file()):
        template = (case / "template.jinja").read_bytes().decode()
        lines = [json.dumps(expected(tokenizer, template, chat), ensure_ascii=False) for chat in CHATS]
        (case / "expected.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
