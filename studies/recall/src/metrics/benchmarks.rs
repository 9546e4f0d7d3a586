//! Rules of single benchmarks: what they read, and what they count.

use super::text::{exact_match, normalize, substring_exact_match};
use crate::answer::boxed;

/// The two readings of a response that MemoryAgentBench scores, of which the better counts: the whole, and
/// the rest of the line behind the first `Answer:`, or the first line where there is none.
pub fn memory_agent_bench_readings(response: &str) -> [String; 2] {
    [response.to_owned(), memory_agent_bench_answer(response)]
}

/// The second of [`memory_agent_bench_readings`], which is the only one for in-context learning and EventQA.
pub fn memory_agent_bench_answer(response: &str) -> String {
    const PREFIX: &str = "answer:";
    // In ASCII alone, so that offsets stay the same.
    let lower = response.to_ascii_lowercase();
    let start = lower.find(PREFIX).map_or(0, |at| at + PREFIX.len());
    let line = response[start..].split('\n').next().unwrap_or("").trim();
    let repeated = line.to_ascii_lowercase().starts_with(PREFIX);
    let line = if repeated {
        &line[PREFIX.len()..]
    } else {
        line
    };
    line.trim().to_owned()
}

/// Share of `keywords` that occur in `response`, whatever their case (Mem-alpha's BookSum, RULER's needles).
pub fn keyword_recall<'a>(response: &str, keywords: impl IntoIterator<Item = &'a str>) -> f64 {
    let response = response.to_lowercase();
    let found = keywords
        .into_iter()
        .map(|keyword| keyword.trim().to_lowercase())
        .filter(|keyword| !keyword.is_empty())
        .map(|keyword| f64::from(response.contains(&keyword)));
    mean(found)
}

/// Share of the parts of `gold` between semicolons whose normal form occurs in `response` (Mem-alpha's
/// PerLTQA).
pub fn hit_rate(response: &str, gold: &str) -> f64 {
    let parts = gold.split(';').filter(|part| !part.trim().is_empty());
    mean(parts.map(|part| substring_exact_match(response, part)))
}

/// 1 when the last box of `response` holds the integer that `gold` is.
pub fn boxed_integer(response: &str, gold: &str) -> f64 {
    let integer = |text: &str| text.trim().parse::<i64>().ok();
    let answer = boxed(response).and_then(integer);
    f64::from(answer.is_some() && answer == integer(gold))
}

/// 1 when the last box within the final 300 characters of `response` has the normal form of `gold`
/// (MemAgent's HotpotQA in RULER).
pub fn ruler_hotpotqa(response: &str, gold: &str) -> f64 {
    let start = response
        .char_indices()
        .rev()
        .take(300)
        .last()
        .map_or(0, |(at, _)| at);
    boxed(&response[start..]).map_or(0.0, |answer| exact_match(answer, gold))
}

/// How many objectives are met (MEM1): the k-th part of `answer` between semicolons is one of the k-th
/// list of gold answers.
pub fn objectives_met<A: AsRef<str>>(answer: &str, golds: &[Vec<A>]) -> usize {
    answer
        .split(';')
        .zip(golds)
        .filter(|(part, golds)| {
            !part.trim().is_empty()
                && golds
                    .iter()
                    .any(|gold| exact_match(part, gold.as_ref()) == 1.0)
        })
        .count()
}

/// Share of `golds` among the first `k` of `predictions`, compared by normal form.
pub fn recall_at_k(predictions: &[String], golds: &[String], k: usize) -> f64 {
    let is_named = |gold: &String| {
        let mut first = predictions.iter().take(k);
        first.any(|item| exact_match(item, gold) == 1.0)
    };
    mean(golds.iter().map(|gold| f64::from(is_named(gold))))
}

/// Items of a recommendation in the order in which they stand: the lines from `1.` on, or, without numbers,
/// whatever commas and lines divide. Numbers before them and parentheses in them are left out.
pub fn recommended(response: &str) -> Vec<String> {
    let lines: Vec<&str> = match response.split_once("1.") {
        Some((_, list)) => list.lines().collect(),
        None => response.split([',', '\n']).collect(),
    };
    let items = lines.into_iter().map(|line| {
        let item = without_parentheses(line.trim());
        let unnumbered = item.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = if unnumbered.len() < item.len() {
            let marks = ['.', ')', '、', ' ', '-', '—', '–'];
            unnumbered.trim_start_matches(marks).to_owned()
        } else {
            item
        };
        item.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    items.filter(|item| !item.is_empty()).collect()
}

/// Whether both name a number of the same unit of time, not more than one apart: the tolerance that
/// LongMemEval's judge has for questions about time.
pub fn within_one_unit_of_time(prediction: &str, gold: &str) -> bool {
    let prediction = durations(prediction);
    durations(gold).iter().any(|(number, unit)| {
        prediction.iter().any(|(other, other_unit)| {
            number.abs_diff(*other) <= 1 && (other_unit.is_none() || other_unit == unit)
        })
    })
}

/// Numbers with the unit of time right behind them. A text that is nothing but a number has one without unit.
fn durations(text: &str) -> Vec<(u64, Option<&'static str>)> {
    const UNITS: [&str; 6] = ["minute", "hour", "day", "week", "month", "year"];
    let text = normalize(text);
    let words: Vec<&str> = text.split(' ').collect();
    if let [number] = words[..] {
        return number_of(number).map(|n| (n, None)).into_iter().collect();
    }
    let pairs = words.windows(2).filter_map(|pair| {
        let unit = pair[1].strip_suffix('s').unwrap_or(pair[1]);
        let unit = UNITS.into_iter().find(|name| *name == unit)?;
        Some((number_of(pair[0])?, Some(unit)))
    });
    pairs.collect()
}

fn number_of(word: &str) -> Option<u64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let spelt = || WORDS.iter().position(|name| *name == word);
    word.parse().ok().or_else(|| Some(spelt()? as u64))
}

/// `text` without parentheses that have none inside, and what stands in them.
fn without_parentheses(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(close) = rest.find(')') {
        match rest[..close].rfind('(') {
            Some(open) => kept.push_str(&rest[..open]),
            None => kept.push_str(&rest[..=close]),
        }
        rest = &rest[close + 1..];
    }
    kept.push_str(rest);
    kept
}

/// 0 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}
