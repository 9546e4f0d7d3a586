//! Operators of arithmetic, unary signs and augmented assignments.

use ruff_python_ast::{AnyNodeRef, Expr, ExprBinOp, ExprUnaryOp, Operator, StmtAugAssign, UnaryOp};
use ruff_text_size::Ranged;

use super::{
    Family,
    bench::{Bench, is_close},
};
use crate::sites::{Edit, SiteIndex};

pub(super) fn binary(bench: &mut Bench<'_, '_>, at: SiteIndex, operation: &ExprBinOp) {
    let (left, right) = (&*operation.left, &*operation.right);
    let is_text = |expression: &Expr| {
        matches!(
            expression,
            Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_)
        )
    };
    let is_formatting = is_text(left) && operation.op == Operator::Mod;
    if let Some(span) = bench.source.operator_between(left, right)
        && !is_formatting
    {
        for (other, cost) in others(operation.op) {
            let edit = with_operator(bench, at, operation, span, *other);
            bench.push(Family::Arithmetic, *cost, at, edit);
        }
    }
    let (left_text, right_text) = (bench.operand(left), bench.operand(right));
    let sign = operation.op.as_str();
    let commutes = matches!(
        operation.op,
        Operator::Mult | Operator::BitAnd | Operator::BitOr | Operator::BitXor
    );
    if !commutes {
        let cost = if operation.op == Operator::Add {
            2.6
        } else {
            1.2
        };
        let swapped = format!("{right_text} {sign} {left_text}");
        bench.replace_loose(Family::Swap, cost, at, &swapped);
    }
    let is_sum = matches!(operation.op, Operator::Add | Operator::Sub);
    let offset = match right {
        Expr::NumberLiteral(_) if is_sum => Some(bench.text(right)),
        _ => None,
    };
    let (family, cost) = match offset {
        Some("1") => (Family::OffByOne, 0.6),
        Some("2") => (Family::OffByOne, 1.0),
        Some(_) => (Family::Constant, 1.4),
        None => (Family::Arithmetic, 2.0),
    };
    bench.replace(family, cost, at, &left_text);
    if !matches!(offset, Some("1" | "2")) {
        bench.replace(Family::Arithmetic, 2.4, at, &right_text);
    }
}

/// The edit that gives an operation another operator, and its operands brackets if that binds closer.
fn with_operator(
    bench: &Bench<'_, '_>,
    at: SiteIndex,
    operation: &ExprBinOp,
    span: ruff_text_size::TextRange,
    other: Operator,
) -> Edit {
    let (left, right) = (&*operation.left, &*operation.right);
    let binds = |operand: &Expr, least: u8| {
        let bracketed = bench.source.with_brackets(operand, operation.range());
        is_close(operand)
            || bracketed != operand.range()
            || matches!(operand, Expr::BinOp(inner) if binding(inner.op) >= least)
    };
    let least = binding(other);
    let stays = binds(left, least)
        && binds(right, least + 1)
        && (least >= binding(operation.op) || !bench.needs_brackets(at, " "));
    if stays {
        return Edit::replace(span, other.as_str());
    }
    let text = format!(
        "({} {} {})",
        bench.operand(left),
        other.as_str(),
        bench.operand(right)
    );
    Edit::replace(operation, text)
}

/// How closely an operator binds.
fn binding(operator: Operator) -> u8 {
    match operator {
        Operator::BitOr => 0,
        Operator::BitXor => 1,
        Operator::BitAnd => 2,
        Operator::LShift | Operator::RShift => 3,
        Operator::Add | Operator::Sub => 4,
        Operator::Mult | Operator::MatMult | Operator::Div | Operator::Mod | Operator::FloorDiv => {
            5
        }
        Operator::Pow => 6,
    }
}

fn others(operator: Operator) -> &'static [(Operator, f64)] {
    use Operator::{
        Add, BitAnd, BitOr, BitXor, Div, FloorDiv, LShift, MatMult, Mod, Mult, Pow, RShift, Sub,
    };
    match operator {
        Add => &[
            (Sub, 0.5),
            (Mult, 1.6),
            (Mod, 3.0),
            (FloorDiv, 3.0),
            (Div, 3.2),
            (BitOr, 3.4),
        ],
        Sub => &[
            (Add, 0.5),
            (Mult, 2.4),
            (Mod, 2.8),
            (FloorDiv, 2.8),
            (Div, 3.0),
            (BitAnd, 3.4),
        ],
        Mult => &[
            (Div, 1.0),
            (Add, 1.4),
            (FloorDiv, 1.6),
            (Pow, 1.8),
            (Mod, 2.4),
            (Sub, 2.6),
        ],
        Div => &[
            (Mult, 0.8),
            (FloorDiv, 0.9),
            (Mod, 2.2),
            (Sub, 2.8),
            (Add, 3.0),
        ],
        FloorDiv => &[
            (Div, 0.8),
            (Mod, 1.2),
            (Mult, 1.4),
            (Sub, 2.8),
            (RShift, 3.0),
            (Add, 3.2),
        ],
        Mod => &[
            (FloorDiv, 0.9),
            (Div, 1.6),
            (Mult, 2.0),
            (Add, 2.8),
            (Sub, 2.8),
        ],
        Pow => &[(Mult, 0.7), (Div, 2.6), (Add, 2.8), (FloorDiv, 3.0)],
        BitAnd => &[(BitOr, 0.5), (BitXor, 1.2), (Sub, 2.4), (RShift, 3.0)],
        BitOr => &[(BitAnd, 0.5), (BitXor, 1.2), (Add, 2.2), (Sub, 2.8)],
        BitXor => &[(BitAnd, 0.9), (BitOr, 0.9), (Sub, 2.4), (Pow, 2.6)],
        LShift => &[(RShift, 0.5), (Mult, 2.4), (BitAnd, 3.0)],
        RShift => &[(LShift, 0.5), (FloorDiv, 2.2), (BitAnd, 3.0)],
        MatMult => &[(Mult, 1.0)],
    }
}

pub(super) fn unary(bench: &mut Bench<'_, '_>, at: SiteIndex, operation: &ExprUnaryOp) {
    let operand = bench.operand(&operation.operand);
    match operation.op {
        UnaryOp::Not => {
            let bare = bench.text(&*operation.operand).to_owned();
            bench.replace_loose(Family::Negation, 0.6, at, &bare);
            if matches!(&*operation.operand, Expr::Name(_) | Expr::Attribute(_)) {
                bench.replace_loose(Family::Condition, 2.4, at, &format!("{bare} is None"));
            }
        }
        UnaryOp::USub => {
            bench.replace(Family::Arithmetic, 0.8, at, &operand);
            bench.replace(Family::Arithmetic, 3.2, at, &format!("~{operand}"));
        }
        UnaryOp::UAdd => bench.replace(Family::Arithmetic, 0.8, at, &format!("-{operand}")),
        UnaryOp::Invert => {
            bench.replace(Family::Arithmetic, 0.8, at, &operand);
            bench.replace(Family::Arithmetic, 2.0, at, &format!("-{operand}"));
        }
    }
}

pub(super) fn augmented_assignment(
    bench: &mut Bench<'_, '_>,
    at: SiteIndex,
    statement: &StmtAugAssign,
) {
    let Some(span) = bench
        .source
        .operator_between(&*statement.target, &*statement.value)
    else {
        return;
    };
    for (other, cost) in others(statement.op) {
        let sign = format!("{}=", other.as_str());
        bench.push(Family::Assignment, *cost, at, Edit::replace(span, sign));
    }
    bench.push(Family::Assignment, 1.2, at, Edit::replace(span, "="));
}

/// A value that may be one too low or too high.
pub(super) fn off_by_one(bench: &mut Bench<'_, '_>, at: SiteIndex, cost: f64) {
    let node = bench.node(at);
    let (is_operand, is_offset) = match node {
        AnyNodeRef::ExprName(_)
        | AnyNodeRef::ExprAttribute(_)
        | AnyNodeRef::ExprCall(_)
        | AnyNodeRef::ExprSubscript(_) => (true, false),
        AnyNodeRef::ExprBinOp(operation) => {
            let is_number = operation.right.is_number_literal_expr();
            (
                matches!(
                    operation.op,
                    Operator::Add | Operator::Sub | Operator::FloorDiv
                ),
                is_number,
            )
        }
        _ => (false, false),
    };
    if !is_operand || is_offset {
        return;
    }
    let text = bench.text(node);
    for sign in ["+", "-"] {
        bench.replace_loose(Family::OffByOne, cost, at, &format!("{text} {sign} 1"));
    }
}
