//! Dates as datasets write them, and "yesterday" turned into one.

mod chinese;
mod english;
mod read;
mod words;

use jiff::{ToSpan, civil::Date};

use self::{
    chinese::chinese,
    english::{english, month_of},
    words::{Words, number_in_front},
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

/// The months in English, in order.
pub(crate) const MONTHS: [&str; 12] = [
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

/// The days of the week in English, from Monday on.
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

impl Day {
    /// The first date in a timestamp: `2023-05-07T10:00`, `2023/05/20 (Sat) 02:21`, `1:56 pm on 8 May, 2023`,
    /// `May 8, 2023`, `2023年5月8日`. Nothing where there is none.
    pub fn read(timestamp: &str) -> Option<Self> {
        read::numeric(timestamp).or_else(|| read::named(timestamp))
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

/// Whether a word is the whole name of a month or of a day of the week, in whatever case.
pub(crate) fn is_named(word: &str) -> bool {
    let mut names = MONTHS.iter().chain(&WEEKDAYS);
    names.any(|name| name.eq_ignore_ascii_case(word))
}

/// The span of `unit` that lies so many of them behind the one that `today` is in.
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
