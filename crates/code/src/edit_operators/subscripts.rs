//! Indices, slices, and what loops and comprehensions run over.

use ruff_python_ast::{Comprehension, Expr, ExprSlice, ExprSubscript};
use ruff_text_size::{Ranged, TextRange};

use super::{Family, bench::Bench, constants::is_constant, omitted};
use crate::sites::{Edit, SiteIndex};

pub(super) fn subscript(bench: &mut Bench<'_, '_>, at: SiteIndex, subscript: &ExprSubscript) {
    match &*subscript.slice {
        Expr::Slice(slice) => bounds(bench, at, slice),
        Expr::NumberLiteral(_) | Expr::UnaryOp(_) => index(bench, at, &subscript.slice),
        Expr::Name(_) | Expr::BinOp(_) | Expr::Attribute(_) | Expr::Call(_) => {
            let text = bench.text(&*subscript.slice);
            for other in [
                format!("{text} + 1"),
                format!("{text} - 1"),
                format!("-{text}"),
            ] {
                let edit = Edit::replace(&*subscript.slice, other);
                bench.push(Family::OffByOne, 2.6, at, edit);
            }
        }
        _ => {}
    }
    let value = bench.text(&*subscript.value);
    bench.replace(Family::Bounds, 3.0, at, value);
}

fn index(bench: &mut Bench<'_, '_>, at: SiteIndex, slice: &Expr) {
    let others: &[&str] = match bench.text(slice) {
        "0" => &["-1", "1"],
        "-1" => &["0", "-2", "1"],
        "1" => &["0", "-1", "2"],
        "-2" => &["-1", "-3", "2"],
        _ => &[],
    };
    for other in others {
        bench.push(Family::Bounds, 0.9, at, Edit::replace(slice, *other));
    }
}

fn bounds(bench: &mut Bench<'_, '_>, at: SiteIndex, slice: &ExprSlice) {
    let text =
        |bound: &Option<Box<Expr>>| bound.as_deref().map(|bound| bench.text(bound).to_owned());
    let (lower, upper, step) = (text(&slice.lower), text(&slice.upper), text(&slice.step));
    let mut variants: Vec<(f64, [Option<String>; 3])> = Vec::new();
    let mut add =
        |cost: f64, lower: Option<String>, upper: Option<String>, step: Option<String>| {
            variants.push((cost, [lower, upper, step]));
        };
    let is_number = |bound: &Option<Box<Expr>>| bound.as_deref().is_some_and(is_constant);
    let more = |text: &str| format!("{text} + 1");
    let less = |text: &str| format!("{text} - 1");
    if let Some(bound) = &lower {
        add(1.8, None, upper.clone(), step.clone());
        if !is_number(&slice.lower) {
            add(1.6, Some(more(bound)), upper.clone(), step.clone());
            add(1.6, Some(less(bound)), upper.clone(), step.clone());
            add(2.4, Some(negated(bound)), upper.clone(), step.clone());
        }
    } else {
        add(2.0, Some("1".to_owned()), upper.clone(), step.clone());
    }
    if let Some(bound) = &upper {
        add(1.8, lower.clone(), None, step.clone());
        if !is_number(&slice.upper) {
            add(1.6, lower.clone(), Some(more(bound)), step.clone());
            add(1.6, lower.clone(), Some(less(bound)), step.clone());
            add(2.2, lower.clone(), Some(negated(bound)), step.clone());
        }
    } else {
        add(2.0, lower.clone(), Some("-1".to_owned()), step.clone());
    }
    if lower.is_some() != upper.is_some() {
        add(1.4, upper.clone(), lower.clone(), step.clone());
    } else if lower.is_some() {
        add(2.4, upper.clone(), lower.clone(), step.clone());
    }
    // All but the first for all but the last.
    match (lower.as_deref(), upper.as_deref()) {
        (Some("1"), None) => add(1.6, None, Some("-1".to_owned()), step.clone()),
        (None, Some("-1")) => add(1.6, Some("1".to_owned()), None, step.clone()),
        _ => {}
    }
    match step.as_deref() {
        None => {
            add(2.6, lower.clone(), upper.clone(), Some("-1".to_owned()));
            add(3.0, lower.clone(), upper.clone(), Some("2".to_owned()));
        }
        Some(step) => {
            add(1.6, lower.clone(), upper.clone(), None);
            add(1.8, lower.clone(), upper.clone(), Some(negated(step)));
        }
    }
    let colons = bench.text(slice).to_owned();
    for (cost, [lower, upper, step]) in variants {
        let mut text = format!(
            "{}:{}",
            lower.unwrap_or_default(),
            upper.unwrap_or_default()
        );
        if let Some(step) = step {
            text = format!("{text}:{step}");
        }
        if text != colons {
            bench.push(Family::Bounds, cost, at, Edit::replace(slice, text));
        }
    }
}

fn negated(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(rest) => rest.to_owned(),
        None if text
            .chars()
            .all(|letter| letter.is_alphanumeric() || "_.()".contains(letter)) =>
        {
            format!("-{text}")
        }
        None => format!("-({text})"),
    }
}

pub(super) fn comprehension(
    bench: &mut Bench<'_, '_>,
    at: SiteIndex,
    comprehension: &Comprehension,
) {
    for condition in &comprehension.ifs {
        let range = bench.source.with_brackets(
            condition,
            TextRange::new(comprehension.iter.end(), condition.end()),
        );
        let before = bench.source.text()[..range.start().to_usize()].rfind("if");
        if let Some(before) = before {
            let edit = Edit::replace_span(before..range.end().to_usize(), "");
            bench.push(Family::Condition, 2.4, at, edit);
        }
    }
    if comprehension.ifs.is_empty() {
        omitted::filter(bench, at, comprehension);
    }
    iterated(bench, at, &comprehension.iter);
}

/// What a loop runs over.
pub(super) fn iterated(bench: &mut Bench<'_, '_>, at: SiteIndex, iter: &Expr) {
    let text = bench.operand(iter);
    let inside = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let bare = inside.unwrap_or(&text).to_owned();
    if let Expr::Call(call) = iter {
        if bench.text(&*call.func) == "enumerate" && call.arguments.len() == 1 {
            let other = format!("{}, 1)", bare.trim_end_matches(')'));
            bench.push(Family::Iteration, 1.8, at, Edit::replace(iter, other));
        }
        if bench.text(&*call.func) == "range" {
            return;
        }
    }
    for (cost, other) in [
        (2.4, format!("reversed({bare})")),
        (2.6, format!("{text}[1:]")),
        (2.8, format!("{text}[:-1]")),
        (2.8, format!("list({bare})")),
        (3.0, format!("sorted({bare})")),
        (3.0, format!("{text}[::-1]")),
        (3.4, format!("{text}.items()")),
        (3.4, format!("set({bare})")),
    ] {
        bench.push(Family::Iteration, cost, at, Edit::replace(iter, other));
    }
}
