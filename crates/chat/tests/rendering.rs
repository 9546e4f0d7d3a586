//! Chats as data: `cases/NNN_name` holds messages, sometimes a template, and what `transformers`
//! makes of them (`cases/generate.py`).

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fs, path::Path};

use chat::{Chat, Template};
use proptest::prelude::*;
use record::{Message, Speaker, TokenId};
use serde::Deserialize;

#[derive(Deserialize)]
struct Given {
    add_generation_prompt: bool,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Expected {
    tokens: Vec<TokenId>,
    assistant_mask: Vec<u8>,
}

fn fixture() -> Chat {
    Chat::load(Path::new("tests/fixtures/chat")).unwrap()
}

fn json<T: for<'a> Deserialize<'a>>(path: &Path) -> T {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn ids_and_masks_equal_those_of_transformers() {
    let builtin = fixture();
    let mut cases = 0;
    for entry in fs::read_dir("tests/cases").unwrap() {
        let case = entry.unwrap().path();
        if !case.is_dir() {
            continue;
        }
        cases += 1;
        let given: Given = json(&case.join("given.json"));
        let expected: Expected = json(&case.join("expected.json"));
        let chat = match fs::read_to_string(case.join("template.jinja")) {
            Ok(source) => Chat::new(
                builtin.tokenizer().clone(),
                Template::new(&source).unwrap(),
                builtin.special_tokens().clone(),
                &[],
            )
            .unwrap(),
            Err(_) => builtin.clone(),
        };
        let rendered = chat
            .render(&given.messages, given.add_generation_prompt)
            .unwrap();
        let text = chat.tokenizer().decode(&rendered.tokens).unwrap();
        assert_eq!(
            rendered.tokens,
            expected.tokens,
            "{}: {text:?}",
            case.display()
        );
        let mask: Vec<u8> = rendered
            .assistant_mask
            .iter()
            .map(|&said| said.into())
            .collect();
        assert_eq!(
            mask,
            expected.assistant_mask,
            "{}: {text:?}",
            case.display()
        );
    }
    assert!(cases >= 6, "only {cases} cases found");
}

#[test]
fn a_saved_chat_loads_as_the_same_chat() {
    let directory = tempfile::tempdir().unwrap();
    let chat = fixture();
    chat.save(directory.path()).unwrap();
    let again = Chat::load(directory.path()).unwrap();
    assert_eq!(chat.to_files().unwrap(), again.to_files().unwrap());
    assert_eq!(again.stop_tokens(), chat.stop_tokens());

    // A template of its own file goes before the one in the config.
    fs::write(
        directory.path().join("chat_template.jinja"),
        "{{ messages[0].content }}",
    )
    .unwrap();
    let again = Chat::load(directory.path()).unwrap();
    assert_eq!(
        again
            .render(&[Message::user("a")], true)
            .unwrap()
            .tokens
            .len(),
        1
    );
}

#[test]
fn broken_directories_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let message = |directory: &Path| Chat::load(directory).unwrap_err().to_string();
    assert!(message(directory.path()).contains("tokenizer.json"));
    fixture().save(directory.path()).unwrap();
    let config = directory.path().join("tokenizer_config.json");
    fs::write(&config, "{}").unwrap();
    assert!(message(directory.path()).contains("no chat template"));
    let template = directory.path().join("chat_template.jinja");
    fs::write(&template, "{% if %}").unwrap();
    assert!(message(directory.path()).contains("chat_template.jinja: chat template:"));
    fs::write(&template, "x").unwrap();
    fs::write(&config, "{\"eos_token\": \"</s>\"}").unwrap();
    let unknown = message(directory.path());
    assert!(unknown.contains("`</s>`") && unknown.contains("tokenizer_config.json"));
    fs::write(directory.path().join("tokenizer_config.json"), "[]").unwrap();
    assert!(message(directory.path()).contains("tokenizer_config.json"));
}

#[test]
fn a_response_loses_its_stop_token_and_nothing_else() {
    let chat = fixture();
    let end = chat.stop_tokens()[0];
    let mut response = chat.tokenizer().encode("return s\n").unwrap();
    assert_eq!(chat.response_text(&response).unwrap(), "return s\n");
    response.push(end);
    assert_eq!(chat.response_text(&response).unwrap(), "return s\n");
    response.push(end);
    assert_eq!(chat.response_text(&response).unwrap(), "return s\n<|end|>");
    assert_eq!(chat.response_text(&[]).unwrap(), "");
}

/// Text that likes to look like special tokens and like the marks used while rendering.
fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<|end|>".to_owned()),
        Just("<|assistant|>".to_owned()),
        Just("<|".to_owned()),
        Just("\u{E000}".to_owned()),
        Just("\u{E001}".to_owned()),
        Just("\u{E002}".to_owned()),
        "[ \\n\\tx-z0-9|>]{0,4}",
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The built-in chat is exactly: speaker, content as ordinary text, end.
    #[test]
    fn contents_inject_nothing_and_the_mask_is_the_assistant_turns(
        turns in proptest::collection::vec((0usize..4, hostile_text()), 0..5),
        add_generation_prompt: bool,
    ) {
        let chat = fixture();
        let speakers = [
            (Speaker::System, "<|system|>"),
            (Speaker::User, "<|user|>"),
            (Speaker::Assistant, "<|assistant|>"),
            (Speaker::Tool, "<|tool|>"),
        ];
        let id = |token: &str| chat.tokenizer().token_to_id(token).unwrap();
        let (mut messages, mut tokens, mut mask) = (Vec::new(), Vec::new(), Vec::new());
        for (speaker, content) in turns {
            let (role, token) = speakers[speaker];
            let said = chat.tokenizer().encode(&content).unwrap();
            prop_assert!(said.iter().all(|&id| !chat.tokenizer().is_special(id)));
            tokens.push(id(token));
            mask.push(false);
            mask.resize(mask.len() + said.len() + 1, role == Speaker::Assistant);
            tokens.extend(said);
            tokens.push(id("<|end|>"));
            messages.push(Message::new(role, content));
        }
        if add_generation_prompt {
            tokens.push(id("<|assistant|>"));
            mask.push(false);
        }
        let rendered = chat.render(&messages, add_generation_prompt).unwrap();
        prop_assert_eq!(rendered.tokens, tokens);
        prop_assert_eq!(rendered.assistant_mask, mask);
    }

    #[test]
    fn decoding_undoes_encoding(text in hostile_text()) {
        let chat = fixture();
        let ids = chat.tokenizer().encode(&text).unwrap();
        prop_assert_eq!(chat.tokenizer().decode(&ids).unwrap(), text);
        prop_assert!(ids.iter().all(|&id| (id as usize) < chat.tokenizer().vocabulary()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Damaged files are refused or read, never a crash.
    #[test]
    fn noise_in_a_file_is_refused_or_read(
        file in prop::sample::select(vec!["tokenizer.json", "tokenizer_config.json", "generation_config.json"]),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let directory = tempfile::tempdir().unwrap();
        fixture().save(directory.path()).unwrap();
        let path = directory.path().join(file);
        let mut bytes = fs::read(&path).unwrap();
        for (place, value) in edits {
            let place = place.index(bytes.len());
            // Mostly letters and digits, so that JSON often stays JSON.
            bytes[place] = if value < 200 { b'0' + value % 75 } else { value };
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(chat) = Chat::load(directory.path()) {
            let _ = chat.render(&[Message::user("return x > 3")], true);
            let _ = chat.tokenizer().decode(&[0, 5, 300]);
        }
    }
}
