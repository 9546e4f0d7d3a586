//! Conversions that may be missing: by the values that came and those that should have, and as the file converts
//! the same thing elsewhere.

use ruff_python_ast::{AnyNodeRef, Expr, ExprContext, Operator};
use ruff_text_size::Ranged;

use super::{Family, bench::Bench};
use crate::sites::SiteIndex;

/// Conversions that are tried at one place: those that values speak for, and others.
const MOST: usize = 4;
const OTHERS: usize = 6;

/// Edits that convert the value of the expression `at`.
pub(super) fn around(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    let node = bench.node(at);
    let is_read = |context: ExprContext| context == ExprContext::Load;
    let is_value = match node {
        AnyNodeRef::ExprName(name) => is_read(name.ctx),
        AnyNodeRef::ExprAttribute(attribute) => is_read(attribute.ctx),
        AnyNodeRef::ExprSubscript(subscript) => is_read(subscript.ctx),
        AnyNodeRef::ExprCall(_)
        | AnyNodeRef::ExprBinOp(_)
        | AnyNodeRef::ExprListComp(_)
        | AnyNodeRef::ExprIf(_) => true,
        _ => false,
    };
    let told = !bench.hints.conversions.is_empty();
    let range = node.range();
    let is = |expression: &Expr| expression.range() == range;
    let cost = match bench.parent(at) {
        _ if !is_value => return,
        Some(AnyNodeRef::StmtReturn(_)) => 1.2,
        Some(AnyNodeRef::StmtAssign(assignment)) if is(&assignment.value) => 1.8,
        // What an attribute is taken of.
        Some(AnyNodeRef::ExprAttribute(_)) if told => 1.4,
        Some(
            AnyNodeRef::ExprYield(_)
            | AnyNodeRef::Arguments(_)
            | AnyNodeRef::Keyword(_)
            | AnyNodeRef::ExprTuple(_)
            | AnyNodeRef::ExprList(_)
            | AnyNodeRef::ExprBinOp(_)
            | AnyNodeRef::ExprCompare(_)
            | AnyNodeRef::ExprIf(_)
            | AnyNodeRef::ExprListComp(_)
            | AnyNodeRef::ExprGenerator(_)
            | AnyNodeRef::ExprSubscript(_)
            | AnyNodeRef::StmtFor(_),
        ) => 2.0,
        _ => return,
    };
    let text = bench.text(range);
    let told = bench.hints.conversions.iter().take(MOST).cloned();
    let told = told.enumerate();
    let mut known: Vec<(f64, String)> = told
        .map(|(nth, conversion)| (0.2 * nth as f64, conversion))
        .collect();
    for (more, conversion) in usual(bench, node) {
        if !known.iter().any(|(_, other)| other == conversion) {
            known.push((more, conversion.to_owned()));
        }
    }
    for (more, conversion) in known {
        let cost = cost + more;
        let converted = match conversion.strip_prefix('.') {
            Some(method) => format!("{}.{method}()", as_object(bench, node)),
            None if text.starts_with(&format!("{conversion}(")) => continue,
            None => format!("{conversion}({text})"),
        };
        bench.replace(Family::Conversion, cost, at, &converted);
    }
}

/// Conversions that no value speaks for, with what they cost more: of the same thing elsewhere, of what is made like
/// it, and those that the file often makes.
fn usual<'a>(bench: &Bench<'_, 'a>, node: AnyNodeRef<'a>) -> Vec<(f64, &'a str)> {
    let text = bench.text(node);
    let mut found: Vec<(f64, &str)> = Vec::new();
    let mut add = |more: f64, conversion: &'a str| {
        if !found.iter().any(|(_, other)| *other == conversion) {
            found.push((more, conversion));
        }
    };
    for conversion in bench.vocabulary.converted.get(text).into_iter().flatten() {
        add(0.4, conversion);
    }
    let is_signed = match node {
        AnyNodeRef::ExprCall(call) => matches!(bench.text(&*call.func), "int" | "float" | "round"),
        AnyNodeRef::ExprBinOp(operation) => operation.op == Operator::Sub,
        _ => false,
    };
    if is_signed {
        add(0.8, "abs");
    }
    for (nth, conversion) in bench.vocabulary.conversions().into_iter().enumerate() {
        let is_method = conversion.starts_with('.');
        // What is computed anew is rarely text.
        if is_method && !matches!(node, AnyNodeRef::ExprName(_) | AnyNodeRef::ExprAttribute(_)) {
            continue;
        }
        let more = if is_method { 1.8 } else { 1.5 };
        add(more + 0.1 * nth as f64, conversion);
    }
    found.truncate(OTHERS);
    found
}

/// The text of an expression that an attribute can be taken of.
fn as_object(bench: &Bench<'_, '_>, node: AnyNodeRef<'_>) -> String {
    let text = bench.text(node);
    match node {
        AnyNodeRef::ExprBinOp(_) | AnyNodeRef::ExprIf(_) => format!("({text})"),
        _ => text.to_owned(),
    }
}
