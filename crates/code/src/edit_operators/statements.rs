//! Statements: assignments, jumps, definitions, and statements that are too many or in the wrong place.

use ruff_python_ast::{AnyNodeRef, Expr, Stmt, StmtAssign, StmtFunctionDef, StmtIf};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{
    Family,
    bench::{Bench, blocks},
    constants::is_constant,
    returns,
    vocabulary::push_new,
};
use crate::sites::{Edit, ScopeKind, SiteIndex};

pub(super) fn assignment(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &StmtAssign) {
    let [target] = &*statement.targets else {
        return;
    };
    let Some(span) = bench.source.operator_between(target, &*statement.value) else {
        return;
    };
    if !target.is_tuple_expr() && !target.is_list_expr() && bench.function(at).is_some() {
        let is_number = is_constant(&statement.value);
        let cost = if is_number { 2.0 } else { 1.9 };
        bench.push(Family::Assignment, cost, at, Edit::replace(span, "+="));
        for (sign, cost) in [
            ("-=", 2.8),
            ("*=", 3.4),
            ("|=", 3.4),
            ("&=", 3.8),
            ("//=", 4.0),
        ] {
            bench.push(Family::Assignment, cost, at, Edit::replace(span, sign));
        }
    }
    if let Expr::Name(name) = target {
        let class = bench
            .function(at)
            .and_then(|function| bench.sites.class(function))
            .map(|class| class.kind);
        if let Some(ScopeKind::Class(class)) = class {
            let known = bench.vocabulary.attributes(&class.name, false);
            if known.contains(&name.id.as_str()) {
                let edit = Edit::insert(name.start(), "self.");
                bench.push(Family::Variable, 1.6, at, edit);
            }
        }
    }
    if !statement.value.is_none_literal_expr() {
        let known = bench.vocabulary.assigned.get(bench.text(target));
        let own = bench.text(&*statement.value);
        let mut texts = Vec::new();
        for (_, text) in known.into_iter().flatten() {
            if *text != own && text.len() < 200 {
                push_new(&mut texts, text);
            }
        }
        for (place, text) in texts.into_iter().take(5).enumerate() {
            let edit = Edit::replace(&*statement.value, text);
            bench.push(Family::Variable, 3.2 + 0.1 * place as f64, at, edit);
        }
    }
}

pub(super) fn jump(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    let node = bench.node(at);
    for (other, cost) in [
        ("break", 0.5),
        ("continue", 0.5),
        ("pass", 1.6),
        ("return", 1.8),
    ] {
        bench.push(Family::Jump, cost, at, Edit::replace(node, other));
    }
}

pub(super) fn definition(bench: &mut Bench<'_, '_>, at: SiteIndex, function: &StmtFunctionDef) {
    for parameter in function.parameters.iter_non_variadic_params() {
        let Some(default) = parameter.default() else {
            continue;
        };
        let own = bench.text(default);
        let known = bench.vocabulary.defaults.get(parameter.name().as_str());
        let mut texts = Vec::new();
        for (_, text) in known.into_iter().flatten() {
            if *text != own {
                push_new(&mut texts, text);
            }
        }
        for text in texts.into_iter().take(4) {
            bench.push(Family::Default, 1.0, at, Edit::replace(default, text));
        }
        if !default.is_none_literal_expr() {
            bench.push(Family::Default, 2.2, at, Edit::replace(default, "None"));
        }
    }
    for decorator in &function.decorator_list {
        if let Some(span) = bench.whole_lines(decorator) {
            bench.push(Family::Decorator, 3.0, at, Edit::replace_span(span, ""));
        }
    }
    let is_method = bench
        .sites
        .scopes()
        .find(|(_, scope)| scope.range == function.range)
        .is_some_and(|(_, scope)| bench.sites.class(scope).is_some());
    let first = function
        .parameters
        .iter_non_variadic_params()
        .next()
        .map(|parameter| parameter.name().as_str());
    let name_start = match function.decorator_list.first() {
        Some(decorator) => decorator.start(),
        None => function.start(),
    };
    let decorators: &[(&str, f64)] = match (is_method, first) {
        (true, Some("cls")) => &[("classmethod", 1.0)],
        (true, Some("self")) => &[("property", 2.8)],
        (true, _) => &[("staticmethod", 1.4), ("classmethod", 3.0)],
        (false, _) => &[],
    };
    let indentation = bench.source.indentation(name_start).to_owned();
    for (decorator, cost) in decorators {
        let is_there = function
            .decorator_list
            .iter()
            .any(|known| bench.text(&known.expression) == *decorator);
        if !is_there {
            let edit = Edit::insert(name_start, format!("@{decorator}\n{indentation}"));
            bench.push(Family::Decorator, *cost, at, edit);
        }
    }
}

pub(super) fn branch(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &StmtIf) {
    let keyword = TextRange::at(statement.start(), TextSize::from(2));
    if bench.text(keyword) == "if" && statement.elif_else_clauses.is_empty() {
        bench.push(Family::Iteration, 2.8, at, Edit::replace(keyword, "while"));
    }
    for clause in &statement.elif_else_clauses {
        let keyword = TextRange::at(clause.start(), TextSize::from(4));
        if clause.test.is_some() {
            bench.push(Family::Condition, 2.8, at, Edit::replace(keyword, "if"));
        }
    }
    // The code of a branch where it should always run.
    if let ([only], true) = (&*statement.body, statement.elif_else_clauses.is_empty())
        && bench.whole_lines(statement).is_some()
    {
        let edit = Edit::replace(statement, bench.text(only));
        bench.push(Family::Guard, 3.0, at, edit);
    }
}

/// Edits of a statement's place: it should not be there, or be elsewhere.
pub(super) fn place(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    if bench.function(at).is_none() {
        return;
    }
    let (Some((block, place)), Some(span)) = (bench.block(at), bench.whole_lines(bench.node(at)))
    else {
        return;
    };
    let statement = &block[place];
    removal(bench, at, statement, block.len() == 1, span.clone());
    if let Some(next) = block.get(place + 1) {
        swap_with(bench, at, statement, next);
    }
    if !is_simple(statement) {
        return;
    }
    reindented(bench, at, block, place, span);
    // What is never run is no line that tests run: whatever leaves before it stands for it.
    if leaves(statement)
        && let Some(next) = block.get(place + 1)
        && is_simple(next)
        && let Some(span) = bench.whole_lines(next)
    {
        reindented(bench, at, block, place + 1, span);
    }
}

fn leaves(statement: &Stmt) -> bool {
    matches!(
        statement,
        Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) | Stmt::Continue(_)
    )
}

fn removal(
    bench: &mut Bench<'_, '_>,
    at: SiteIndex,
    statement: &Stmt,
    is_alone: bool,
    span: std::ops::Range<usize>,
) {
    let cost = match statement {
        Stmt::Expr(_) | Stmt::AugAssign(_) => 2.0,
        Stmt::Assign(_) | Stmt::Return(_) | Stmt::Delete(_) => 2.6,
        Stmt::If(_) => 2.8,
        Stmt::Raise(_) | Stmt::Pass(_) | Stmt::Break(_) | Stmt::Continue(_) => return,
        Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
        Stmt::Global(_) | Stmt::Nonlocal(_) => return,
        Stmt::Import(_) | Stmt::ImportFrom(_) => return,
        _ => 3.2,
    };
    let edit = if is_alone {
        Edit::replace(statement, "pass")
    } else {
        Edit::replace_span(span, "")
    };
    bench.push(Family::Removal, cost, at, edit);
}

fn swap_with(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &Stmt, next: &Stmt) {
    if !is_simple(statement) && !is_simple(next) {
        return;
    }
    let is_end = |statement: &Stmt| matches!(statement, Stmt::Return(_) | Stmt::Raise(_));
    if bench.whole_lines(next).is_none() || is_end(next) && !is_simple(statement) {
        return;
    }
    let between = TextRange::new(statement.end(), next.start());
    let text = format!(
        "{}{}{}",
        bench.text(next),
        bench.text(between),
        bench.text(statement)
    );
    let range = TextRange::new(statement.start(), next.end());
    let cost = if reads_too_soon(bench, at, statement, next) {
        0.9
    } else {
        2.4
    };
    bench.push(Family::Move, cost, at, Edit::replace(range, text));
}

/// Whether a statement reads a local name that only the next one gives a value.
fn reads_too_soon(bench: &Bench<'_, '_>, at: SiteIndex, statement: &Stmt, next: &Stmt) -> bool {
    let Stmt::Assign(assignment) = next else {
        return false;
    };
    let Some(function) = bench.function(at) else {
        return false;
    };
    let set = assignment.targets.iter().filter_map(Expr::as_name_expr);
    set.map(|name| name.id.as_str()).any(|name| {
        let is_read = bench
            .ingredients
            .names(statement.range())
            .any(|read| read == name);
        let is_bound_before = function
            .bound
            .iter()
            .any(|bound| bound.name == name && bound.at.start() < statement.start());
        is_read && !is_bound_before
    })
}

/// A last statement that belongs behind its block, and one that belongs into the block before it.
fn reindented(
    bench: &mut Bench<'_, '_>,
    at: SiteIndex,
    block: &[Stmt],
    place: usize,
    span: std::ops::Range<usize>,
) {
    let statement = &block[place];
    let own = bench.source.indentation(statement.start());
    let lines = &bench.source.text()[span.clone()];
    let moved = |indentation: &str| {
        let lines = lines.split_inclusive('\n');
        let moved = lines.map(|line| match line.strip_prefix(own) {
            Some(rest) => format!("{indentation}{rest}"),
            None => line.to_owned(),
        });
        moved.collect::<String>()
    };
    let parent = bench
        .sites
        .ancestors(at)
        .next()
        .map(|index| bench.node(index));
    if let Some(parent) = parent {
        let is_loop_or_branch = matches!(
            parent,
            AnyNodeRef::StmtFor(_)
                | AnyNodeRef::StmtWhile(_)
                | AnyNodeRef::StmtIf(_)
                | AnyNodeRef::StmtWith(_)
                | AnyNodeRef::ElifElseClause(_)
        );
        let outer = bench.source.indentation(parent.start()).to_owned();
        if is_loop_or_branch && place > 0 && parent.end() == statement.end() {
            let edit = Edit::replace_span(span.clone(), moved(&outer));
            let cost = misplaced(parent, &block[place - 1], statement);
            bench.push(Family::Move, cost, at, edit);
        }
    }
    let before = place.checked_sub(1).map(|before| &block[before]);
    let inner = before.and_then(|before| {
        let blocks = blocks(AnyNodeRef::from(before));
        let clauses = before
            .as_if_stmt()
            .and_then(|branch| branch.elif_else_clauses.last());
        match clauses {
            Some(clause) => clause.body.last(),
            None => blocks.into_iter().rfind(|block| !block.is_empty())?.last(),
        }
    });
    if let Some(inner) = inner
        && !matches!(before, Some(Stmt::FunctionDef(_) | Stmt::ClassDef(_)))
    {
        let indentation = bench.source.indentation(inner.start()).to_owned();
        let edit = Edit::replace_span(span, moved(&indentation));
        bench.push(Family::Move, 2.6, at, edit);
    }
}

/// What it costs to move the last statement of a block out of it: little where it is never run, or lets a loop run
/// but once.
fn misplaced(parent: AnyNodeRef<'_>, before: &Stmt, statement: &Stmt) -> f64 {
    let is_loop = matches!(parent, AnyNodeRef::StmtFor(_) | AnyNodeRef::StmtWhile(_));
    match statement {
        _ if leaves(before) => 0.3,
        Stmt::Return(_) if is_loop => 0.8,
        Stmt::Return(_) => 1.8,
        _ => 2.4,
    }
}

/// Whether a statement has no blocks.
pub(super) fn is_simple(statement: &Stmt) -> bool {
    blocks(AnyNodeRef::from(statement)).is_empty()
}

/// What a function that ends without a result could return.
pub(super) fn results<'a>(bench: &Bench<'_, 'a>, at: SiteIndex) -> Vec<&'a str> {
    let mut names = returns::locals(bench, at);
    names.truncate(4);
    names
}
