//! Issues as users write them, from how tests fail. None says where the bug is or what repairs it, beyond what a
//! traceback says.

use std::collections::BTreeSet;

use code::RelativePath;
use rand::seq::IndexedRandom;
use record::Seed;
use serde::{Deserialize, Serialize};

use super::scene::{Part, Scene};
use crate::{
    Issue,
    markdown::{code_span, fenced},
    workplace::{Failure, Frame},
};

/// How much an issue says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A title and the error.
    Terse,
    /// What was done, what came of it.
    #[default]
    Normal,
    /// The same with the test, the traceback and how many tests fail.
    Detailed,
}

impl Style {
    pub const ALL: [Self; 3] = [Self::Terse, Self::Normal, Self::Detailed];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terse => "terse",
            Self::Normal => "normal",
            Self::Detailed => "detailed",
        }
    }
}

/// What an issue is written from.
pub(super) struct Report<'a> {
    /// What somebody would call the repository.
    pub name: &'a str,
    /// A test that fails, and how.
    pub test: &'a str,
    pub failure: &'a Failure,
    /// Tests that fail, and those that pass.
    pub counts: (usize, usize),
    /// Names of the repository's functions and classes.
    pub names: &'a BTreeSet<String>,
    /// Lines that repair the bug.
    pub secret: &'a [String],
}

impl Report<'_> {
    /// `read` gives the text of a file of the checkout.
    pub(super) fn issue(
        &self,
        style: Style,
        seed: Seed,
        read: impl Fn(&RelativePath) -> Option<String>,
    ) -> Issue {
        let scene = self.scene(&read);
        let error = self.error();
        let title = self.title(&scene, seed);
        let mut body = Vec::new();
        let doing = scene
            .statement
            .as_deref()
            .filter(|text| self.is_allowed(text));
        if style == Style::Terse {
            body.push(code_span(first_line(&error)));
        } else {
            body.push(self.opening(doing, &scene, seed));
            body.push(fenced("", &error));
        }
        if style == Style::Detailed {
            if let Some(test) = scene.test.as_deref().filter(|text| self.is_allowed(text)) {
                body.push("The test that shows it:".to_owned());
                body.push(fenced("python", test));
            }
            if !self.failure.frames.is_empty() {
                body.push("Traceback, innermost call last:".to_owned());
                body.push(fenced("", &traceback(&self.failure.frames)));
            }
            let (fail, pass) = self.counts;
            body.push(format!(
                "In the whole suite {fail} {} and {pass} pass, among the failing ones `{}`.",
                if fail == 1 {
                    "test fails"
                } else {
                    "tests fail"
                },
                self.test
            ));
        }
        let says_where = style != Style::Terse;
        Issue {
            id: None,
            title,
            body: body.join("\n\n"),
            failure_frame: scene.frame.filter(|_| says_where),
            top_assert: doing
                .filter(|_| says_where && scene.is_check)
                .map(str::to_owned),
            error_kind: Some(self.failure.kind.clone()),
        }
    }

    fn is_assertion(&self) -> bool {
        self.failure.kind.contains("Assertion") || self.failure.kind == "Failed"
    }

    fn error(&self) -> String {
        let Failure { kind, message, .. } = self.failure;
        let message = cut(message, ERROR_LINES);
        match message.is_empty() {
            true => kind.clone(),
            false if self.is_allowed(&message) => format!("{kind}: {message}"),
            false => kind.clone(),
        }
    }

    fn title(&self, scene: &Scene, seed: Seed) -> String {
        let mut rng = seed.stream("issue/title", 0).rng();
        let about = match &scene.subject {
            Some(subject) => format!("`{subject}`"),
            None => format!("{}: {}", self.name, words(self.test)),
        };
        let templates: &[&str] = match (&scene.subject, self.is_assertion()) {
            (Some(_), true) => &[
                "{} gives a wrong result",
                "{} does not do what it should",
                "Wrong result of {}",
            ],
            (Some(_), false) => &[
                "{} raises {kind}",
                "{kind} from {}",
                "{}: unexpected {kind}",
            ],
            (None, true) => &["{}: wrong result", "{} does not work"],
            (None, false) => &["{}: {kind}", "{} ends with {kind}"],
        };
        let template = templates.choose(&mut rng).copied().unwrap_or("{}");
        template
            .replace("{}", &about)
            .replace("{kind}", &self.failure.kind)
    }

    fn opening(&self, doing: Option<&str>, scene: &Scene, seed: Seed) -> String {
        let mut rng = seed.stream("issue/opening", 0).rng();
        let (with, without): (&[&str], &[&str]) = if self.is_assertion() || scene.must_raise {
            (
                match scene.is_check {
                    true => &[
                        "With {name}, this should hold and does not:",
                        "I expected this to go through:",
                        "This check fails:",
                    ],
                    // The assertion is somewhere below it.
                    false => &[
                        "I expected this to go through:",
                        "With {name}, this ends in a failed assertion:",
                    ],
                },
                &[
                    "{name} behaves wrongly here: {words}.",
                    "Something is off in {name}: {words}.",
                ],
            )
        } else {
            (
                &[
                    "With {name}, this raises an exception:",
                    "This ends with an exception although it should not:",
                    "I ran into an exception with this:",
                ],
                &[
                    "{name} raises an exception here: {words}.",
                    "An exception in {name}: {words}.",
                ],
            )
        };
        let choices = if doing.is_some() { with } else { without };
        let chosen = choices.choose(&mut rng).copied().unwrap_or_default();
        let text = chosen
            .replace("{name}", self.name)
            .replace("{words}", &words(self.test));
        match doing {
            Some(doing) => format!("{text}\n\n{}\n\nWhat comes of it:", fenced("python", doing)),
            None => text,
        }
    }

    /// Whether a text can be shown without telling the repair.
    fn is_allowed(&self, text: &str) -> bool {
        let told = |line: &String| line.len() >= TELLING && text.contains(line.as_str());
        !self.secret.iter().any(told)
    }

    fn scene(&self, read: &impl Fn(&RelativePath) -> Option<String>) -> Scene {
        let frames = &self.failure.frames;
        let inner = frames
            .iter()
            .rev()
            .find(|frame| !code::graph::is_test_path(&frame.path));
        let mut in_tests = frames
            .iter()
            .rev()
            .filter(|frame| code::graph::is_test_path(&frame.path));
        let in_test = in_tests.next();
        let mut scene = Scene {
            frame: inner
                .or(in_test)
                .map(|frame| format!("{}:{}", frame.path, frame.line)),
            ..Scene::default()
        };
        if let Some(frame) = in_test {
            let mut part = scene.look(frame, self.names, read);
            let mut raised = false;
            // What a test's helper raises or gives back says nothing of what the test asked it for.
            while part != Part::Whole
                && let Some(frame) = in_tests.next()
            {
                raised |= part == Part::Raise;
                part = scene.look(frame, self.names, read);
                scene.is_check |= raised && part != Part::Raise;
            }
        }
        if scene.subject.is_none() {
            let entered = frames
                .iter()
                .find(|frame| !code::graph::is_test_path(&frame.path));
            let name = entered.map(|frame| frame.function.rsplit('.').next().unwrap_or_default());
            let name = name.filter(|name| !name.starts_with(['_', '<']) && !name.is_empty());
            scene.subject = name.map(str::to_owned);
        }
        scene
    }
}

/// Characters of a line of an error.
const LINE: usize = 200;
/// Lines of an error that are shown.
const ERROR_LINES: usize = 12;
/// Shorter lines, such as `else:`, stand everywhere.
const TELLING: usize = 8;

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// At most so many lines, each cut to what fits a screen.
fn cut(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim().lines().collect();
    let mut shown: Vec<String> = all
        .iter()
        .take(lines)
        .map(|line| match line.char_indices().nth(LINE) {
            Some((end, _)) => format!("{} …", &line[..end]),
            None => (*line).to_owned(),
        })
        .collect();
    if all.len() > lines {
        shown.push("…".to_owned());
    }
    shown.join("\n")
}

fn traceback(frames: &[Frame]) -> String {
    let lines = frames.iter().map(|frame| {
        let Frame {
            path,
            line,
            function,
        } = frame;
        format!("File \"{path}\", line {line}, in {function}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The words of a test's name.
fn words(test: &str) -> String {
    let name = test.rsplit("::").next().unwrap_or(test);
    let name = name.split('[').next().unwrap_or(name);
    let name = name.rsplit('.').next().unwrap_or(name);
    let name = name.strip_prefix("test").unwrap_or(name);
    let mut words = String::new();
    for character in name.chars() {
        if character == '_' {
            words.push(' ');
        } else if character.is_uppercase() {
            words.push(' ');
            words.extend(character.to_lowercase());
        } else {
            words.push(character);
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "import unittest\n\n\nclass TestWidth(unittest.TestCase):\n    def test_wide_pads(self):\n        table = Table(3)\n        self.assertEqual(table.pad('a'), 'a  ')\n";

    /// A helper that raises, and a call on the way to a failure.
    const HELPED: &str = "import unittest\n\n\nclass TestWidth(unittest.TestCase):\n    def check(self, text):\n        raise AssertionError(text)\n\n    def test_wide(self):\n        wide = pad('a')\n        self.check(wide)\n\n    def padded(self, text):\n        return pad(text)\n\n    def test_padded(self):\n        self.assertIn(self.padded('a'), 'b')\n";

    fn failure(kind: &str, frames: &[(&str, u32, &str)]) -> Failure {
        let frames = frames.iter().map(|(path, line, function)| Frame {
            path: (*path).to_owned(),
            line: *line,
            function: (*function).to_owned(),
        });
        Failure {
            kind: kind.to_owned(),
            message: "'a ' != 'a  '\n- a \n+ a  ".to_owned(),
            frames: frames.collect(),
        }
    }

    fn issue(failure: &Failure, secret: &[String], style: Style, seed: u64) -> Issue {
        let names = ["Table", "pad"].map(str::to_owned).into();
        let report = Report {
            name: "tables",
            test: "tests.test_width.TestWidth.test_wide_pads",
            failure,
            counts: (1, 9),
            names: &names,
            secret,
        };
        report.issue(style, Seed(seed), |path| match path.as_str() {
            "tests/test_width.py" => Some(TEST.to_owned()),
            "tests/test_helped.py" => Some(HELPED.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn what_is_quoted_is_what_the_test_asks_for() {
        let wide = ("tests/test_helped.py", 10, "test_wide");
        let raised = [wide, ("tests/test_helped.py", 6, "check")];
        let below = [
            ("tests/test_helped.py", 9, "test_wide"),
            ("tables/core.py", 3, "pad"),
        ];
        for seed in 0..8 {
            let found = issue(
                &failure("AssertionError", &raised),
                &[],
                Style::Normal,
                seed,
            );
            assert_eq!(found.top_assert.as_deref(), Some("self.check(wide)"));
            assert!(!found.body.contains("raise Assertion"), "{}", found.body);
            let found = issue(&failure("AssertionError", &below), &[], Style::Normal, seed);
            assert_eq!(found.top_assert, None);
            assert!(found.body.contains("wide = pad('a')"), "{}", found.body);
            for wrong in ["This check fails", "should hold"] {
                assert!(!found.body.contains(wrong), "{}", found.body);
            }
        }
        let helped = [
            ("tests/test_helped.py", 16, "test_padded"),
            ("tests/test_helped.py", 13, "padded"),
            ("tables/core.py", 3, "pad"),
        ];
        let found = issue(&failure("IndexError", &helped), &[], Style::Normal, 0);
        let asked = "self.assertIn(self.padded('a'), 'b')";
        assert_eq!(found.top_assert.as_deref(), Some(asked));
        assert!(found.title.contains("`pad`"), "{}", found.title);
        assert!(!found.body.contains("return"), "{}", found.body);
        // A test that only raises is not quoted.
        let found = issue(
            &failure("AssertionError", &raised[1..]),
            &[],
            Style::Normal,
            0,
        );
        assert_eq!(found.top_assert, None);
        assert!(!found.body.contains("raise"), "{}", found.body);
    }

    #[test]
    fn three_styles_of_one_failure() {
        let failure = failure(
            "AssertionError",
            &[("tests/test_width.py", 7, "test_wide_pads")],
        );
        let terse = issue(&failure, &[], Style::Terse, 0);
        assert!(terse.title.contains("`pad`"), "{}", terse.title);
        assert_eq!(terse.body, "`AssertionError: 'a ' != 'a  '`");
        assert_eq!((terse.failure_frame, terse.top_assert), (None, None));
        let normal = issue(&failure, &[], Style::Normal, 0);
        let quoted = "self.assertEqual(table.pad('a'), 'a  ')";
        assert!(normal.body.contains(quoted), "{}", normal.body);
        assert_eq!(normal.top_assert.as_deref(), Some(quoted));
        assert_eq!(
            normal.failure_frame.as_deref(),
            Some("tests/test_width.py:7")
        );
        let detailed = issue(&failure, &[], Style::Detailed, 0);
        for part in [
            "def test_wide_pads(self):\n    table = Table(3)",
            "File \"tests/test_width.py\", line 7, in test_wide_pads",
            "1 test fails and 9 pass",
        ] {
            assert!(detailed.body.contains(part), "{}", detailed.body);
        }
    }

    #[test]
    fn an_exception_names_what_was_called_and_where_it_came_from() {
        let frames = [
            ("tests/test_width.py", 6, "test_wide_pads"),
            ("tables/core.py", 30, "Table.__init__"),
        ];
        let found = issue(&failure("TypeError", &frames), &[], Style::Normal, 3);
        assert!(found.title.contains("`Table`") && found.title.contains("TypeError"));
        assert_eq!(found.failure_frame.as_deref(), Some("tables/core.py:30"));
        assert_eq!(found.error_kind.as_deref(), Some("TypeError"));
    }

    #[test]
    fn no_style_quotes_a_line_of_the_repair() {
        let failure = failure(
            "AssertionError",
            &[("tests/test_width.py", 7, "test_wide_pads")],
        );
        let secret = [
            "table.pad('a')".to_owned(),
            "+ a  ".to_owned(),
            "'a ' != 'a".to_owned(),
        ];
        for style in Style::ALL {
            for seed in 0..5 {
                let told = issue(&failure, &secret, style, seed);
                let text = serde_json::to_string(&told).unwrap();
                assert!(!text.contains("table.pad('a')"), "{text}");
                assert!(!text.contains("'a ' != 'a"), "{text}");
            }
        }
    }
}
