//! Prompts against files of what they must be, byte for byte.

use proptest::prelude::*;
use record::Speaker;

use super::*;

const STATEMENT: &str = "Print the sum of two numbers.\n\nInput: two numbers a line.";
const PROGRAM: &str = "a, b = map(int, input().split())\nprint(a - b)";
const CRITIQUE: &str =
    "Analysis:\nIt subtracts.\n\nImprovement suggestions:\nAdd.\n\nOverall judgment: Incorrect";
const QUESTION: &str = "### Question:\nAdd two numbers.\n\n### Format: Read from stdin.\n```python\n# YOUR CODE HERE\n```\n\n### Answer: (use the provided format)\n\n";

fn public(prompter: Prompter) -> Public {
    let statement = match prompter {
        Prompter::LiveCodeBench => QUESTION,
        _ => STATEMENT,
    };
    Public {
        statement: statement.to_owned(),
        program: PROGRAM.to_owned(),
        prompter,
    }
}

/// A chat as the cases hold it: each message behind a line that names its speaker.
fn written(chat: &[Message]) -> String {
    let mut text = String::new();
    for message in chat {
        let speaker = serde_json::to_value(message.role).unwrap();
        text += &format!("=== {}\n{}\n", speaker.as_str().unwrap(), message.content);
    }
    text
}

#[track_caller]
fn check(chat: &[Message], expected: &str) {
    assert_eq!(written(chat), expected);
}

#[test]
fn the_critique_prompt_is_the_published_one() {
    // What the model card's function makes of this problem and this answer.
    let expected = include_str!("../../tests/cases/prompts/critique.txt");
    let public = public(Prompter::CodeContests);
    check(&critique_prompt(&public), expected);
    let same = Public {
        prompter: Prompter::MbppPlus,
        ..public
    };
    check(&critique_prompt(&same), expected);
}

#[test]
fn critics_of_live_code_bench_see_the_question_alone() {
    let chat = critique_prompt(&public(Prompter::LiveCodeBench));
    let asked = &chat[1].content;
    assert!(
        asked.contains("<problem>\nAdd two numbers.\n</problem>"),
        "{asked}"
    );
    assert!(!asked.contains("###"), "{asked}");
    for (content, question) in [
        ("no headings", "no headings"),
        ("### Question:\nq\n\nrest", "q\n\nrest"),
        ("before ### Question: q ### Format: f ### Format: g", "q"),
    ] {
        assert_eq!(live_code_bench::question(content), question);
    }
}

#[test]
fn the_hint_stands_in_the_prompt_and_nowhere_else() {
    let hint = "It takes too long.";
    for prompter in [
        Prompter::CodeContests,
        Prompter::MbppPlus,
        Prompter::LiveCodeBench,
    ] {
        let public = public(prompter);
        let (plain, hinted) = (
            critique_prompt(&public),
            hinted_critique_prompt(&public, hint),
        );
        let (plain, hinted) = (&plain[1].content, &hinted[1].content);
        assert!(
            hinted.contains("<hint>\nIt takes too long.\n</hint>"),
            "{hinted}"
        );
        assert!(!plain.contains("hint"), "{plain}");
        let (head, tail) = plain.split_once("\n\nStructure").unwrap();
        assert!(
            hinted.starts_with(head) && hinted.ends_with(tail),
            "{hinted}"
        );
    }
    let tiny = public(Prompter::Tiny);
    assert_eq!(
        hinted_critique_prompt(&tiny, hint)[0].content,
        format!("{STATEMENT}\n{PROGRAM}\n{hint}")
    );
}

#[test]
fn prompts_are_those_of_their_files() {
    check(
        &generation_prompt(STATEMENT, Prompter::CodeContests),
        include_str!("../../tests/cases/prompts/generation_code_contests.txt"),
    );
    check(
        &generation_prompt(STATEMENT, Prompter::MbppPlus),
        include_str!("../../tests/cases/prompts/generation_mbppplus.txt"),
    );
    check(
        &hinted_critique_prompt(&public(Prompter::CodeContests), "It takes too long."),
        include_str!("../../tests/cases/prompts/hinted_critique.txt"),
    );
    check(
        &revision_prompt(&public(Prompter::CodeContests), CRITIQUE),
        include_str!("../../tests/cases/prompts/revision.txt"),
    );
    let asked = generation_prompt(QUESTION, Prompter::LiveCodeBench);
    assert_eq!(asked[1].content, QUESTION);
}

#[test]
fn the_tiny_world_is_asked_as_ever() {
    let tiny = public(Prompter::Tiny);
    assert_eq!(
        critique_prompt(&tiny),
        [Message::user(format!("{STATEMENT}\n{PROGRAM}"))]
    );
    assert_eq!(
        revision_prompt(&tiny, " Overall judgment: Correct\n"),
        [
            Message::user(STATEMENT),
            Message::assistant(PROGRAM),
            Message::user("Overall judgment: Correct"),
        ]
    );
    assert_eq!(
        generation_prompt(STATEMENT, Prompter::Tiny),
        [Message::user(STATEMENT)]
    );
}

#[test]
fn a_revision_is_asked_for_with_what_stands_in_the_echoed_tags() {
    let public = public(Prompter::MbppPlus);
    let plain = revision_prompt(&public, CRITIQUE);
    for echoed in [
        format!("<format>\n{CRITIQUE}\n</format>"),
        format!("Here it is:\n<format>{CRITIQUE}</format> That is all."),
        format!("\n\n{CRITIQUE}  \n"),
    ] {
        assert_eq!(revision_prompt(&public, &echoed), plain, "{echoed}");
    }
    let unclosed = revision_prompt(&public, "<format>\nAnalysis: x");
    assert!(unclosed[3].content.starts_with("<format>\nAnalysis: x\n\n"));
}

#[test]
fn answers_are_brought_down_to_their_programs() {
    for (answer, sanitised, program) in [
        (
            "Sure:\n```python\nx = 1\n```\nDone.",
            "```python\nx = 1\n```",
            "x = 1",
        ),
        (
            "```\n  x = 1\n\n```\n```python\ny\n```",
            "```python\n  x = 1\n```",
            "x = 1",
        ),
        ("```Python\nx\n```", "```python\nx\n```", "x"),
        (
            "```cpp\nint x;\n```",
            "```python\ncpp\nint x;\n```",
            "cpp\nint x;",
        ),
        ("no fence", "no fence", "no fence"),
        (
            "cut ```python\nx = 1",
            "```python\nx = 1\n```",
            "cut ```python\nx = 1",
        ),
    ] {
        assert_eq!(sanitise(answer), sanitised, "{answer}");
        assert_eq!(desanitise(answer), program, "{answer}");
    }
}

proptest! {
    #[test]
    fn every_chat_ends_with_a_user_and_shows_the_program(
        statement in "\\PC{0,40}", program in "[a-z =\n]{0,40}", critique in "\\PC{0,40}"
    ) {
        for prompter in [Prompter::Tiny, Prompter::CodeContests, Prompter::MbppPlus, Prompter::LiveCodeBench] {
            let public = Public { statement: statement.clone(), program: program.clone(), prompter };
            for chat in [critique_prompt(&public), revision_prompt(&public, &critique), hinted_critique_prompt(&public, "h")] {
                prop_assert_eq!(chat.last().unwrap().role, Speaker::User);
                prop_assert!(chat.iter().any(|message| message.content.contains(&program)));
                prop_assert_eq!(chat[0].role == Speaker::System, prompter != Prompter::Tiny);
            }
        }
    }

    #[test]
    fn a_sanitised_answer_stays_as_it_is(answer in "(```|python|[a-z]|\n){0,20}") {
        let once = sanitise(&answer);
        prop_assert_eq!(sanitise(&once), once);
    }
}
