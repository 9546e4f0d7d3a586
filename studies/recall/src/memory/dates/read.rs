//! Dates as datasets write them.

use jiff::civil::Date;

use super::{
    Day, Style,
    english::month_of,
    words::{Words, number_in_front},
};

/// `2023-05-07`, `2023/5/7` or `2023年5月7日`, wherever it stands.
pub(super) fn numeric(text: &str) -> Option<Day> {
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
pub(super) fn named(text: &str) -> Option<Day> {
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
