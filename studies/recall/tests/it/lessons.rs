//! What the small world teaches those who write the memory, read as an episode reads it.

use std::sync::Arc;

use recall::{
    ANSWER, EXTRACT, FACT_SPLIT, JUDGE, LONG_MEM, MEMORY, SHORT_MEM,
    memory::{
        MemoryOp, OpFormat,
        protocol::{
            Piece, SplitFacts, read, read_decisions, read_extraction, read_short_memory, read_split,
        },
    },
    tiny::{Lesson, Mix, Teacher},
};
use record::Seed;
use serde_json::json;

use crate::fixture::config;

const DIALOGUES: u64 = 12;
const FORMATS: [OpFormat; 2] = [OpFormat::Lines, OpFormat::Tools];

/// Lessons of a role in a few dialogues.
fn lessons(extraction: &str, role: &str, format: OpFormat, mix: &Mix) -> Vec<Lesson> {
    let config = config(json!({
        "memory": { "extraction": extraction, "compression": "overwrite" },
        "format": format,
        "prompt": { "instructions": false },
    }));
    let count = Arc::new(|text: &str| text.len());
    let teacher = Teacher::new(&config, (count, None), mix, 2, Seed(7)).unwrap();
    let lessons = (0..DIALOGUES).flat_map(|index| teacher.lessons(role, index).unwrap());
    lessons.collect()
}

/// What was asked, and what the teacher said.
fn parts(lesson: &Lesson) -> (&str, &str) {
    let [.., asked, said] = lesson.messages.as_slice() else {
        panic!("{lesson:?}");
    };
    (&asked.content, &said.content)
}

fn ops(pieces: Vec<Piece>) -> Vec<MemoryOp> {
    let op = |piece| match piece {
        Piece::Op { op, .. } => Some(op),
        Piece::Ignored { .. } => None,
        Piece::Malformed { .. } => panic!("the teacher said {piece:?}"),
    };
    pieces.into_iter().filter_map(op).collect()
}

fn texts(ops: &[MemoryOp]) -> Vec<&str> {
    ops.iter()
        .filter_map(|op| match op {
            MemoryOp::Insert { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// All who write note the same statements, each in its own words.
#[test]
fn a_good_teacher_notes_the_same_in_every_way_of_writing() {
    let mix = Mix::default();
    for format in FORMATS {
        let written: Vec<Vec<MemoryOp>> = lessons("policy", MEMORY, format, &mix)
            .iter()
            .map(|lesson| ops(read(parts(lesson).1, format)))
            .collect();
        let extracted = lessons("model", EXTRACT, format, &mix);
        let split = lessons("four_roles", FACT_SPLIT, format, &mix);
        assert_eq!(written.len(), extracted.len());
        assert_eq!(written.len(), split.len());
        let mut left = 0;
        for ((written, extracted), split) in written.iter().zip(&extracted).zip(&split) {
            let expected = texts(written);
            assert_eq!(texts(&ops(read_extraction(parts(extracted).1))), expected);
            let (asked, said) = parts(split);
            let split: SplitFacts = read_split(said, format);
            assert_eq!(split.unreadable, []);
            assert_eq!(split.important, expected);
            // What is not noted was said all the same.
            for text in &split.unimportant {
                assert!(asked.contains(text.as_str()), "{text} in {asked}");
                left += 1;
            }
        }
        assert!(left > written.len(), "{left} of {}", written.len());
    }
}

#[test]
fn what_is_no_statement_about_anybody_is_not_stored() {
    for format in FORMATS {
        let mut counts = [0; 2];
        for lesson in lessons("four_roles", LONG_MEM, format, &Mix::default()) {
            let (asked, said) = parts(&lesson);
            let fact = asked.rsplit_once("New: ").unwrap().1;
            let ops = ops(read_decisions(said, fact, format));
            // Who speaks stands before what was said and not written down; chatter is all of it.
            match ops.as_slice() {
                [MemoryOp::Insert { text, .. }] => {
                    assert_eq!(text, fact);
                    assert!(fact.contains("'s ") && !fact.contains(':'), "{fact}");
                    counts[0] += 1;
                }
                [MemoryOp::Noop] => {
                    assert!(fact.contains(": "), "{fact}");
                    counts[1] += 1;
                }
                other => panic!("{fact}: {other:?}"),
            }
        }
        assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
    }
}

/// Writing over is an update of the latest note about the same thing of the same person.
#[test]
fn an_uneven_teacher_writes_over_what_held_before() {
    let mix = Mix {
        overwrite: 1.0,
        ..Mix::default()
    };
    let about = |text: &str| text.split(" is ").next().unwrap_or_default().to_owned();
    let mut updates = 0;
    for lesson in lessons("four_roles", LONG_MEM, OpFormat::Lines, &mix) {
        let (asked, said) = parts(&lesson);
        let (notes, fact) = asked.rsplit_once("New: ").unwrap();
        let related: Vec<&str> = notes
            .lines()
            .filter(|line| about(line).ends_with(&format!(": {}", about(fact))))
            .collect();
        match ops(read_decisions(said, fact, OpFormat::Lines)).as_slice() {
            [MemoryOp::Update { id, text, .. }] => {
                assert_eq!(text, fact);
                assert!(related.iter().any(|line| line.starts_with(&id.to_string())));
                updates += 1;
            }
            [MemoryOp::Insert { .. }] => assert!(related.is_empty(), "{asked}"),
            [MemoryOp::Noop] => assert!(fact.contains(": "), "{fact}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(updates >= 5, "{updates}");
}

#[test]
fn summaries_keep_the_last_statements_and_nothing_else() {
    let mut counts = [0; 2];
    for lesson in lessons("four_roles", SHORT_MEM, OpFormat::Lines, &Mix::default()) {
        let (asked, said) = parts(&lesson);
        match ops(read_short_memory(said)).as_slice() {
            [MemoryOp::SetSummary { text }] => {
                assert!((1..=3).contains(&text.lines().count()), "{text}");
                for line in text.lines() {
                    assert!(asked.contains(line) && !line.contains(':'), "{line}");
                }
                counts[0] += 1;
            }
            [MemoryOp::Noop] => counts[1] += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(counts.iter().all(|count| *count >= 5), "{counts:?}");
}

#[test]
fn answers_are_taught_over_all_memories_and_judging_is_not() {
    for extraction in ["model", "four_roles"] {
        let lessons = lessons(extraction, ANSWER, OpFormat::Lines, &Mix::default());
        let found = lessons
            .iter()
            .filter(|lesson| !parts(lesson).1.starts_with("nothing"));
        assert!(2 * found.count() > lessons.len(), "{extraction}");
    }
    assert_eq!(
        lessons("four_roles", JUDGE, OpFormat::Lines, &Mix::default()),
        []
    );
}
