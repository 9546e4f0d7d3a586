//! What functions bind and make no use of: where something is missing, this is what it would have used.

use ruff_python_ast::{AnyNodeRef, Expr, Stmt};
use ruff_text_size::{Ranged, TextSize};
use rustc_hash::FxHashSet;

use super::{bench::blocks, ingredients::Ingredients};
use crate::sites::{BoundBy, Scope};

/// What a function binds and never makes use of.
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
