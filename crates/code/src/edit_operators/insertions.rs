//! Statements that are missing: results, assignments, jumps, guards, and what the code near by has.

use ruff_python_ast::{AnyNodeRef, Expr, Stmt};
use ruff_text_size::Ranged;

use super::{
    Family,
    bench::Bench,
    forgotten::{self, is_in_loop},
    guards,
    statements::results,
};
use crate::sites::{BoundBy, ScopeKind, SiteIndex};

/// Edits that add a statement before or after the statement `at`.
pub(super) fn around(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    let Some(function) = bench.function(at) else {
        return;
    };
    let Some(definition) = function.function() else {
        return;
    };
    let Some((block, place)) = bench.block(at) else {
        return;
    };
    let statement = &block[place];
    let is_top = definition
        .body
        .iter()
        .any(|top| top.range() == statement.range());
    let is_last = place + 1 == block.len();
    if is_top && is_last {
        result(bench, at, statement);
        if definition.name.as_str() == "__init__" {
            attributes(bench, at, statement);
        }
    }
    if guards::can_be_checked(bench.node(at)) {
        guards::before(bench, at, is_top && place <= 1);
    }
    if is_last && !is_top {
        jumps(bench, at, statement);
    }
    forgotten::around(bench, at, is_last);
}

fn insert_after(
    bench: &mut Bench<'_, '_>,
    family: Family,
    cost: f64,
    at: SiteIndex,
    statement: &Stmt,
    lines: &[String],
) {
    if let Some(edit) = bench.after(statement, lines) {
        bench.push(family, cost, at, edit);
    }
}

/// A function that ends without its result.
fn result(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &Stmt) {
    if matches!(statement, Stmt::Return(_) | Stmt::Raise(_)) {
        return;
    }
    for (place, name) in results(bench, at).into_iter().enumerate() {
        let cost = 2.2 + 0.3 * place as f64;
        let line = format!("return {name}");
        insert_after(bench, Family::Return, cost, at, statement, &[line]);
    }
    if let Some(name) = last_target(statement) {
        let line = format!("return {name}");
        insert_after(bench, Family::Return, 2.0, at, statement, &[line]);
    }
}

fn last_target(statement: &Stmt) -> Option<&str> {
    match statement {
        Stmt::Assign(assignment) => match &*assignment.targets {
            [Expr::Name(name)] => Some(name.id.as_str()),
            _ => None,
        },
        Stmt::AugAssign(assignment) => assignment
            .target
            .as_name_expr()
            .map(|name| name.id.as_str()),
        _ => None,
    }
}

/// Parameters of a constructor that nobody keeps.
fn attributes(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &Stmt) {
    let Some(function) = bench.function(at) else {
        return;
    };
    let class = bench.sites.class(function).map(|class| class.kind);
    let Some(ScopeKind::Class(class)) = class else {
        return;
    };
    let known = bench.vocabulary.attributes(&class.name, false);
    let body = bench.text(function.range).to_owned();
    let mut lines: Vec<(f64, String)> = Vec::new();
    for bound in &function.bound {
        if bound.by != BoundBy::Parameter || bound.name == "self" {
            continue;
        }
        let kept = known.iter().filter(|attribute| {
            attribute.trim_start_matches('_') == bound.name
                && !body.contains(&format!("self.{attribute} ="))
        });
        for attribute in kept {
            lines.push((1.4, format!("self.{attribute} = {}", bound.name)));
        }
    }
    for attribute in known {
        if !body.contains(&format!("self.{attribute}")) {
            for (value, cost) in [("None", 3.0), ("[]", 3.2), ("{}", 3.2), ("0", 3.2)] {
                lines.push((cost, format!("self.{attribute} = {value}")));
            }
        }
    }
    for (cost, line) in lines.into_iter().take(16) {
        insert_after(bench, Family::Insertion, cost, at, statement, &[line]);
    }
}

/// A block that goes on where it should leave.
fn jumps(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &Stmt) {
    if matches!(
        statement,
        Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) | Stmt::Continue(_)
    ) {
        return;
    }
    let parent = bench.sites.ancestors(at).next();
    let is_branch = parent.map(|outer| bench.node(outer)).is_some_and(|node| {
        matches!(
            node,
            AnyNodeRef::StmtIf(_)
                | AnyNodeRef::ElifElseClause(_)
                | AnyNodeRef::ExceptHandlerExceptHandler(_)
        )
    });
    let mut lines: Vec<(f64, &str)> = Vec::new();
    if is_in_loop(bench, at) {
        lines.push((if is_branch { 2.6 } else { 3.2 }, "break"));
        if is_branch {
            lines.push((2.6, "continue"));
        }
    }
    lines.push((3.0, "return"));
    for (cost, line) in lines {
        insert_after(bench, Family::Jump, cost, at, statement, &[line.to_owned()]);
    }
    for (place, name) in results(bench, at).into_iter().take(2).enumerate() {
        let line = format!("return {name}");
        let cost = 3.0 + 0.3 * place as f64;
        insert_after(bench, Family::Return, cost, at, statement, &[line]);
    }
}
