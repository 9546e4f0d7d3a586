//! Conditions: negations, connectives, operands too many or too few.

use ruff_python_ast::{AnyNodeRef, BoolOp, Expr, ExprBoolOp, ExprIf, UnaryOp};
use ruff_text_size::{Ranged, TextRange};

use super::{Family, bench::Bench, omitted};
use crate::sites::{Edit, SiteIndex};

pub(super) fn bool_operation(bench: &mut Bench<'_, '_>, at: SiteIndex, operation: &ExprBoolOp) {
    let (other, word) = match operation.op {
        BoolOp::And => ("or", "and"),
        BoolOp::Or => ("and", "or"),
    };
    let operands: Vec<String> = operation
        .values
        .iter()
        .map(|value| bracketed(bench, value))
        .collect();
    for (place, pair) in operation.values.windows(2).enumerate() {
        let [left, right] = pair else { continue };
        let Some(span) = bench.source.operator_between(left, right) else {
            continue;
        };
        if operands.len() == 2 {
            // The other connective may bind less closely than what stands around this one.
            let text = bench.source.text();
            let (before, after) = (operation.start().to_usize(), operation.end().to_usize());
            let left = &text[before..span.start().to_usize()];
            let right = &text[span.end().to_usize()..after];
            bench.replace_loose(Family::Condition, 0.7, at, &format!("{left}{other}{right}"));
        } else {
            bench.push(Family::Condition, 1.4, at, Edit::replace(span, other));
        }
        let mut swapped = operands.clone();
        swapped.swap(place, place + 1);
        let swapped = swapped.join(&format!(" {word} "));
        bench.replace_loose(Family::Swap, 3.0, at, &swapped);
    }
    for left_out in 0..operands.len() {
        let mut rest = operands.clone();
        rest.remove(left_out);
        let rest = rest.join(&format!(" {word} "));
        bench.replace_loose(Family::Condition, 1.8, at, &rest);
    }
}

pub(super) fn choice(bench: &mut Bench<'_, '_>, at: SiteIndex, choice: &ExprIf) {
    let body = bracketed(bench, &choice.body);
    let orelse = bracketed(bench, &choice.orelse);
    let test = bench.text(&*choice.test);
    let swapped = format!("{orelse} if {test} else {body}");
    bench.replace_loose(Family::Swap, 1.0, at, &swapped);
    bench.replace_loose(Family::Condition, 2.6, at, bench.text(&*choice.body));
    bench.replace_loose(Family::Condition, 2.6, at, bench.text(&*choice.orelse));
}

/// Edits of an expression because it is a condition.
pub(super) fn in_condition(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    let Some(parent) = bench.parent(at) else {
        return;
    };
    let node = bench.node(at);
    let range = node.range();
    let is = |expression: &Expr| expression.range() == range;
    let is_whole = match parent {
        AnyNodeRef::StmtIf(parent) => is(&parent.test),
        AnyNodeRef::StmtWhile(parent) => is(&parent.test),
        AnyNodeRef::ElifElseClause(parent) => parent.test.as_ref().is_some_and(is),
        AnyNodeRef::ExprIf(parent) => is(&parent.test),
        AnyNodeRef::StmtAssert(parent) => is(&parent.test),
        AnyNodeRef::Comprehension(parent) => parent.ifs.iter().any(is),
        _ => false,
    };
    let is_part = matches!(parent, AnyNodeRef::ExprBoolOp(_));
    let is_verdict = matches!(
        parent,
        AnyNodeRef::StmtReturn(_) | AnyNodeRef::StmtAssign(_)
    ) && matches!(node, AnyNodeRef::ExprCompare(_) | AnyNodeRef::ExprBoolOp(_));
    if is_verdict {
        omitted::extended(bench, at, 3.0);
    }
    if !is_whole && !is_part {
        return;
    }
    let text = bench.text(range);
    // Comparisons have their own negations, and `not` is taken away where it stands.
    let is_negated = matches!(node, AnyNodeRef::ExprUnaryOp(unary) if unary.op == UnaryOp::Not);
    let is_comparison = matches!(node, AnyNodeRef::ExprCompare(compare) if compare.ops.len() == 1);
    if !is_negated && !is_comparison {
        let closes = matches!(
            node,
            AnyNodeRef::ExprName(_)
                | AnyNodeRef::ExprAttribute(_)
                | AnyNodeRef::ExprCall(_)
                | AnyNodeRef::ExprSubscript(_)
                | AnyNodeRef::ExprCompare(_)
        );
        let negated = if closes {
            format!("not {text}")
        } else {
            format!("not ({text})")
        };
        bench.push(Family::Negation, 0.8, at, Edit::replace(range, negated));
    }
    if is_whole {
        whole(bench, at, range);
    }
}

fn whole(bench: &mut Bench<'_, '_>, at: SiteIndex, range: TextRange) {
    let text = bench.text(range);
    let name = bench.node(at).is_expr_name() || bench.node(at).is_expr_attribute();
    if name {
        bench.replace_loose(Family::Condition, 2.2, at, &format!("{text} is not None"));
        bench.replace_loose(Family::Condition, 3.0, at, &format!("{text} is None"));
    }
    bench.push(Family::Condition, 3.2, at, Edit::replace(range, "True"));
    bench.push(Family::Condition, 3.2, at, Edit::replace(range, "False"));
    omitted::extended(bench, at, 2.6);
    let Some(function) = bench.function(at).map(|function| function.range) else {
        return;
    };
    // A condition that stands elsewhere in the function may be the right one.
    let known = bench.vocabulary.conditions.clone();
    let near = known
        .iter()
        .filter(|(other, condition)| {
            function.contains_range(*other) && *other != range && *condition != text
        })
        .take(4);
    for (_, condition) in near {
        bench.push(Family::Condition, 4.2, at, Edit::replace(range, *condition));
    }
}

/// An operand of a connective, with the brackets that it needs there.
fn bracketed(bench: &Bench<'_, '_>, value: &Expr) -> String {
    let text = bench.text(value);
    match value {
        Expr::BoolOp(_) | Expr::If(_) | Expr::Lambda(_) | Expr::Named(_) => format!("({text})"),
        _ => text.to_owned(),
    }
}
