//! Checks that may be missing before a statement, by what came and should not have, and what should have come.

use ruff_python_ast::{AnyNodeRef, Expr};
use ruff_text_size::Ranged;

use super::{
    Family,
    bench::{Bench, own_range},
    forgotten::is_in_loop,
    vocabulary::push_new,
};
use crate::sites::{BoundBy, SiteIndex};

/// Names that a check is about.
const NAMES: usize = 3;

/// Edits that add a check before the statement `at`.
pub(super) fn before(bench: &mut Bench<'_, '_>, at: SiteIndex, is_first: bool) {
    let node = bench.node(at);
    let mut checks: Vec<(f64, String, String)> = Vec::new();
    let parameters = parameters(bench, at);
    let used = used(bench, at);
    for (nth, name) in used.iter().take(NAMES).enumerate() {
        let later = 0.3 * nth as f64;
        for (test, cost) in protecting(bench, name) {
            for (leave, more) in leaves(bench, at) {
                checks.push((cost + more + later, test.clone(), leave));
            }
        }
    }
    let asked = if is_first { &parameters } else { &used };
    for error in bench.hints.not_raised.iter().take(2) {
        for (nth, name) in asked.iter().take(NAMES).enumerate() {
            for (test, cost) in [
                (format!("not {name}"), 1.8),
                (format!("{name} is None"), 2.0),
                (format!("{name} < 0"), 2.0),
                (format!("{name} <= 0"), 2.1),
            ] {
                let cost = cost + 0.3 * nth as f64;
                checks.push((cost, test, format!("raise {error}")));
            }
        }
    }
    if is_first {
        for name in parameters.iter().take(4) {
            defaults(bench, at, name);
            for (test, result, cost) in [
                (format!("not {name}"), *name, 3.8),
                (format!("{name} is None"), "None", 3.8),
                (format!("not {name}"), "None", 4.4),
                (format!("not {name}"), "False", 4.6),
            ] {
                checks.push((cost, test, format!("return {result}")));
            }
        }
    }
    for (cost, test, leave) in checks {
        let lines = [format!("if {test}:"), format!("    {leave}")];
        if let Some(edit) = bench.before(node, &lines) {
            bench.push(Family::Guard, cost, at, edit);
        }
    }
}

/// Parameters of the function around, without those that name the object or the class.
fn parameters<'a>(bench: &Bench<'_, 'a>, at: SiteIndex) -> Vec<&'a str> {
    let Some(function) = bench.function(at) else {
        return Vec::new();
    };
    let bound = function.bound.iter();
    let parameters = bound.filter(|bound| bound.by == BoundBy::Parameter);
    let named = parameters.map(|bound| bound.name);
    named
        .filter(|name| !matches!(*name, "self" | "cls"))
        .collect()
}

/// Local names that the statement reads, without its blocks.
fn used<'a>(bench: &Bench<'_, 'a>, at: SiteIndex) -> Vec<&'a str> {
    let Some(function) = bench.function(at) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for name in bench.ingredients.names(own_range(bench.node(at))) {
        let is_local = function.bound.iter().any(|bound| bound.name == name);
        if is_local && !matches!(name, "self" | "cls") {
            push_new(&mut names, name);
        }
    }
    names
}

/// Conditions under which a value would lead to the exception that came.
fn protecting(bench: &Bench<'_, '_>, name: &str) -> Vec<(String, f64)> {
    let came = |error: &str| bench.hints.raised.iter().any(|raised| raised == error);
    let mut tests = Vec::new();
    if came("AttributeError") || came("TypeError") {
        tests.push((format!("{name} is None"), 2.0));
    }
    if [
        "IndexError",
        "KeyError",
        "ZeroDivisionError",
        "StopIteration",
        "ValueError",
    ]
    .into_iter()
    .any(came)
    {
        tests.push((format!("not {name}"), 2.2));
    }
    tests
}

/// Ways to leave, the likeliest first.
fn leaves(bench: &Bench<'_, '_>, at: SiteIndex) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    if is_in_loop(bench, at) {
        found.push(("continue".to_owned(), 0.2));
    }
    if parameters(bench, at).contains(&"default") {
        found.push(("return default".to_owned(), 0.0));
    }
    found.push(("return None".to_owned(), 0.3));
    for error in bench.vocabulary.exceptions.iter().take(2) {
        found.push((format!("raise {error}"), 0.8));
    }
    for value in ["False", "[]"] {
        found.push((format!("return {value}"), 1.4));
    }
    found
}

/// What a parameter that defaults to `None` may stand for.
fn defaults(bench: &mut Bench<'_, '_>, at: SiteIndex, name: &str) {
    let definition = bench.function(at).and_then(|function| function.function());
    let parameter = definition.and_then(|definition| {
        let mut parameters = definition.parameters.iter_non_variadic_params();
        parameters.find(|parameter| parameter.name().as_str() == name)
    });
    let default = parameter.and_then(|parameter| parameter.default());
    if !default.is_some_and(Expr::is_none_literal_expr) {
        return;
    }
    for (value, cost) in [
        ("[]", 3.2),
        ("{}", 3.2),
        ("()", 3.4),
        ("0", 3.6),
        ("''", 3.8),
    ] {
        let lines = [
            format!("if {name} is None:"),
            format!("    {name} = {value}"),
        ];
        if let Some(edit) = bench.before(bench.node(at), &lines) {
            bench.push(Family::Guard, cost, at, edit);
        }
    }
}

/// Whether a check before a statement could do anything.
pub(super) fn can_be_checked(node: AnyNodeRef<'_>) -> bool {
    !matches!(
        node,
        AnyNodeRef::StmtFunctionDef(_)
            | AnyNodeRef::StmtClassDef(_)
            | AnyNodeRef::StmtPass(_)
            | AnyNodeRef::StmtBreak(_)
            | AnyNodeRef::StmtContinue(_)
    ) && node.range().len().to_usize() > 0
}
