//! Names of variables and attributes.

use code::sites::{
    BoundBy, ScopeKind,
    ast::{AnyNodeRef, Expr, ExprAttribute, ExprContext, ExprName},
};
use ruff_text_size::Ranged;

use super::{Catalogue, Family, Place};

/// Other names that are tried in the place of one.
const CHOICES: usize = 2;

impl<'a> Catalogue<'_, 'a> {
    /// Another variable of the function, of those bound closest before.
    pub(super) fn variable(&mut self, place: &Place<'_, 'a>, node: &'a ExprName) {
        let parent = place.site.parent.map(|parent| self.sites.node(parent));
        let is_called =
            matches!(parent, Some(AnyNodeRef::ExprCall(call)) if call.func.range() == node.range());
        if node.ctx != ExprContext::Load || is_called {
            return;
        }
        let mut locals = Vec::new();
        for scope in self.sites.visible(place.site.scope) {
            if matches!(scope.kind, ScopeKind::Module | ScopeKind::Class(_)) {
                break;
            }
            let bound = scope.bound.iter().filter(|bound| {
                matches!(
                    bound.by,
                    BoundBy::Parameter | BoundBy::VariadicParameter | BoundBy::Assignment
                ) && !matches!(bound.name, "self" | "cls" | "_")
                    && bound.at.start() < node.start()
            });
            // A target of a comprehension stands behind what uses it.
            let own = scope.bound.iter().filter(|bound| {
                matches!(scope.kind, ScopeKind::Comprehension) && bound.by == BoundBy::Assignment
            });
            locals.extend(bound.chain(own).map(|bound| (bound.at.start(), bound.name)));
            if scope.function().is_some() {
                break;
            }
        }
        if !locals.iter().any(|(_, name)| *name == node.id.as_str()) {
            return;
        }
        locals.sort();
        let mut others: Vec<&str> = Vec::new();
        // Names bound next to this one are those that it is mistaken for.
        let own = locals
            .iter()
            .rposition(|(_, name)| *name == node.id.as_str())
            .unwrap_or_default();
        let mut by_distance: Vec<usize> = (0..locals.len()).collect();
        by_distance.sort_by_key(|at| (at.abs_diff(own), *at < own));
        for at in by_distance {
            let (_, name) = locals[at];
            if name != node.id.as_str() && !others.contains(&name) && others.len() < CHOICES {
                others.push(name);
            }
        }
        for other in others {
            self.add(place, Family::WrongVariable, node, other);
        }
    }

    /// Another attribute that the class sets on `self`.
    pub(super) fn attribute(&mut self, place: &Place<'_, 'a>, node: &'a ExprAttribute) {
        let is_self = |value: &Expr| matches!(value, Expr::Name(name) if name.id == "self");
        if node.ctx != ExprContext::Load || !is_self(&node.value) {
            return;
        }
        let class =
            self.sites
                .ancestors(place.index)
                .find_map(|outer| match self.sites.node(outer) {
                    AnyNodeRef::StmtClassDef(class) => Some(class),
                    _ => None,
                });
        let Some(class) = class else { return };
        let mut names: Vec<&str> = Vec::new();
        for (_, site) in self.sites.iter() {
            if let AnyNodeRef::ExprAttribute(found) = site.node
                && found.ctx == ExprContext::Store
                && is_self(&found.value)
                && class.range().contains_range(found.range())
                && !names.contains(&found.attr.as_str())
            {
                names.push(found.attr.as_str());
            }
        }
        let Some(own) = names.iter().position(|name| *name == node.attr.as_str()) else {
            return;
        };
        let next = (own + 1) % names.len();
        let before = (own + names.len() - 1) % names.len();
        for other in [next, before] {
            if other != own {
                self.add(place, Family::WrongAttribute, &node.attr, names[other]);
            }
        }
    }
}
