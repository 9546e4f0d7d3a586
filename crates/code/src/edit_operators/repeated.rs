//! Edits that say again what stands beside them: a test of a chain that is a test of another branch, so that one of the two
//! is never taken, and a name that is set to itself.

use ruff_python_ast::{AnyNodeRef, Expr};
use ruff_text_size::Ranged;

use super::bench::Bench;
use crate::sites::{Edit, SiteIndex};

/// What an edit that closes a branch costs more. Such programs pass tests that lack the branch.
const CLOSED: f64 = 2.0;

/// What `edit` in the statement or clause `at` costs more than others; `None` for one that sets a name to itself.
pub(super) fn surcharge(bench: &Bench<'_, '_>, at: SiteIndex, edit: &Edit) -> Option<f64> {
    match bench.node(at) {
        AnyNodeRef::StmtAssign(node) => {
            let value = node.value.range();
            let is_value =
                value.start().to_usize() == edit.start && value.end().to_usize() == edit.end;
            let is_target = |target: &Expr| bench.text(target) == edit.replacement;
            (!is_value || !node.targets.iter().any(is_target)).then_some(0.0)
        }
        AnyNodeRef::StmtIf(_) | AnyNodeRef::ElifElseClause(_) => {
            Some(if closes_branch(bench, at, edit) {
                CLOSED
            } else {
                0.0
            })
        }
        _ => Some(0.0),
    }
}

fn closes_branch(bench: &Bench<'_, '_>, at: SiteIndex, edit: &Edit) -> bool {
    let chain = match bench.node(at) {
        AnyNodeRef::StmtIf(chain) => chain,
        _ => match bench.parent(at) {
            Some(AnyNodeRef::StmtIf(chain)) => chain,
            _ => return false,
        },
    };
    let others = chain.elif_else_clauses.iter();
    let tests =
        std::iter::once(&*chain.test).chain(others.filter_map(|clause| clause.test.as_ref()));
    let is_inside =
        |test: &Expr| test.start().to_usize() <= edit.start && edit.end <= test.end().to_usize();
    let (edited, others): (Vec<&Expr>, Vec<&Expr>) = tests.partition(|test| is_inside(test));
    let [edited] = edited[..] else {
        return false;
    };
    let text = bench.text(edited);
    let from = edited.start().to_usize();
    let (before, after) = (&text[..edit.start - from], &text[edit.end - from..]);
    let made = format!("{before}{}{after}", edit.replacement);
    others.iter().any(|other| bench.text(*other) == made)
}
