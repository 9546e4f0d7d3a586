//! Expressions of time in English.

use jiff::{
    ToSpan,
    civil::{Date, Weekday},
};

use super::{MONTHS, Span, Unit, WEEKDAYS, shifted, words::Words};

/// The expression that begins with the word at `first`: how many words it has, and what it means.
pub(super) fn english(words: &Words, first: usize, today: Date) -> Option<(usize, Span)> {
    let word = |index: usize| words.at(first + index);
    let day = |offset: i64| shifted(today, Unit::Day, offset);
    let simple = match word(0) {
        "today" | "tonight" => Some(0),
        "yesterday" => Some(-1),
        "tomorrow" => Some(1),
        _ => None,
    };
    if let Some(offset) = simple {
        return Some((1, day(offset)?));
    }
    match (word(0), word(1), word(2)) {
        ("day", "before", "yesterday") => return Some((3, day(-2)?)),
        ("day", "after", "tomorrow") => return Some((3, day(2)?)),
        ("last", "night", _) => return Some((2, day(-1)?)),
        ("this", "morning" | "afternoon" | "evening", _) => return Some((2, day(0)?)),
        _ => {}
    }
    let direction = match word(0) {
        "last" => Some(-1),
        "this" => Some(0),
        "next" => Some(1),
        _ => None,
    };
    if let Some(direction) = direction {
        if let Some(weekday) = weekday_of(word(1)) {
            return Some((2, Span::Day(weekday_near(today, weekday, direction)?)));
        }
        // "The last day" and "the next day" count from something else than today.
        if let Some(unit) = unit_of(word(1)).filter(|unit| !matches!(unit, Unit::Day)) {
            return Some((2, shifted(today, unit, direction)?));
        }
        let month = month_of(word(1)).filter(|_| direction != 0)?;
        let is_other_side = if direction < 0 {
            month < today.month()
        } else {
            month > today.month()
        };
        let year = today.year() + if is_other_side { 0 } else { direction as i16 };
        return Some((2, Span::Month(Date::new(year, month, 1).ok()?)));
    }
    if word(0) == "in" {
        let number = number_of(word(1))?;
        return Some((3, shifted(today, unit_of(word(2))?, number)?));
    }
    let number = number_of(word(0))?;
    let unit = unit_of(word(1))?;
    (word(2) == "ago").then_some(())?;
    Some((3, shifted(today, unit, -number)?))
}

fn weekday_near(today: Date, weekday: Weekday, direction: i64) -> Option<Date> {
    if direction == 0 {
        let offset = weekday.to_monday_zero_offset() - today.weekday().to_monday_zero_offset();
        return today.checked_add(i64::from(offset).days()).ok();
    }
    today.nth_weekday(direction as i32, weekday).ok()
}

fn weekday_of(word: &str) -> Option<Weekday> {
    let index = WEEKDAYS
        .iter()
        .position(|day| day.eq_ignore_ascii_case(word))?;
    Weekday::from_monday_zero_offset(i8::try_from(index).ok()?).ok()
}

fn unit_of(word: &str) -> Option<Unit> {
    Some(match word {
        "day" | "days" => Unit::Day,
        "week" | "weeks" => Unit::Week,
        "weekend" | "weekends" => Unit::Weekend,
        "month" | "months" => Unit::Month,
        "year" | "years" => Unit::Year,
        _ => return None,
    })
}

/// The month, 1 to 12, of a name or of its first three or four letters.
pub(super) fn month_of(word: &str) -> Option<i8> {
    let letters = word.len();
    let index = MONTHS.iter().position(|month| {
        let is_short = letters == 3 || word == "sept";
        let beginning = month.get(..letters).unwrap_or_default();
        (letters == month.len() || is_short) && beginning.eq_ignore_ascii_case(word)
    })?;
    i8::try_from(index + 1).ok()
}

fn number_of(word: &str) -> Option<i64> {
    const NAMES: [&str; 12] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    if matches!(word, "a" | "an") {
        return Some(1);
    }
    if let Some(index) = NAMES.iter().position(|name| *name == word) {
        return Some(index as i64 + 1);
    }
    (word.len() <= 4).then(|| word.parse().ok())?
}
