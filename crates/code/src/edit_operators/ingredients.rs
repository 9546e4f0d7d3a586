//! Pieces of a file that may be missing elsewhere in it, and where they would have meaning.
//!
//! Fixes are mostly made of code near by (Barr et al. 2014). A piece is only offered where every name in it is
//! bound.

use std::cell::RefCell;

use ruff_python_ast::{AnyNodeRef, Expr, ExprContext, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

use super::bench::blocks;
use crate::sites::{BoundBy, Scope, ScopeKind, SiteIndex, Sites};

/// Longer pieces are more than one edit is about.
const MAX_PIECE: usize = 160;

/// All lists are in the order of the text.
#[derive(Debug)]
pub(super) struct Ingredients<'s, 'a> {
    sites: &'s Sites<'a>,
    /// Statements that do something beside binding a local name, and checks that leave.
    pub(super) statements: Vec<TextRange>,
    /// Operands of conditions.
    pub(super) conditions: Vec<TextRange>,
    /// Conditions of comprehensions, each with the name that it is about.
    pub(super) filters: Vec<(TextRange, &'a str)>,
    /// Names that are read, by where.
    loads: Vec<(TextSize, &'a str)>,
    /// Names that any scope of the file binds: others are Python's own.
    bound: FxHashSet<&'a str>,
    /// By the function's start, what its names can be.
    visible: RefCell<FxHashMap<TextSize, FxHashSet<&'a str>>>,
}

impl<'s, 'a> Ingredients<'s, 'a> {
    pub(super) fn of(sites: &'s Sites<'a>) -> Self {
        let mut found = Self {
            sites,
            statements: Vec::new(),
            conditions: Vec::new(),
            filters: Vec::new(),
            loads: Vec::new(),
            bound: FxHashSet::default(),
            visible: RefCell::default(),
        };
        for (_, scope) in sites.scopes() {
            found.bound.extend(scope.bound.iter().map(|it| it.name));
        }
        for (index, site) in sites.iter() {
            if !site.in_annotation && !site.is_docstring {
                found.read(index);
            }
        }
        found
    }

    fn read(&mut self, index: SiteIndex) {
        let node = self.sites.node(index);
        match node {
            AnyNodeRef::ExprName(name) if name.ctx == ExprContext::Load => {
                self.loads.push((name.start(), name.id.as_str()));
            }
            AnyNodeRef::StmtIf(branch) => {
                self.operands(&branch.test);
                let leaves = matches!(
                    &*branch.body,
                    [Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) | Stmt::Continue(_)]
                );
                if leaves && branch.elif_else_clauses.is_empty() {
                    self.statement(index);
                }
            }
            AnyNodeRef::ElifElseClause(clause) => {
                if let Some(test) = &clause.test {
                    self.operands(test);
                }
            }
            AnyNodeRef::StmtWhile(repetition) => self.operands(&repetition.test),
            AnyNodeRef::StmtAssert(assertion) => self.operands(&assertion.test),
            AnyNodeRef::ExprIf(choice) => self.operands(&choice.test),
            AnyNodeRef::ExprBoolOp(operation) => {
                for operand in &operation.values {
                    self.operands(operand);
                }
            }
            AnyNodeRef::Comprehension(comprehension) => {
                if let Expr::Name(target) = &comprehension.target {
                    let conditions = comprehension.ifs.iter();
                    self.filters
                        .extend(conditions.map(|it| (it.range(), target.id.as_str())));
                }
            }
            AnyNodeRef::StmtExpr(statement) => {
                let value = &*statement.value;
                if value.is_call_expr() || value.is_yield_expr() || value.is_yield_from_expr() {
                    self.statement(index);
                }
            }
            AnyNodeRef::StmtAugAssign(_)
            | AnyNodeRef::StmtDelete(_)
            | AnyNodeRef::StmtAssign(_) => {
                self.statement(index);
            }
            _ => {}
        }
    }

    fn statement(&mut self, index: SiteIndex) {
        let range = self.sites.node(index).range();
        let is_inside = self.sites.function(index).is_some();
        if is_inside && range.len().to_usize() <= MAX_PIECE {
            self.statements.push(range);
        }
    }

    fn operands(&mut self, condition: &Expr) {
        match condition {
            Expr::BoolOp(operation) => operation.values.iter().for_each(|it| self.operands(it)),
            _ => {
                let range = condition.range();
                if range.len().to_usize() <= MAX_PIECE && !self.conditions.contains(&range) {
                    self.conditions.push(range);
                }
            }
        }
    }

    /// Whether the file binds a name; one that it does not is Python's own.
    pub(super) fn is_bound_somewhere(&self, name: &str) -> bool {
        self.bound.contains(name)
    }

    /// Names that are read within a range.
    pub(super) fn names(&self, range: TextRange) -> impl Iterator<Item = &'a str> + '_ {
        let first = self.loads.partition_point(|(at, _)| *at < range.start());
        let inside = self.loads[first..].iter();
        inside
            .take_while(move |(at, _)| *at < range.end())
            .map(|(_, name)| *name)
    }

    /// Whether every name of a piece has a meaning in `function`.
    pub(super) fn fits(&self, piece: TextRange, function: &Scope<'a>) -> bool {
        let mut visible = self.visible.borrow_mut();
        let visible = visible
            .entry(function.range.start())
            .or_insert_with(|| self.seen_by(function));
        let inner = self.inner_names(piece);
        self.names(piece).all(|name| {
            visible.contains(name) || !self.bound.contains(name) || inner.contains(&name)
        })
    }

    fn seen_by(&self, function: &Scope<'a>) -> FxHashSet<&'a str> {
        let mut names: FxHashSet<&str> = function.bound.iter().map(|it| it.name).collect();
        let mut outer = function.parent;
        while let Some(index) = outer {
            let scope = self.sites.scope(index);
            if !matches!(scope.kind, ScopeKind::Class(_)) {
                names.extend(scope.bound.iter().map(|it| it.name));
            }
            outer = scope.parent;
        }
        names
    }

    /// What comprehensions and lambdas of a piece bind for themselves.
    fn inner_names(&self, piece: TextRange) -> Vec<&'a str> {
        let scopes = self.sites.scopes().map(|(_, scope)| scope);
        let inside = scopes.filter(|scope| piece.contains_range(scope.range));
        inside
            .flat_map(|scope| scope.bound.iter().map(|it| it.name))
            .collect()
    }
}

/// What a function binds and never makes use of: where something is missing, this is what it would have used.
#[derive(Clone, Debug, Default)]
pub(super) struct Neglected<'a> {
    /// Local names and parameters that are never read, and where they are bound.
    pub(super) unread: Vec<(&'a str, TextSize)>,
    /// Names that begin as an empty collection and are never filled.
    pub(super) unfilled: Vec<(&'a str, Collection, TextSize)>,
    /// Names that begin as a number and never change.
    pub(super) uncounted: Vec<(&'a str, TextSize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collection {
    List,
    Set,
    Dict,
}

impl<'a> Neglected<'a> {
    pub(super) fn of(ingredients: &Ingredients<'_, 'a>, function: &Scope<'a>) -> Self {
        let mut found = Self::default();
        let Some(definition) = function.function() else {
            return found;
        };
        let range = function.range;
        let read: FxHashSet<&str> = ingredients.names(range).collect();
        for bound in &function.bound {
            let is_value = matches!(
                bound.by,
                BoundBy::Parameter | BoundBy::VariadicParameter | BoundBy::Assignment
            );
            let is_named = !bound.name.starts_with('_') && !matches!(bound.name, "self" | "cls");
            let known = found.unread.iter().any(|(name, _)| *name == bound.name);
            if is_value && is_named && !known && !read.contains(bound.name) {
                found.unread.push((bound.name, bound.at.start()));
            }
        }
        let mut open: Vec<&'a [Stmt]> = vec![&definition.body];
        let mut begun: Vec<(&'a str, &'a Expr, TextSize)> = Vec::new();
        let mut changed: FxHashSet<&'a str> = FxHashSet::default();
        while let Some(block) = open.pop() {
            for statement in block {
                open.extend(blocks(AnyNodeRef::from(statement)));
                if let Stmt::If(branch) = statement {
                    open.extend(branch.elif_else_clauses.iter().map(|it| &it.body[..]));
                }
                if let Stmt::Try(attempt) = statement {
                    let handlers = attempt
                        .handlers
                        .iter()
                        .filter_map(|it| it.as_except_handler());
                    open.extend(handlers.map(|it| &it.body[..]));
                }
                match statement {
                    Stmt::Assign(assignment) => {
                        for target in &assignment.targets {
                            match target {
                                Expr::Name(name) => {
                                    let at = statement.end();
                                    begun.push((name.id.as_str(), &assignment.value, at));
                                }
                                other => changed.extend(root(other)),
                            }
                        }
                    }
                    Stmt::AugAssign(assignment) => changed.extend(root(&assignment.target)),
                    Stmt::Delete(deletion) => {
                        changed.extend(deletion.targets.iter().filter_map(root));
                    }
                    Stmt::For(repetition) => changed.extend(root(&repetition.target)),
                    Stmt::Expr(statement) => {
                        if let Expr::Call(call) = &*statement.value {
                            changed.extend(root(&call.func));
                            let arguments = call.arguments.iter_source_order();
                            changed.extend(arguments.filter_map(|it| root(it.value())));
                        }
                    }
                    _ => {}
                }
            }
        }
        for (name, value, at) in &begun {
            let once = begun.iter().filter(|(other, ..)| other == name).count() == 1;
            if !once || changed.contains(name) {
                continue;
            }
            if let Some(collection) = empty(value) {
                found.unfilled.push((name, collection, *at));
            } else if value.is_number_literal_expr() {
                found.uncounted.push((name, *at));
            }
        }
        found
    }

    /// How much of what is neglected a piece would use.
    pub(super) fn used_by<'n>(&self, names: impl Iterator<Item = &'n str>) -> usize {
        let is_neglected = |name: &&str| {
            self.unread.iter().any(|(known, _)| known == name)
                || self.unfilled.iter().any(|(known, ..)| known == name)
                || self.uncounted.iter().any(|(known, _)| known == name)
        };
        names.filter(is_neglected).count()
    }
}

/// The name that a target or an object is reached through.
fn root(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => root(&attribute.value),
        Expr::Subscript(subscript) => root(&subscript.value),
        Expr::Starred(starred) => root(&starred.value),
        Expr::Call(call) => root(&call.func),
        _ => None,
    }
}

fn empty(value: &Expr) -> Option<Collection> {
    match value {
        Expr::List(list) if list.elts.is_empty() => Some(Collection::List),
        Expr::Dict(dict) if dict.items.is_empty() => Some(Collection::Dict),
        Expr::Call(call) => {
            let name = call.func.as_name_expr()?.id.as_str();
            match (name, call.arguments.is_empty()) {
                ("list" | "deque", true) => Some(Collection::List),
                ("set", true) => Some(Collection::Set),
                ("dict" | "OrderedDict", true) | ("defaultdict", _) => Some(Collection::Dict),
                _ => None,
            }
        }
        _ => None,
    }
}
