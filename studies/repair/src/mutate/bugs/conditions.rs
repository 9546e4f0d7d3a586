//! Conditions, and what they choose between.

use code::sites::ast::{
    BoolOp, Comprehension, Expr, ExprBoolOp, ExprIf, ExprUnaryOp, Stmt, StmtIf, StmtWhile, UnaryOp,
};
use ruff_text_size::{Ranged, TextRange};

use super::{Catalogue, Family, Place};

impl<'a> Catalogue<'_, 'a> {
    pub(super) fn logic(&mut self, place: &Place<'_, 'a>, node: &'a ExprBoolOp) {
        let other = match node.op {
            BoolOp::And => "or",
            BoolOp::Or => "and",
        };
        for pair in node.values.windows(2) {
            if let Some(at) = self.source.operator_between(&pair[0], &pair[1]) {
                self.add(place, Family::Logic, at, other);
            }
        }
        for missing in 0..node.values.len() {
            let ranges: Vec<TextRange> = node
                .values
                .iter()
                .map(|value| self.bracketed(value, node))
                .collect();
            // With the operator on its other side.
            let at = match missing {
                0 => TextRange::new(node.start(), ranges[1].start()),
                _ => TextRange::new(ranges[missing - 1].end(), ranges[missing].end()),
            };
            self.add(place, Family::ConditionMissing, at, "");
        }
    }

    pub(super) fn unary(&mut self, place: &Place<'_, 'a>, node: &'a ExprUnaryOp) {
        let operand = self.slice(self.bracketed(&*node.operand, node));
        match node.op {
            UnaryOp::Not => self.add(place, Family::Negation, node, operand),
            UnaryOp::USub if !node.operand.is_number_literal_expr() => {
                self.add(place, Family::Arithmetic, node, operand);
            }
            _ => {}
        }
    }

    /// Comparisons and what is negated already have bugs of their own.
    fn negated(&mut self, place: &Place<'_, 'a>, test: &'a Expr) {
        let has_own = match test {
            Expr::Compare(_) => true,
            Expr::UnaryOp(inner) => inner.op == UnaryOp::Not,
            _ => false,
        };
        if !has_own {
            let text = self.slice(test);
            let negated = match test {
                Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Subscript(_) => {
                    format!("not {text}")
                }
                _ => format!("not ({text})"),
            };
            self.add(place, Family::Negation, test, negated);
        }
    }

    pub(super) fn conditional(&mut self, place: &Place<'_, 'a>, node: &'a ExprIf) {
        self.negated(place, &node.test);
        let body = self.bracketed(&*node.body, node);
        let orelse = self.bracketed(&*node.orelse, node);
        self.add_swap(place, Family::BranchOrder, body, orelse);
    }

    pub(super) fn comprehension(&mut self, place: &Place<'_, 'a>, node: &'a Comprehension) {
        let mut before = self.bracketed(&node.iter, node).end();
        for condition in &node.ifs {
            self.negated(place, condition);
            let end = self.bracketed(condition, node).end();
            let at = TextRange::new(before, end);
            self.add(place, Family::ConditionMissing, at, "");
            before = end;
        }
    }

    pub(super) fn decision(&mut self, place: &Place<'_, 'a>, node: &'a StmtIf) {
        self.negated(place, &node.test);
        for clause in &node.elif_else_clauses {
            let Some(test) = &clause.test else { continue };
            let line = self.source.line(clause.start());
            let place = Place {
                lines: (line, line),
                ..*place
            };
            self.negated(&place, test);
            if let Some((first, last)) = self.own_lines(clause) {
                let span = self.source.line_span(first, last);
                let edit = code::sites::Edit::replace_span(span, "");
                self.add_edit(&place, Family::CaseMissing, edit);
            }
        }
        match &node.elif_else_clauses[..] {
            [] => self.guard(place, node),
            [clause] if clause.test.is_none() => {
                let (then, otherwise) = (block_range(&node.body), block_range(&clause.body));
                if let (Some(then), Some(otherwise)) = (then, otherwise)
                    && self.own_lines(then).is_some()
                    && self.own_lines(otherwise).is_some()
                {
                    self.add_swap(place, Family::BranchOrder, then, otherwise);
                }
            }
            _ => {}
        }
    }

    /// A check that leaves the function or the loop.
    fn guard(&mut self, place: &Place<'_, 'a>, node: &'a StmtIf) {
        let leaves = node.body.last().is_some_and(|last| {
            matches!(
                last,
                Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_)
            )
        });
        if leaves && node.body.len() <= 3 {
            self.removed(place, Family::GuardMissing);
        }
    }

    pub(super) fn repetition(&mut self, place: &Place<'_, 'a>, node: &'a StmtWhile) {
        self.negated(place, &node.test);
        if node.orelse.is_empty() {
            let at = TextRange::at(node.start(), "while".len().try_into().unwrap_or_default());
            self.add(place, Family::LoopControl, at, "if");
        }
    }
}

/// From the first statement of a block to its last.
fn block_range(block: &[Stmt]) -> Option<TextRange> {
    Some(TextRange::new(block.first()?.start(), block.last()?.end()))
}
