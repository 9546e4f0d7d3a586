//! Dates as datasets write them, and "yesterday" turned into one.

use std::ops::Range;

use jiff::{
    ToSpan,
    civil::{Date, Weekday},
};

/// A day, and the way in which it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    pub date: Date,
    style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `2023-05-07`
    Dashes,
    /// `2023/05/07`
    Slashes,
    /// `7 May 2023`
    DayMonth,
    /// `May 7, 2023`
    MonthDay,
    /// `2023年5月7日`
    Chinese,
}

/// What an expression of time means, as exactly as it says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Day(Date),
    /// By its Monday.
    Week(Date),
    /// By its Saturday.
    Weekend(Date),
    Month(Date),
    Year(i16),
}

#[derive(Clone, Copy)]
enum Unit {
    Day,
    Week,
    Weekend,
    Month,
    Year,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Day {
    /// The first date in a timestamp: `2023-05-07T10:00`, `2023/05/20 (Sat) 02:21`, `1:56 pm on 8 May, 2023`,
    /// `May 8, 2023`, `2023年5月8日`. Nothing where there is none.
    pub fn read(timestamp: &str) -> Option<Self> {
        numeric(timestamp).or_else(|| named(timestamp))
    }

    fn write(self, span: Span) -> String {
        let month_name = |date: Date| MONTHS[date.month() as usize - 1];
        let day = |date: Date| {
            let (year, month, day) = (date.year(), date.month(), date.day());
            match self.style {
                Style::Dashes => format!("{year:04}-{month:02}-{day:02}"),
                Style::Slashes => format!("{year:04}/{month:02}/{day:02}"),
                Style::DayMonth => format!("{day} {} {year}", month_name(date)),
                Style::MonthDay => format!("{} {day}, {year}", month_name(date)),
                Style::Chinese => format!("{year}年{month}月{day}日"),
            }
        };
        match (span, self.style) {
            (Span::Day(date), _) => day(date),
            (Span::Week(monday), Style::Chinese) => format!("{}那周", day(monday)),
            (Span::Weekend(saturday), Style::Chinese) => format!("{}的周末", day(saturday)),
            (Span::Week(monday), _) => format!("the week of {}", day(monday)),
            (Span::Weekend(saturday), _) => format!("the weekend of {}", day(saturday)),
            (Span::Month(date), Style::Dashes) => format!("{:04}-{:02}", date.year(), date.month()),
            (Span::Month(date), Style::Slashes) => {
                format!("{:04}/{:02}", date.year(), date.month())
            }
            (Span::Month(date), Style::Chinese) => format!("{}年{}月", date.year(), date.month()),
            (Span::Month(date), _) => format!("{} {}", month_name(date), date.year()),
            (Span::Year(year), Style::Chinese) => format!("{year}年"),
            (Span::Year(year), _) => year.to_string(),
        }
    }
}

/// `text` with the date behind every expression of time that follows from `today`: "yesterday (7 May 2023)",
/// written as `today` was. "Last Friday" is the latest one before today, "next Friday" the first one after
/// it, "this Friday" and the Chinese 上周五 count in weeks that begin on Monday; weeks stand for their Monday,
/// weekends for their Saturday.
pub(super) fn resolve(text: &str, today: Day) -> String {
    let words = Words::of(text);
    let mut resolved = String::with_capacity(text.len());
    let (mut copied, mut index) = (0, 0);
    while index < words.spans.len() {
        let found = english(&words, index, today.date)
            .map(|(taken, span)| (words.spans[index + taken - 1].end, taken, span))
            .or_else(|| {
                let start = words.spans[index].start;
                let (length, span) = chinese(&text[start..], today.date)?;
                let end = start + length;
                let behind = words.spans[index..].iter();
                let taken = behind.take_while(|it| it.start < end).count();
                Some((end, taken, span))
            });
        let Some((end, taken, span)) = found else {
            index += 1;
            continue;
        };
        resolved.push_str(&text[copied..end]);
        copied = end;
        if !text[end..].trim_start().starts_with(['(', '（']) {
            let is_chinese = today.style == Style::Chinese;
            let (open, close) = if is_chinese {
                ("（", "）")
            } else {
                (" (", ")")
            };
            resolved.push_str(open);
            resolved.push_str(&today.write(span));
            resolved.push_str(close);
        }
        index += taken;
    }
    resolved.push_str(&text[copied..]);
    resolved
}

/// Whether a text says when: by an expression that [`resolve`] knows, a month's name beside a number, or a
/// year between 1900 and 2099.
pub(super) fn says_when(text: &str) -> bool {
    let any_day = Date::constant(2000, 6, 15);
    let words = Words::of(text);
    (0..words.spans.len()).any(|index| {
        let word = words.at(index);
        let is_beside_number = || {
            let before = index.checked_sub(1).map_or("", |before| words.at(before));
            [before, words.at(index + 1)]
                .iter()
                .any(|word| number_in_front(word).is_some())
        };
        let is_year = word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
        english(&words, index, any_day).is_some()
            || chinese(&text[words.spans[index].start..], any_day).is_some()
            || (is_year && word.bytes().all(|byte| byte.is_ascii_digit()))
            || ((month_of(word).is_some() || word == "月" || word == "年") && is_beside_number())
    })
}

/// Runs of letters or digits with their apostrophes; characters of scripts without spaces stand alone.
struct Words {
    /// The text, with ASCII letters in lower case: as long as the text.
    lower: String,
    spans: Vec<Range<usize>>,
}

impl Words {
    fn of(text: &str) -> Self {
        let mut spans: Vec<Range<usize>> = Vec::new();
        let mut joins = false;
        for (at, character) in text.char_indices() {
            let is_wide = !character.is_ascii() && super::sentences::is_wide(character);
            if !character.is_alphanumeric() && !matches!(character, '\'' | '’') {
                joins = false;
                continue;
            }
            let end = at + character.len_utf8();
            match spans.last_mut() {
                Some(span) if joins && !is_wide => span.end = end,
                _ => spans.push(at..end),
            }
            joins = !is_wide;
        }
        Self {
            lower: text.to_ascii_lowercase(),
            spans,
        }
    }

    /// A word, empty behind the last one.
    fn at(&self, index: usize) -> &str {
        self.spans
            .get(index)
            .map_or("", |span| &self.lower[span.clone()])
    }
}

/// The expression that begins with the word at `first`: how many words it has, and what it means.
fn english(words: &Words, first: usize, today: Date) -> Option<(usize, Span)> {
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

/// The expression that `text` begins with: its length in bytes, and what it means.
fn chinese(text: &str, today: Date) -> Option<(usize, Span)> {
    const DAYS: [(&str, i64); 15] = [
        ("大前天", -3),
        ("大后天", 3),
        ("前天", -2),
        ("昨天", -1),
        ("昨晚", -1),
        ("昨日", -1),
        ("今天", 0),
        ("今晚", 0),
        ("今早", 0),
        ("今日", 0),
        ("明天", 1),
        ("明晚", 1),
        ("明早", 1),
        ("明日", 1),
        ("后天", 2),
    ];
    const OTHERS: [(&str, Unit, i64); 11] = [
        ("上个月", Unit::Month, -1),
        ("上月", Unit::Month, -1),
        ("这个月", Unit::Month, 0),
        ("本月", Unit::Month, 0),
        ("下个月", Unit::Month, 1),
        ("下月", Unit::Month, 1),
        ("前年", Unit::Year, -2),
        ("去年", Unit::Year, -1),
        ("今年", Unit::Year, 0),
        ("明年", Unit::Year, 1),
        ("后年", Unit::Year, 2),
    ];
    const WEEKS: [(&str, i64); 5] = [("上", -1), ("下", 1), ("这", 0), ("本", 0), ("这个", 0)];
    if text.starts_with(|first: char| first.is_ascii() && !first.is_ascii_digit()) {
        return None;
    }
    for (expression, offset) in DAYS {
        if text.starts_with(expression) {
            return Some((expression.len(), shifted(today, Unit::Day, offset)?));
        }
    }
    for (expression, unit, offset) in OTHERS {
        if text.starts_with(expression) {
            return Some((expression.len(), shifted(today, unit, offset)?));
        }
    }
    for (which, offset) in WEEKS {
        let Some(rest) = text.strip_prefix(which) else {
            continue;
        };
        let rest = rest.strip_prefix('个').unwrap_or(rest);
        let Some(rest) = ["周", "星期", "礼拜"]
            .iter()
            .find_map(|week| rest.strip_prefix(week))
        else {
            continue;
        };
        let length = text.len() - rest.len();
        let Span::Week(monday) = shifted(today, Unit::Week, offset)? else {
            return None;
        };
        let next = rest.chars().next().unwrap_or(' ');
        if next == '末' {
            return Some((
                length + next.len_utf8(),
                Span::Weekend(monday.checked_add(5.days()).ok()?),
            ));
        }
        let weekday = match next {
            '日' | '天' => Some(6),
            _ => "一二三四五六".chars().position(|it| it == next),
        };
        return match weekday {
            Some(weekday) => {
                let date = monday.checked_add((weekday as i64).days()).ok()?;
                Some((length + next.len_utf8(), Span::Day(date)))
            }
            None => Some((length, Span::Week(monday))),
        };
    }
    let (number, rest) = chinese_number(text)?;
    let units = [
        ("天", Unit::Day),
        ("周", Unit::Week),
        ("个星期", Unit::Week),
        ("个月", Unit::Month),
        ("年", Unit::Year),
    ];
    let (rest, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((rest.strip_prefix(name)?, *unit)))?;
    let rest = rest.strip_prefix('以').unwrap_or(rest);
    let (rest, sign) = match rest.strip_prefix('前') {
        Some(rest) => (rest, -1),
        None => (rest.strip_prefix('后')?, 1),
    };
    Some((
        text.len() - rest.len(),
        shifted(today, unit, sign * number)?,
    ))
}

fn shifted(today: Date, unit: Unit, by: i64) -> Option<Span> {
    let monday = || {
        let back = i64::from(today.weekday().to_monday_zero_offset());
        today.checked_add((by.checked_mul(7)? - back).days()).ok()
    };
    Some(match unit {
        Unit::Day => Span::Day(today.checked_add(by.days()).ok()?),
        Unit::Week => Span::Week(monday()?),
        Unit::Weekend => Span::Weekend(monday()?.checked_add(5.days()).ok()?),
        Unit::Month => Span::Month(today.first_of_month().checked_add(by.months()).ok()?),
        Unit::Year => Span::Year(i16::try_from(i64::from(today.year()) + by).ok()?),
    })
}

fn weekday_near(today: Date, weekday: Weekday, direction: i64) -> Option<Date> {
    if direction == 0 {
        let offset = weekday.to_monday_zero_offset() - today.weekday().to_monday_zero_offset();
        return today.checked_add(i64::from(offset).days()).ok();
    }
    today.nth_weekday(direction as i32, weekday).ok()
}

fn weekday_of(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
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
fn month_of(word: &str) -> Option<i8> {
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

fn chinese_number(text: &str) -> Option<(i64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=4).contains(&digits) {
        return Some((text[..digits].parse().ok()?, &text[digits..]));
    }
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    let number = match first {
        '两' => 2,
        '半' => return None,
        _ => "一二三四五六七八九十".chars().position(|it| it == first)? as i64 + 1,
    };
    Some((number, rest))
}

/// The number that a word begins with: 8 of `8th`.
fn number_in_front(word: &str) -> Option<i64> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let is_ordinal = matches!(&word[digits..], "" | "st" | "nd" | "rd" | "th");
    (is_ordinal && (1..=4).contains(&digits)).then(|| word[..digits].parse().ok())?
}

/// `2023-05-07`, `2023/5/7` or `2023年5月7日`, wherever it stands.
fn numeric(text: &str) -> Option<Day> {
    let starts = text.char_indices().filter_map(|(at, character)| {
        let follows_digit = text[..at].ends_with(|before: char| before.is_ascii_digit());
        (character.is_ascii_digit() && !follows_digit).then_some(at)
    });
    for start in starts {
        let mut rest = &text[start..];
        let mut numbers = [0_i64; 3];
        let mut separators = [' '; 2];
        let is_whole = (0..3).all(|place| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let fits = if place == 0 {
                digits == 4
            } else {
                (1..=2).contains(&digits)
            };
            if !fits {
                return false;
            }
            numbers[place] = rest[..digits].parse().unwrap_or_default();
            rest = &rest[digits..];
            if place < 2 {
                separators[place] = rest.chars().next().unwrap_or(' ');
                rest = &rest[separators[place].len_utf8().min(rest.len())..];
            }
            true
        });
        let style = match separators {
            ['-', '-'] => Style::Dashes,
            ['/', '/'] => Style::Slashes,
            ['年', '月'] => Style::Chinese,
            _ => continue,
        };
        if let Some(date) = is_whole.then(|| date_of(numbers)).flatten() {
            return Some(Day { date, style });
        }
    }
    None
}

/// `8 May, 2023` or `May 8, 2023`, wherever it stands.
fn named(text: &str) -> Option<Day> {
    let words = Words::of(text);
    (0..words.spans.len()).find_map(|index| {
        let [first, second, third] = [0, 1, 2].map(|behind| words.at(index + behind));
        let year = number_in_front(third).filter(|_| third.len() == 4)?;
        let (month, day, style) = match month_of(second) {
            Some(month) => (month, number_in_front(first)?, Style::DayMonth),
            None => (month_of(first)?, number_in_front(second)?, Style::MonthDay),
        };
        let date = date_of([year, i64::from(month), day])?;
        Some(Day { date, style })
    })
}

fn date_of([year, month, day]: [i64; 3]) -> Option<Date> {
    Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    )
    .ok()
}
