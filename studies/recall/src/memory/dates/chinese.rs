//! Expressions of time in Chinese.

use jiff::{ToSpan, civil::Date};

use super::{Span, Unit, shifted};

/// The expression that `text` begins with: its length in bytes, and what it means.
pub(super) fn chinese(text: &str, today: Date) -> Option<(usize, Span)> {
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
