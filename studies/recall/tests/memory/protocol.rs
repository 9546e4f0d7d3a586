//! What policies and models write.

use proptest::prelude::*;
use recall::memory::{
    FactId, FactKind, MemoryOp, OpFormat,
    protocol::{
        Piece, SplitFacts, read, read_decisions, read_extraction, read_short_memory, read_split,
        write, write_all, write_extraction, write_split,
    },
};

use crate::{add, delete, update};

fn ops(pieces: &[Piece]) -> Vec<MemoryOp> {
    let ops = pieces.iter().filter_map(|piece| match piece {
        Piece::Op { op, .. } => Some(op.clone()),
        Piece::Malformed { .. } | Piece::Ignored { .. } => None,
    });
    ops.collect()
}

fn faults(pieces: &[Piece]) -> Vec<(&str, &str)> {
    let faults = pieces.iter().filter_map(|piece| match piece {
        Piece::Malformed { text, why, .. } => Some((text.as_str(), why.as_str())),
        Piece::Op { .. } | Piece::Ignored { .. } => None,
    });
    faults.collect()
}

fn core(text: &str) -> MemoryOp {
    MemoryOp::SetCore {
        text: text.to_owned(),
    }
}

fn summary(text: &str) -> MemoryOp {
    MemoryOp::SetSummary {
        text: text.to_owned(),
    }
}

#[test]
fn lines_are_read_as_they_are_meant() {
    let text = "<think>What is new?\nadd: no</think>\n\
        add: Ana lives in Rome: near the river.\n\
        - ADD episodic: She moved there in May.\n\
        2. insert semantic importance=0.25 time=\"1:56 pm on 8 May, 2023\": Bo likes tea.\n\
        ```\n\
        update f000003: Bo likes coffee\n  and cake\n\
        \n\
        update [f12]: short\n\
        delete F000007\n\
        `delete: 4`\n\
        core: Ana talks to Bo.\n\
        summary:\n  first\n  second\n\
        noop: nothing else";
    let pieces = read(text, OpFormat::Lines);
    assert_eq!(faults(&pieces), []);
    assert_eq!(
        ops(&pieces),
        [
            add("Ana lives in Rome: near the river."),
            MemoryOp::Insert {
                kind: FactKind::Episodic,
                text: "She moved there in May.".to_owned(),
                importance: None,
                timestamp: None,
            },
            MemoryOp::Insert {
                kind: FactKind::Semantic,
                text: "Bo likes tea.".to_owned(),
                importance: Some(0.25),
                timestamp: Some("1:56 pm on 8 May, 2023".to_owned()),
            },
            update(3, "Bo likes coffee\nand cake"),
            update(12, "short"),
            delete(7),
            delete(4),
            core("Ana talks to Bo."),
            summary("\nfirst\nsecond"),
            MemoryOp::Noop,
        ]
    );
}

#[test]
fn lines_that_are_none_say_why() {
    for (line, why) in [
        ("Ana lives in Rome.", "this is no operation"),
        ("add Ana", "`Ana` cannot stand behind `add`"),
        ("add", "there is no colon: write `add: TEXT`"),
        (
            "add f000001: x",
            "a new fact gets its id by itself: write `add: TEXT`",
        ),
        ("update Ana: x", "`Ana` cannot stand behind `update`"),
        (
            "update: x",
            "it names no fact: write `update f000012: TEXT`",
        ),
        (
            "update f000001",
            "there is no colon: write `update f000012: TEXT`",
        ),
        ("delete", "it names no fact: write `delete f000012`"),
        (
            "add importance=high: x",
            "an importance is a number from 0 to 1",
        ),
        ("add time=May: x", "a time is written `time=\"8 May 2023\"`"),
    ] {
        let pieces = read(line, OpFormat::Lines);
        assert_eq!(faults(&pieces), [(line, why)]);
        assert_eq!(ops(&pieces), []);
    }
    let pieces = read("<think>add: x", OpFormat::Lines);
    let why = "the thoughts never end, so that nothing follows them";
    assert_eq!(faults(&pieces), [("<think>add: x", why)]);
}

#[test]
fn calls_are_read_as_they_are_meant() {
    let episodic = MemoryOp::Insert {
        kind: FactKind::Episodic,
        text: "Ana's cat is called \"Tom\".".to_owned(),
        importance: None,
        timestamp: None,
    };
    for call in [
        r#"{"name": "memory_insert", "arguments": {"memory_type": "episodic", "content": "Ana's cat is called \"Tom\"."}}"#,
        // Mem-alpha's own name, arguments as a text, a trailing comma.
        r#"{"name": "new_memory_insert", "arguments": "{\"memory_type\": \"episodic\", \"content\": \"Ana's cat is called \\\"Tom\\\".\"}",}"#,
        // Quotes that were not escaped.
        r#"{"name": "memory_insert", "arguments": {"memory_type": "episodic", "content": "Ana's cat is called "Tom"."}}"#,
        // Python's way of writing it.
        r#"{'name': 'memory_insert', 'arguments': {'memory_type': 'episodic', 'content': 'Ana's cat is called "Tom".', 'importance': None}}"#,
        // Ends are missing.
        r#"{"name": "memory_insert", "arguments": {"memory_type": "episodic", "content": "Ana's cat is called \"Tom\"."#,
        // As OpenAI's interface has it.
        r#"{"function": {"name": "memory_insert", "arguments": {"memory_type": "episodic", "content": "Ana's cat is called \"Tom\"."}}}"#,
        // Keys without quotes; no comma.
        r#"{name: memory_insert, parameters: {memory_type: "episodic" "content": "Ana's cat is called \"Tom\"."}}"#,
    ] {
        for text in [
            format!("I store this.\n<tool_call>\n{call}\n</tool_call>\nDone."),
            format!("<tool_call>{call}"),
            call.to_owned(),
            format!("```json\n{call}\n```"),
        ] {
            let pieces = read(&text, OpFormat::Tools);
            assert_eq!(ops(&pieces), std::slice::from_ref(&episodic), "{text}");
            assert_eq!(faults(&pieces), [], "{text}");
        }
    }
    let quoting = r#"{"name":"memory_insert","arguments":{"content":"Bo said "no", then "well, maybe", and left","memory_type":"semantic"}}"#;
    let pieces = read(quoting, OpFormat::Tools);
    let said = r#"Bo said "no", then "well, maybe", and left"#;
    assert_eq!(ops(&pieces), [add(said)]);
    let text = r#"<tool_call>
[{"name": "memory_update", "arguments": {"memory_type": "core", "new_content": "Ana."}},
 {"name": "memory_delete", "arguments": {"memory_type": "semantic", "memory_id": "f000002"}}]
</tool_call><tool_call>{"name": "memory_update", "arguments": {"memory_id": 3, "new_content": "x"}}
{"name": "memory_delete", "arguments": {"memory_type": "core"}}</tool_call>"#;
    let pieces = read(text, OpFormat::Tools);
    assert_eq!(faults(&pieces), []);
    assert_eq!(
        ops(&pieces),
        [
            core("Ana."),
            MemoryOp::Delete {
                id: FactId(2),
                kind: Some(FactKind::Semantic),
            },
            update(3, "x"),
            core(""),
        ]
    );
}

#[test]
fn calls_that_are_none_say_why() {
    for (call, why) in [
        (
            r#"{"name":"memory_insert","arguments":{"memory_type":"core","content":"x"}}"#,
            "it is one text: replace it by memory_update",
        ),
        (
            r#"{"name":"memory_insert","arguments":{"memory_type":"visual","content":"x"}}"#,
            "there is no memory_type visual: use core, semantic or episodic",
        ),
        (
            r#"{"name":"memory_insert","arguments":{"memory_type":"semantic"}}"#,
            "memory_insert needs a content",
        ),
        (
            r#"{"name":"memory_delete","arguments":{"memory_type":"semantic"}}"#,
            "memory_delete needs the memory_id of a fact, like f000012",
        ),
        (
            r#"{"name":"memory_search","arguments":{"query":"x"}}"#,
            "there is no call memory_search: use memory_insert, memory_update or memory_delete",
        ),
        (r#"{"arguments":{}}"#, "the call has no name"),
    ] {
        let text = format!("<tool_call>{call}</tool_call>");
        let pieces = read(&text, OpFormat::Tools);
        assert_eq!(faults(&pieces), [(call, why)]);
    }
    let pieces = read("I keep it in mind.", OpFormat::Tools);
    let why = "there is no call: write them between <tool_call> and </tool_call>";
    assert_eq!(faults(&pieces), [("I keep it in mind.", why)]);
    let text = "<tool_call>remember Ana</tool_call>";
    let pieces = read(text, OpFormat::Tools);
    assert_eq!(
        faults(&pieces),
        [(text, "this is no JSON object of a call")]
    );
    assert!(
        read(" \n", OpFormat::Tools)
            .iter()
            .all(|piece| matches!(piece, Piece::Ignored { .. }))
    );
}

#[test]
fn decisions_about_a_fact_may_leave_it_out() {
    let fact = "Ana lives in Oslo.";
    for (text, wanted) in [
        ("add", add(fact)),
        ("add:", add(fact)),
        ("add: Ana moved to Oslo.", add("Ana moved to Oslo.")),
        ("update f000003", update(3, fact)),
        ("delete f000003", delete(3)),
        ("noop", MemoryOp::Noop),
    ] {
        assert_eq!(ops(&read_decisions(text, fact, OpFormat::Lines)), [wanted]);
    }
    let text = r#"{"name":"memory_update","arguments":{"memory_id":"f000003"}}"#;
    let pieces = read_decisions(text, fact, OpFormat::Tools);
    assert_eq!(ops(&pieces), [update(3, fact)]);
}

#[test]
fn facts_are_split_in_both_formats() {
    let split = SplitFacts {
        important: vec!["Ana lives in Rome.".to_owned(), "Bo: \"tea\"".to_owned()],
        unimportant: vec!["It rained.".to_owned()],
        unreadable: Vec::new(),
    };
    for format in [OpFormat::Lines, OpFormat::Tools] {
        assert_eq!(read_split(&write_split(&split, format), format), split);
        let none = SplitFacts::default();
        assert_eq!(read_split(&write_split(&none, format), format), none);
    }
    let found = read_split(
        "Important: a\nperhaps b\nunimportant: none",
        OpFormat::Lines,
    );
    assert_eq!(found.important, ["a"]);
    assert!(found.unimportant.is_empty());
    assert_eq!(found.unreadable[0].0, "perhaps b");
    let found = read_split(
        "Here:\n{'important': [{'text': 'a'}, 3, [],],",
        OpFormat::Tools,
    );
    assert_eq!(found.important, ["a", "3"]);
    assert_eq!(found.unreadable.len(), 1);
}

#[test]
fn a_short_memory_is_the_whole_response() {
    let text = "<think>hm</think>\nAna is in Rome.\nBo is not.";
    assert_eq!(
        ops(&read_short_memory(text)),
        [summary("Ana is in Rome.\nBo is not.")]
    );
    assert_eq!(ops(&read_short_memory("Noop")), [MemoryOp::Noop]);
    assert_eq!(faults(&read_short_memory(" ")).len(), 1);
}

#[test]
fn extracted_facts_are_read_from_json_of_many_shapes() {
    let wanted = [
        MemoryOp::Insert {
            kind: FactKind::Episodic,
            text: "Ana moved to Rome yesterday.".to_owned(),
            importance: Some(0.5),
            timestamp: Some("2024-01-02".to_owned()),
        },
        add("Bo likes tea."),
    ];
    for text in [
        r#"[{"text": "Ana moved to Rome yesterday.", "importance": 0.5, "timestamp": "2024-01-02"}, {"text": "Bo likes tea."}]"#,
        r#"Sure! {"facts": [{"fact": "Ana moved to Rome yesterday.", "importance": "0.5", "date": "2024-01-02"}, "Bo likes tea."]}"#,
        "<think>…</think>```json\n[{'text': 'Ana moved to Rome yesterday.', 'importance': 0.5, 'timestamp': '2024-01-02'}, {'text': 'Bo likes tea.', 'timestamp': ''}\n```",
    ] {
        assert_eq!(ops(&read_extraction(text)), wanted, "{text}");
    }
    assert_eq!(ops(&read_extraction("[]")), []);
    assert_eq!(faults(&read_extraction("[]")), []);
    assert_eq!(faults(&read_extraction("no facts")).len(), 1);
    assert_eq!(
        faults(&read_extraction(r#"[{"importance": 1}, "x"]"#)).len(),
        1
    );
    let facts = [wanted[0].clone(), wanted[1].clone()];
    assert_eq!(ops(&read_extraction(&write_extraction(&facts))), facts);
}

/// Texts of everything that formats are made of, and of anything else.
fn messy() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("add".to_owned()),
        Just("update f000003".to_owned()),
        Just("delete 1".to_owned()),
        Just("core".to_owned()),
        Just("summary:".to_owned()),
        Just("noop".to_owned()),
        Just(": ".to_owned()),
        Just("：".to_owned()),
        Just("\n".to_owned()),
        Just("\n  ".to_owned()),
        Just("\r\n\t".to_owned()),
        Just("```json".to_owned()),
        Just("<tool_call>".to_owned()),
        Just("</tool_call>".to_owned()),
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("{\"name\": \"memory_insert\", \"arguments\": {\"content\": \"x".to_owned()),
        Just("\"}}".to_owned()),
        Just("[{'text': '".to_owned()),
        Just("\\u00e9\\ud83d\\".to_owned()),
        Just("time=\"".to_owned()),
        Just("importance=0.5 ".to_owned()),
        Just("[[[[[[[[[[[[[[[[".to_owned()),
        Just("{{{{{{{{{{{{{{{{".to_owned()),
        Just("important: ".to_owned()),
        "[ -~]{0,6}",
        "\\PC{0,6}",
        any::<String>(),
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// Texts of facts: anything but white space at the ends, returns, and the markers of thoughts.
fn said() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-z: ]{1,20}",
        "\\PC{1,30}",
        "([a-z<>/_{}\"'\\\\]{1,8}|\n|  |tool_call>|add: |noop){1,8}",
    ];
    text.prop_map(|text| text.replace("</think>", "").trim().to_owned())
        .prop_filter("texts have letters", |text| !text.is_empty())
}

fn any_op() -> impl Strategy<Value = MemoryOp> {
    let kind = prop_oneof![Just(FactKind::Semantic), Just(FactKind::Episodic)];
    let maybe = proptest::option::of(kind.clone());
    let id = any::<u32>().prop_map(FactId);
    prop_oneof![
        (
            kind,
            said(),
            proptest::option::of(0.0..1.0_f32),
            proptest::option::of(any::<String>()),
        )
            .prop_map(|(kind, text, importance, timestamp)| MemoryOp::Insert {
                kind,
                text,
                importance,
                timestamp: timestamp.map(|it| it.replace("</think>", "")),
            }),
        (id.clone(), said(), maybe.clone()).prop_map(|(id, text, kind)| MemoryOp::Update {
            id,
            text,
            kind
        }),
        (id, maybe).prop_map(|(id, kind)| MemoryOp::Delete { id, kind }),
        said().prop_map(|text| MemoryOp::SetCore { text }),
        Just(core("")),
        said().prop_map(|text| MemoryOp::SetSummary { text }),
        Just(MemoryOp::Noop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text_is_read_and_every_byte_has_its_piece(text in messy()) {
        let readings = [
            read(&text, OpFormat::Lines),
            read(&text, OpFormat::Tools),
            read_decisions(&text, "a fact", OpFormat::Lines),
            read_decisions(&text, "a fact", OpFormat::Tools),
            read_short_memory(&text),
            read_extraction(&text),
        ];
        for pieces in readings {
            let mut at = 0;
            for piece in &pieces {
                let span = piece.span();
                prop_assert_eq!(span.start, at, "{:?}", pieces);
                prop_assert!(text.is_char_boundary(span.end));
                at = span.end;
            }
            prop_assert_eq!(at, text.len(), "{:?}", pieces);
        }
        read_split(&text, OpFormat::Lines);
        read_split(&text, OpFormat::Tools);
    }

    #[test]
    fn operations_are_read_as_they_were_written(ops_written in proptest::collection::vec(any_op(), 1..6)) {
        for format in [OpFormat::Lines, OpFormat::Tools] {
            let text = write_all(&ops_written, format);
            let pieces = read(&text, format);
            prop_assert_eq!(ops(&pieces), ops_written.clone(), "{}", text);
            prop_assert_eq!(faults(&pieces), vec![]);
        }
        prop_assert_eq!(write(&MemoryOp::Noop, OpFormat::Lines), write_all(&[], OpFormat::Lines));
    }
}
