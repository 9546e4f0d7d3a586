//! Rows of a dataset to problems: every filter a step of its own, and every row that is dropped counted.

use std::collections::HashSet;

use dataset::{Row, RowError};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    counts::Counts,
    overlap::{HeldOut, Overlap},
    problem::Problem,
    sources::{Reading, Source},
    values::given,
};

/// Counts tokens of a statement.
pub type CountTokens<'a> = dyn Fn(&str) -> usize + 'a;

/// What a preparation is told.
pub struct Options<'a> {
    pub source: Source,
    /// What the dataset calls the part of itself that is read.
    pub split: String,
    /// Names the dataset in the column `data_source`.
    pub data_source: String,
    /// Counts for the filter by length; that is not applied without it.
    pub count_tokens: Option<&'a CountTokens<'a>>,
    /// Statements with more tokens than the first and fewer than the second are kept.
    pub tokens: (usize, usize),
    /// Statements that must not be among the prepared ones.
    pub held_out: HeldOut,
    /// First and last day of the contests whose problems are kept, `2024-08-01`; of LiveCodeBench alone.
    pub dates: Option<(String, String)>,
    /// Programs of the dataset's own that are kept with each problem, right ones and wrong ones each.
    pub solutions: usize,
}

/// A filter, and how many rows it dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    pub step: &'static str,
    pub dropped: u64,
    /// Why it was not applied, where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_applied: Option<String>,
}

/// What became of all rows: those that came in are those of the steps and those that went out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prepared {
    pub rows_in: u64,
    /// In the order in which they are applied.
    pub steps: Vec<Step>,
    pub rows_out: u64,
    /// Tests of the rows that went out.
    pub tests: u64,
    /// What was left out of rows or changed in them, of the rows that went out.
    pub counts: Counts,
}

/// Takes rows one by one.
pub struct Preparation<'a> {
    options: Options<'a>,
    prepared: Prepared,
    /// Digests of the statements that were kept.
    seen: HashSet<[u8; 32]>,
    /// Names of all problems.
    names: HashSet<String>,
}

/// Names of the steps.
const BAD_ROW: &str = "bad rows";
const DATE: &str = "contest outside the dates";
const NO_TESTS: &str = "no tests";
const IMAGE: &str = "image in the statement";
const SPAN: &str = "span tag in the statement";
const TOO_SHORT: &str = "too few tokens";
const TOO_LONG: &str = "too many tokens";
const DUPLICATE: &str = "statement seen before";
const IDENTICAL: &str = "statement held out";
const ALIKE: &str = "statement held out, spelt otherwise";
const SHARED: &str = "words shared with a held-out statement";

impl<'a> Preparation<'a> {
    pub fn new(options: Options<'a>) -> Self {
        let trained = options.split == "train";
        let free_text = trained || options.source.has_both_kinds();
        let only = |applied: bool, why: &str| (!applied).then(|| why.to_owned());
        let evaluation = "of training splits alone";
        let tokens = match (&options.count_tokens, trained) {
            (_, false) => Some(evaluation.to_owned()),
            (None, true) => Some("no tokenizer given".to_owned()),
            (Some(_), true) => None,
        };
        let nothing = only(!options.held_out.is_empty(), "no held-out files given");
        let shared = match options.held_out.width() {
            None => Some("not asked for".to_owned()),
            Some(_) => nothing.clone(),
        };
        let dates = match options.source {
            Source::LiveCodeBench => only(options.dates.is_some(), "no dates given"),
            _ => Some("of livecodebench alone".to_owned()),
        };
        let steps = [
            (BAD_ROW, None),
            (DATE, dates),
            (NO_TESTS, None),
            (IMAGE, only(free_text, evaluation)),
            (SPAN, only(free_text, evaluation)),
            (TOO_SHORT, tokens.clone()),
            (TOO_LONG, tokens),
            (DUPLICATE, only(free_text, evaluation)),
            (IDENTICAL, nothing),
            (ALIKE, shared.clone()),
            (SHARED, shared),
        ];
        let step = |(step, not_applied)| Step {
            step,
            dropped: 0,
            not_applied,
        };
        Self {
            options,
            prepared: Prepared {
                rows_in: 0,
                steps: steps.into_iter().map(step).collect(),
                rows_out: 0,
                tests: 0,
                counts: Counts::default(),
            },
            seen: HashSet::new(),
            names: HashSet::new(),
        }
    }

    /// The problem of a row; none where a step drops it.
    ///
    /// # Errors
    /// What is wrong with the row. It is counted.
    pub fn take(&mut self, row: &Row) -> Result<Option<Problem>, RowError> {
        let index = self.prepared.rows_in;
        self.prepared.rows_in += 1;
        let mut counts = Counts::default();
        let found = match self.read(row, index, &mut counts) {
            Ok(found) => found,
            Err(error) => {
                self.drop_by(BAD_ROW);
                return Err(error);
            }
        };
        match found {
            Ok(problem) => {
                for (what, number) in counts.0 {
                    *self.prepared.counts.0.entry(what).or_default() += number;
                }
                self.prepared.rows_out += 1;
                self.prepared.tests += problem.test_count() as u64;
                Ok(Some(problem))
            }
            Err(step) => {
                self.drop_by(step);
                Ok(None)
            }
        }
    }

    /// What became of all rows.
    pub fn finish(self) -> Prepared {
        self.prepared
    }

    fn read(
        &mut self,
        row: &Row,
        index: u64,
        counts: &mut Counts,
    ) -> Result<Result<Problem, &'static str>, RowError> {
        let given_columns = row.object()?;
        let reading = Reading {
            row,
            columns: &given_columns,
            index,
            counts,
        };
        let made = self.options.source.read(reading)?;
        if !self.in_dates(row, &given_columns)? {
            return Ok(Err(DATE));
        }
        if made.tests == 0 {
            return Ok(Err(NO_TESTS));
        }
        let mut columns = made.columns;
        self.add_facts(&mut columns, counts);
        let name = columns.get("task_id").or_else(|| columns.get("id"));
        let task_id = match name {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(row.error("task_id", "expected a text or a number")),
        };
        if !self.names.insert(task_id.clone()) {
            return Err(row.error("task_id", format!("`{task_id}` is there twice")));
        }
        let problem = Problem::named(row, columns, task_id)?;
        if let Some(step) = self.refused(&problem.statement, &made.bare_statement) {
            return Ok(Err(step));
        }
        Ok(Ok(problem))
    }

    /// Columns that rows of every dataset have.
    fn add_facts(&self, columns: &mut Map<String, Value>, counts: &mut Counts) {
        let options = &self.options;
        columns
            .entry("data_source")
            .or_insert_with(|| json!(options.data_source));
        columns
            .entry("split")
            .or_insert_with(|| json!(options.split));
        for field in ["solutions", "incorrect_solutions"] {
            if let Some(Value::Array(programs)) = columns.get_mut(field) {
                let left = programs.len().saturating_sub(options.solutions);
                counts.add(&format!("{field} left out: more than are kept"), left);
                programs.truncate(options.solutions);
            }
        }
    }

    fn in_dates(&self, row: &Row, columns: &Map<String, Value>) -> Result<bool, RowError> {
        const FIELD: &str = "contest_date";
        let Some((first, last)) = &self.options.dates else {
            return Ok(true);
        };
        // Rows of problem files need not say when their contest was.
        if given(columns, FIELD).is_none() && given(columns, "content").is_some() {
            return Ok(true);
        }
        let text = given(columns, FIELD)
            .and_then(Value::as_str)
            .ok_or_else(|| row.error(FIELD, "missing: expected a date, 2024-08-01"))?;
        let date = text
            .get(..10)
            .filter(|date| is_date(date))
            .ok_or_else(|| row.error(FIELD, format!("`{text}` is no date: expected 2024-08-01")))?;
        // Dates of this form are in order as texts are.
        Ok((first.as_str()..=last.as_str()).contains(&date))
    }

    /// The step that drops a statement, if one does.
    fn refused(&mut self, statement: &str, bare: &str) -> Option<&'static str> {
        let refused = self.first_refusal(statement, bare);
        if refused.is_none() {
            let digest = *blake3::hash(statement.as_bytes()).as_bytes();
            self.seen.insert(digest);
        }
        refused
    }

    fn first_refusal(&self, statement: &str, bare: &str) -> Option<&'static str> {
        let options = &self.options;
        if self.applies(IMAGE) && has_image(statement) {
            return Some(IMAGE);
        }
        if self.applies(SPAN) && statement.contains("<span ") {
            return Some(SPAN);
        }
        if self.applies(TOO_SHORT)
            && let Some(count_tokens) = options.count_tokens
        {
            let tokens = count_tokens(statement);
            if tokens <= options.tokens.0 {
                return Some(TOO_SHORT);
            }
            if tokens >= options.tokens.1 {
                return Some(TOO_LONG);
            }
        }
        let digest = blake3::hash(statement.as_bytes());
        if self.applies(DUPLICATE) && self.seen.contains(digest.as_bytes()) {
            return Some(DUPLICATE);
        }
        // An example that was added here hides nothing.
        let overlaps = [bare, statement].map(|text| options.held_out.overlap(text));
        let found = |wanted| overlaps.contains(&Some(wanted));
        if found(Overlap::Identical) {
            Some(IDENTICAL)
        } else if found(Overlap::Alike) {
            Some(ALIKE)
        } else if found(Overlap::Shared) {
            Some(SHARED)
        } else {
            None
        }
    }

    fn applies(&self, name: &str) -> bool {
        let mut steps = self.prepared.steps.iter();
        steps.any(|step| step.step == name && step.not_applied.is_none())
    }

    fn drop_by(&mut self, name: &str) {
        for step in &mut self.prepared.steps {
            step.dropped += u64::from(step.step == name);
        }
    }
}

/// Whether a text has the form of a day, 2024-08-01.
fn is_date(text: &str) -> bool {
    let digits = text.bytes().enumerate().all(|(place, byte)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let part = |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse().ok());
    let (month, day): (Option<u32>, Option<u32>) = (part(5..7), part(8..10));
    let within = |part: Option<u32>, last| part.is_some_and(|part| (1..=last).contains(&part));
    digits && within(month, 12) && within(day, 31)
}

/// Images are tags of their own in some datasets, and of HTML in others.
fn has_image(statement: &str) -> bool {
    let lower = statement.to_ascii_lowercase();
    ["<image", "<img"].iter().any(|tag| lower.contains(tag))
}
