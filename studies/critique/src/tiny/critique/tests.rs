//! What is written reads back as promised, kind by kind.

use record::Seed;

use super::*;
use crate::format::{Gate, Judgment, read_critique};
use crate::tiny::wording::read;
use crate::tiny::{Class, Draft, classify, right_critique};
use crate::tiny::{Split, TaskSet, drafts};

fn written(kind: Kind, strange: bool) -> Vec<(Draft, Written)> {
    let drafts: Vec<Draft> = drafts(TaskSet::Functions, Seed(5), Split::Train, 0.3)
        .take(400)
        .collect();
    let strangers = drafts.iter().map(|draft| &draft.function).cycle().skip(1);
    let written: Vec<Written> = drafts
        .iter()
        .zip(strangers)
        .map(|(draft, stranger)| {
            let mut rng = Seed(6).stream("written", draft.index).rng();
            let stranger = strange.then_some(stranger);
            write_critique(&draft.function, &draft.choices, stranger, kind, &mut rng)
        })
        .collect();
    drafts.into_iter().zip(written).collect()
}

/// Follows a critique by reading it, independently of how it was written.
fn followed(draft: &Draft, text: &str) -> String {
    let mut fragments = draft.function.fragments(&draft.choices);
    for edit in read(text, &fragments).unwrap_or_default() {
        fragments[edit.slot] = edit.wanted;
    }
    draft.function.program_with(&fragments)
}

#[test]
fn reading_a_critique_gives_the_program_that_writing_it_promised() {
    for kind in Kind::ALL {
        for (draft, written) in written(kind, true) {
            assert_eq!(followed(&draft, &written.text), written.program, "{kind:?}");
            assert_eq!(
                written.program == draft.program(),
                kind.changes_nothing() || (kind == Kind::Good && draft.planted().is_none()),
                "{kind:?}: {}",
                written.text
            );
        }
    }
}

#[test]
fn probes_of_wrong_programs_point_at_the_bug_and_change_nothing() {
    for draft in drafts(TaskSet::Functions, Seed(5), Split::HeldOut, 0.0).take(300) {
        let fragment = draft
            .planted()
            .map(|planted| planted.fragment)
            .unwrap_or_default();
        let right = draft
            .planted()
            .map(|planted| planted.right)
            .unwrap_or_default();
        for (kind, class) in [
            (Kind::NoOp, Class::NoOp),
            (Kind::AbsentFragment, Class::AbsentFragment),
        ] {
            let written = probe(&draft, kind);
            assert_eq!(written.program, draft.program());
            assert_eq!(classify(&draft, &written.text), class, "{}", written.text);
            let named = if kind == Kind::NoOp { fragment } else { right };
            assert!(written.text.contains(named));
            assert_eq!(probe(&draft, kind), written);
        }
        assert_eq!(probe(&draft, Kind::Good).text, right_critique(&draft));
    }
}

#[test]
fn names_are_those_of_the_serialised_form() {
    for kind in Kind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn a_good_critique_repairs_and_a_wrong_suggestion_never_does() {
    for (draft, written) in written(Kind::Good, false) {
        assert_eq!(written.text, right_critique(&draft));
        assert_eq!(written.program, draft.function.reference());
    }
    for (draft, written) in written(Kind::WrongSuggestion, false) {
        assert_ne!(written.program, draft.function.reference());
    }
}

#[test]
fn classes_are_told_apart() {
    let expected = [
        (Kind::Good, Class::Exact),
        (Kind::WrongSuggestion, Class::OtherEdit),
        (Kind::SeveralEdits, Class::OtherEdit),
        (Kind::NoOp, Class::NoOp),
        (Kind::AbsentFragment, Class::AbsentFragment),
        (Kind::Malformed, Class::Malformed),
        (Kind::Contradiction, Class::Malformed),
        (Kind::Truncated, Class::Malformed),
        (Kind::Empty, Class::Malformed),
    ];
    for (kind, class) in expected {
        for (draft, written) in written(kind, true) {
            assert_eq!(
                classify(&draft, &written.text),
                class,
                "{kind:?}: {}",
                written.text
            );
        }
    }
    for (draft, written) in written(Kind::Correct, false) {
        let right = draft.planted().is_none();
        let class = if right {
            Class::Exact
        } else {
            Class::FalseCorrect
        };
        assert_eq!(classify(&draft, &written.text), class);
    }
    for (draft, written) in written(Kind::Good, false) {
        let careless = written.text.replacen(" ok", " fine", 1);
        let class = if draft.planted().is_some() {
            Class::RightEdit
        } else {
            Class::RightJudgment
        };
        if careless != written.text {
            assert_eq!(classify(&draft, &careless), class, "{careless}");
        }
    }
}

#[test]
fn the_strict_gate_passes_whole_critiques_and_no_truncated_one() {
    for (draft, written) in written(Kind::Good, false) {
        let reading = read_critique(&written.text, Gate::Strict);
        let wrong = draft.planted().is_some();
        let truth = if wrong {
            Judgment::Incorrect
        } else {
            Judgment::Correct
        };
        assert_eq!(reading.judgment, Some(truth));
        assert!(reading.parts.is_some());
    }
    for (_, written) in written(Kind::Truncated, true) {
        assert_eq!(read_critique(&written.text, Gate::Strict).judgment, None);
    }
}
