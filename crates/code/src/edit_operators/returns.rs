//! What is returned and yielded, and what should be.

use ruff_python_ast::{AnyNodeRef, Expr, StmtExpr, StmtReturn};
use ruff_text_size::{Ranged, TextSize};

use super::{Family, bench::Bench, names, vocabulary::push_new};
use crate::sites::{BoundBy, Edit, SiteIndex};

pub(super) fn returned(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &StmtReturn) {
    let Some(value) = statement.value.as_deref() else {
        bare(bench, at, statement);
        return;
    };
    let text = bench.text(value);
    let range = value.range();
    match value {
        Expr::Name(_) | Expr::Call(_) | Expr::Attribute(_) | Expr::Subscript(_) => {
            for (cost, other) in [
                (2.0, format!("not {text}")),
                (2.4, format!("-{text}")),
                (2.8, format!("{text} + 1")),
                (2.8, format!("{text} - 1")),
                (2.8, format!("list({text})")),
                (3.0, format!("tuple({text})")),
                (3.2, format!("bool({text})")),
                (3.2, format!("iter({text})")),
            ] {
                bench.push(Family::Return, cost, at, Edit::replace(range, other));
            }
        }
        Expr::Compare(_) | Expr::BoolOp(_) => {
            let other = format!("not ({text})");
            bench.push(Family::Return, 2.0, at, Edit::replace(range, other));
        }
        _ => {}
    }
    if !value.is_name_expr() && !value.is_none_literal_expr() {
        for (name, cost) in locals(bench, at)
            .into_iter()
            .take(6)
            .zip([2.8, 3.0, 3.2, 3.4, 3.6, 3.8])
        {
            bench.push(Family::Return, cost, at, Edit::replace(range, name));
        }
    }
    for (cost, other) in [(3.2, "None"), (3.2, "self"), (3.4, "True"), (3.4, "False")] {
        bench.push(Family::Return, cost, at, Edit::replace(range, other));
    }
    values_like(bench, at, range, 3.2);
    // The result should be computed further first.
    bench.push(
        Family::Jump,
        3.6,
        at,
        Edit::replace(statement, format!("yield {text}")),
    );
}

fn bare(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &StmtReturn) {
    for (place, name) in locals(bench, at).into_iter().take(6).enumerate() {
        let edit = Edit::replace(statement, format!("return {name}"));
        bench.push(Family::Return, 1.8 + 0.2 * place as f64, at, edit);
    }
    for (other, cost) in [("True", 2.4), ("False", 2.4), ("self", 2.4)] {
        let edit = Edit::replace(statement, format!("return {other}"));
        bench.push(Family::Return, cost, at, edit);
    }
    let function = bench.function(at).map(|function| function.range);
    let known = bench.vocabulary.returned.clone();
    let near = known
        .iter()
        .filter(|(range, _)| function.is_some_and(|function| function.contains_range(*range)));
    for (_, text) in near.take(6) {
        let edit = Edit::replace(statement, format!("return {text}"));
        bench.push(Family::Return, 1.8, at, edit);
    }
}

/// Local names, the last bound before the place first.
pub(super) fn locals<'a>(bench: &Bench<'_, 'a>, at: SiteIndex) -> Vec<&'a str> {
    let Some(function) = bench.function(at) else {
        return Vec::new();
    };
    let start = bench.node(at).start();
    let mut names = Vec::new();
    let bound = function.bound.iter().rev();
    for bound in bound.filter(|bound| bound.at.start() < start && bound.name != "_") {
        if matches!(
            bound.by,
            BoundBy::Assignment | BoundBy::Parameter | BoundBy::Function
        ) {
            push_new(&mut names, bound.name);
        }
    }
    names
}

/// Values that the file has for the same purpose, in place of the expression `at`.
pub(super) fn values_instead(bench: &mut Bench<'_, '_>, at: SiteIndex, cost: f64) {
    let range = bench.node(at).range();
    match bench.parent(at) {
        Some(AnyNodeRef::StmtReturn(_) | AnyNodeRef::ExprYield(_)) => {
            values_like(bench, at, range, cost);
        }
        Some(AnyNodeRef::StmtAssign(assignment)) => {
            for target in &assignment.targets {
                let known = bench.vocabulary.assigned.get(bench.text(target));
                let mut texts = Vec::new();
                for (place, text) in known.into_iter().flatten() {
                    if *place != range && text.len() < 200 {
                        push_new(&mut texts, text);
                    }
                }
                for (place, text) in texts.into_iter().take(8).enumerate() {
                    let cost = cost + 0.1 * place as f64;
                    bench.push(Family::Variable, cost, at, Edit::replace(range, text));
                }
            }
        }
        _ => {}
    }
}

/// Other values that this function returns or yields, then those of its neighbours.
fn values_like(
    bench: &mut Bench<'_, '_>,
    at: SiteIndex,
    range: ruff_text_size::TextRange,
    cost: f64,
) {
    let Some(function) = bench.function(at).map(|function| function.range) else {
        return;
    };
    let own = bench.text(range);
    let mut near = Vec::new();
    let mut far: Vec<(TextSize, &str)> = Vec::new();
    for (place, text) in &bench.vocabulary.returned {
        if *text == own || text.len() > 200 {
            continue;
        }
        if function.contains_range(*place) {
            push_new(&mut near, text);
        } else {
            let distance = if place.start() > range.start() {
                place.start() - range.start()
            } else {
                range.start() - place.start()
            };
            far.push((distance, text));
        }
    }
    far.sort_by_key(|(distance, _)| *distance);
    let mut others: Vec<&str> = Vec::new();
    for (_, text) in far {
        if !near.contains(&text) {
            push_new(&mut others, text);
        }
    }
    for text in near.into_iter().take(6) {
        bench.push(Family::Return, cost, at, Edit::replace(range, text));
    }
    for (place, text) in others.into_iter().take(6).enumerate() {
        let cost = cost + 1.2 + 0.1 * place as f64;
        bench.push(Family::Return, cost, at, Edit::replace(range, text));
    }
}

/// A value that is computed and thrown away.
pub(super) fn expression(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &StmtExpr) {
    let value = &*statement.value;
    if bench.function(at).is_none() {
        return;
    }
    match value {
        Expr::Yield(_) | Expr::YieldFrom(_) => {}
        Expr::Call(call) => {
            let text = bench.text(value);
            let edit = Edit::replace(statement, format!("return {text}"));
            let cost = match is_lost(bench, at, &call.func) {
                true => 0.6,
                false => 2.0,
            };
            bench.push(Family::Return, cost, at, edit);
            let edit = Edit::replace(statement, format!("yield {text}"));
            bench.push(Family::Return, 3.4, at, edit);
            if let Expr::Attribute(attribute) = &*call.func
                && attribute.value.is_name_expr()
            {
                let object = bench.text(&*attribute.value);
                let edit = Edit::replace(statement, format!("{object} = {text}"));
                bench.push(Family::Assignment, 3.0, at, edit);
            }
        }
        // What has no effect but its value was meant to go somewhere.
        _ if !value.is_await_expr()
            && !value.is_string_literal_expr()
            && !value.is_ellipsis_literal_expr() =>
        {
            let text = bench.text(value);
            let edit = Edit::replace(statement, format!("return {text}"));
            bench.push(Family::Return, 0.2, at, edit);
        }
        _ => {}
    }
}

/// Whether a call that stands alone is made for its value: it ends a function that nothing else returns from, or
/// is of a function or method that changes nothing.
fn is_lost(bench: &Bench<'_, '_>, at: SiteIndex, callee: &Expr) -> bool {
    let name = match callee {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    };
    let is_pure = matches!(
        name,
        "join"
            | "format"
            | "strip"
            | "lstrip"
            | "rstrip"
            | "split"
            | "lower"
            | "upper"
            | "replace"
            | "sorted"
            | "list"
            | "tuple"
            | "set"
            | "frozenset"
            | "dict"
            | "str"
            | "int"
            | "float"
            | "len"
            | "sum"
            | "min"
            | "max"
            | "any"
            | "all"
            | "zip"
            | "map"
            | "filter"
            | "reversed"
            | "range"
            | "enumerate"
            | "isinstance"
            | "type"
            | "repr"
            | "abs"
            | "round"
            | "copy"
            | "keys"
            | "values"
            | "items"
            | "get"
            | "startswith"
            | "endswith"
            | "partial"
    );
    let Some(function) = bench.function(at).and_then(|function| function.function()) else {
        return false;
    };
    let is_last = function
        .body
        .last()
        .is_some_and(|last| last.range() == bench.node(at).range());
    let text = bench.text(function);
    is_pure
        || is_last
            && !text.contains("return ")
            && !text.contains("yield")
            && !name.starts_with("set")
}

pub(super) fn yielded(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    match bench.node(at) {
        AnyNodeRef::ExprYield(node) => {
            let Some(value) = node.value.as_deref() else {
                names::names_instead(bench, at, Family::Return, 3.0);
                return;
            };
            let text = bench.text(value);
            bench.push(
                Family::Return,
                1.2,
                at,
                Edit::replace(node, format!("yield from {text}")),
            );
            bench.push(
                Family::Return,
                3.0,
                at,
                Edit::replace(node, format!("return {text}")),
            );
            bench.push(
                Family::Return,
                2.6,
                at,
                Edit::replace(value, format!("tuple({text})")),
            );
            bench.push(
                Family::Return,
                2.8,
                at,
                Edit::replace(value, format!("list({text})")),
            );
            values_like(bench, at, value.range(), 2.8);
        }
        AnyNodeRef::ExprYieldFrom(node) => {
            let text = bench.text(&*node.value);
            bench.push(
                Family::Return,
                1.2,
                at,
                Edit::replace(node, format!("yield {text}")),
            );
        }
        _ => {}
    }
}
