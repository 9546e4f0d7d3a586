//! Operators between operands.

use code::sites::ast::{CmpOp, Expr, ExprBinOp, ExprCompare, Operator, StmtAugAssign};

use super::{Catalogue, Family, Place};

impl<'a> Catalogue<'_, 'a> {
    pub(super) fn comparison(&mut self, place: &Place<'_, 'a>, node: &'a ExprCompare) {
        let mut left = &*node.left;
        for (operator, right) in node.ops.iter().zip(&node.comparators) {
            if let Some(at) = self.source.operator_between(left, right) {
                for (family, other) in others(*operator) {
                    self.add(place, *family, at, *other);
                }
            }
            left = right;
        }
    }

    pub(super) fn binary(&mut self, place: &Place<'_, 'a>, node: &'a ExprBinOp) {
        let (left, right) = (&*node.left, &*node.right);
        let Some(at) = self.source.operator_between(left, right) else {
            return;
        };
        let of_texts = is_text(left) || is_text(right);
        if !of_texts && let Some(other) = other(node.op) {
            self.add(place, Family::Arithmetic, at, other);
        }
        let one = self.slice(right) == "1";
        if one && matches!(node.op, Operator::Add | Operator::Sub) {
            let left = self.slice(self.bracketed(left, node));
            self.add(place, Family::OffByOne, node, left);
        }
        use Operator::{Div, FloorDiv, Mod, Pow, Sub};
        if !of_texts && matches!(node.op, Sub | Div | FloorDiv | Mod | Pow) {
            let (left, right) = (self.bracketed(left, node), self.bracketed(right, node));
            self.add_swap(place, Family::OperandOrder, left, right);
        }
    }

    pub(super) fn accumulation(&mut self, place: &Place<'_, 'a>, node: &'a StmtAugAssign) {
        let Some(at) = self.source.operator_between(&*node.target, &*node.value) else {
            return;
        };
        self.add(place, Family::Accumulation, at, "=");
        if let Some(other) = other(node.op)
            && !is_text(&node.value)
        {
            self.add(place, Family::Accumulation, at, format!("{other}="));
        }
    }
}

/// Whether an expression is no number.
fn is_text(expression: &Expr) -> bool {
    expression.is_string_literal_expr()
        || expression.is_bytes_literal_expr()
        || expression.is_f_string_expr()
        || expression.is_list_expr()
        || expression.is_tuple_expr()
        || expression.is_list_comp_expr()
        || matches!(expression, Expr::BinOp(inner) if is_text(&inner.left) || is_text(&inner.right))
}

fn others(operator: CmpOp) -> &'static [(Family, &'static str)] {
    use Family::{Boundary, Comparison};
    match operator {
        CmpOp::Lt => &[(Boundary, "<="), (Comparison, ">")],
        CmpOp::LtE => &[(Boundary, "<"), (Comparison, ">=")],
        CmpOp::Gt => &[(Boundary, ">="), (Comparison, "<")],
        CmpOp::GtE => &[(Boundary, ">"), (Comparison, "<=")],
        CmpOp::Eq => &[(Comparison, "!=")],
        CmpOp::NotEq => &[(Comparison, "==")],
        CmpOp::Is => &[(Comparison, "is not")],
        CmpOp::IsNot => &[(Comparison, "is")],
        CmpOp::In => &[(Comparison, "not in")],
        CmpOp::NotIn => &[(Comparison, "in")],
    }
}

fn other(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Add => "-",
        Operator::Sub => "+",
        Operator::Mult => "+",
        Operator::Div => "//",
        Operator::FloorDiv => "/",
        Operator::Mod => "//",
        Operator::Pow => "*",
        Operator::LShift => ">>",
        Operator::RShift => "<<",
        Operator::BitOr => "&",
        Operator::BitAnd => "|",
        Operator::BitXor => "|",
        Operator::MatMult => return None,
    })
}
