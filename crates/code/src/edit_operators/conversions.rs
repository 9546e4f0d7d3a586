//! Conversions that may be missing, by the values that came and those that should have.

use ruff_python_ast::{AnyNodeRef, Expr, ExprContext};
use ruff_text_size::Ranged;

use super::{Family, bench::Bench};
use crate::sites::SiteIndex;

/// Conversions that are tried at one place.
const MOST: usize = 4;

/// Edits that convert the value of the expression `at`.
pub(super) fn around(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    if bench.hints.conversions.is_empty() {
        return;
    }
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
    let range = node.range();
    let is = |expression: &Expr| expression.range() == range;
    let cost = match bench.parent(at) {
        _ if !is_value => return,
        Some(AnyNodeRef::StmtReturn(_)) => 1.2,
        Some(AnyNodeRef::StmtAssign(assignment)) if is(&assignment.value) => 1.8,
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
    let known: Vec<String> = bench.hints.conversions.iter().take(MOST).cloned().collect();
    for (nth, conversion) in known.into_iter().enumerate() {
        let cost = cost + 0.2 * nth as f64;
        let converted = match conversion.strip_prefix('.') {
            Some(method) => format!("{}.{method}()", as_object(bench, node)),
            None if text.starts_with(&format!("{conversion}(")) => continue,
            None => format!("{conversion}({text})"),
        };
        bench.replace(Family::Conversion, cost, at, &converted);
    }
}

/// The text of an expression that an attribute can be taken of.
fn as_object(bench: &Bench<'_, '_>, node: AnyNodeRef<'_>) -> String {
    let text = bench.text(node);
    match node {
        AnyNodeRef::ExprBinOp(_) | AnyNodeRef::ExprIf(_) => format!("({text})"),
        _ => text.to_owned(),
    }
}
