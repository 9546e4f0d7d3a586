//! Comparisons: boundaries, directions, negations.

use ruff_python_ast::{CmpOp, ExprCompare};

use super::{Family, bench::Bench, omitted};
use crate::sites::{Edit, SiteIndex};

pub(super) fn compare(bench: &mut Bench<'_, '_>, at: SiteIndex, compare: &ExprCompare) {
    let mut left = &*compare.left;
    for (operator, right) in compare.ops.iter().zip(&compare.comparators) {
        if let Some(span) = bench.source.operator_between(left, right) {
            for (other, family, cost) in others(*operator) {
                bench.push(*family, *cost, at, Edit::replace(span, other.as_str()));
            }
        }
        left = right;
    }
    omitted::alike(bench, at, compare);
    if let ([CmpOp::Eq | CmpOp::NotEq | CmpOp::Is | CmpOp::IsNot], [right]) =
        (&*compare.ops, &*compare.comparators)
    {
        // `a == b` where only `a` matters, as when an empty value counts as none.
        let value = bench.text(&*compare.left);
        bench.replace_loose(Family::Condition, 4.2, at, value);
        if right.is_none_literal_expr() {
            bench.replace_loose(Family::Condition, 3.6, at, &format!("not {value}"));
        }
    }
    if let ([_, _], [middle, last]) = (&*compare.ops, &*compare.comparators) {
        // One half of a chain.
        let text = bench.source.text();
        let half = |from: usize, to: usize| text[from..to].to_owned();
        let first = half(start(&*compare.left), end(middle));
        let second = half(start(middle), end(last));
        bench.replace_loose(Family::Condition, 3.6, at, &first);
        bench.replace_loose(Family::Condition, 3.6, at, &second);
    }
}

fn start(ranged: impl ruff_text_size::Ranged) -> usize {
    ranged.start().to_usize()
}

fn end(ranged: impl ruff_text_size::Ranged) -> usize {
    ranged.end().to_usize()
}

/// What could have been meant, likeliest first.
fn others(operator: CmpOp) -> &'static [(CmpOp, Family, f64)] {
    use CmpOp::{Eq, Gt, GtE, In, Is, IsNot, Lt, LtE, NotEq, NotIn};
    use Family::{ComparisonBoundary as Boundary, ComparisonOperator as Other};
    match operator {
        Lt => &[
            (LtE, Boundary, 0.5),
            (GtE, Other, 1.2),
            (Gt, Other, 1.3),
            (NotEq, Other, 2.2),
            (Eq, Other, 2.4),
        ],
        LtE => &[
            (Lt, Boundary, 0.5),
            (Gt, Other, 1.2),
            (GtE, Other, 1.3),
            (Eq, Other, 2.2),
            (NotEq, Other, 2.6),
        ],
        Gt => &[
            (GtE, Boundary, 0.5),
            (LtE, Other, 1.2),
            (Lt, Other, 1.3),
            (NotEq, Other, 2.2),
            (Eq, Other, 2.4),
        ],
        GtE => &[
            (Gt, Boundary, 0.5),
            (Lt, Other, 1.2),
            (LtE, Other, 1.3),
            (Eq, Other, 2.2),
            (NotEq, Other, 2.6),
        ],
        Eq => &[
            (NotEq, Other, 0.6),
            (GtE, Other, 2.0),
            (LtE, Other, 2.0),
            (Gt, Other, 2.3),
            (Lt, Other, 2.3),
            (Is, Other, 2.4),
            (In, Other, 2.6),
        ],
        NotEq => &[
            (Eq, Other, 0.6),
            (Gt, Other, 2.0),
            (Lt, Other, 2.0),
            (IsNot, Other, 2.4),
            (GtE, Other, 2.6),
            (LtE, Other, 2.6),
            (NotIn, Other, 2.6),
        ],
        Is => &[(IsNot, Other, 0.6), (Eq, Other, 2.0), (NotEq, Other, 3.0)],
        IsNot => &[(Is, Other, 0.6), (NotEq, Other, 2.0), (Eq, Other, 3.0)],
        In => &[(NotIn, Other, 0.6), (Eq, Other, 2.4)],
        NotIn => &[(In, Other, 0.6), (NotEq, Other, 2.4)],
    }
}
