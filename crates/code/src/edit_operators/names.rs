//! The wrong variable, and the wrong attribute or method of the right object.

use ruff_python_ast::{AnyNodeRef, ExprAttribute, ExprContext, ExprName};
use ruff_text_size::Ranged;

use super::{Family, arithmetic, bench::Bench, constants::likeness, vocabulary::push_new, wanted};
use crate::sites::{BoundBy, Edit, ScopeKind, SiteIndex};

pub(super) fn name(bench: &mut Bench<'_, '_>, at: SiteIndex, name: &ExprName) {
    let is_callee = matches!(
        bench.parent(at),
        Some(AnyNodeRef::ExprCall(call)) if call.func.range() == name.range
    );
    if is_callee || is_keyword_like(bench, at) {
        return;
    }
    if name.ctx != ExprContext::Load {
        if name.ctx == ExprContext::Store {
            stored(bench, at, name);
        }
        return;
    }
    names_instead(bench, at, Family::Variable, 1.5);
    own_attributes(bench, at, name);
    if is_in_arithmetic(bench, at) {
        bench.replace(Family::Arithmetic, 3.4, at, &format!("(-{})", name.id));
        arithmetic::off_by_one(bench, at, 2.6);
    }
}

/// Names of exceptions and of classes in `isinstance` have operators of their own.
fn is_keyword_like(bench: &Bench<'_, '_>, at: SiteIndex) -> bool {
    matches!(
        bench.parent(at),
        Some(AnyNodeRef::ExceptHandlerExceptHandler(_) | AnyNodeRef::StmtRaise(_))
    )
}

fn is_in_arithmetic(bench: &Bench<'_, '_>, at: SiteIndex) -> bool {
    matches!(
        bench.parent(at),
        Some(AnyNodeRef::ExprBinOp(_) | AnyNodeRef::ExprCompare(_))
    )
}

/// Names of the same function in place of the expression `at`, those that are used alike first.
pub(super) fn names_instead(bench: &mut Bench<'_, '_>, at: SiteIndex, family: Family, cost: f64) {
    let node = bench.node(at);
    let own = match node {
        AnyNodeRef::ExprName(name) => name.id.as_str(),
        _ => "",
    };
    let Some(function) = bench.function(at) else {
        return;
    };
    let scope = bench.sites.site(at).scope;
    let own_roles = bench.vocabulary.roles(function, own);
    let mut found: Vec<(f64, &str)> = Vec::new();
    let mut seen: Vec<&str> = vec![own];
    let wanted = wanted::name(bench, at).filter(|wanted| *wanted != own);
    for scope in bench.sites.visible(scope) {
        let is_module = matches!(scope.kind, ScopeKind::Module);
        for bound in &scope.bound {
            let is_value = matches!(
                bound.by,
                BoundBy::Parameter | BoundBy::VariadicParameter | BoundBy::Assignment
            );
            if !is_value || bound.name == "_" || seen.contains(&bound.name) {
                continue;
            }
            push_new(&mut seen, bound.name);
            let roles = bench.vocabulary.roles(function, bound.name);
            let mut distance = 0.0;
            if bound.at.start() > node.start() {
                distance += 1.0;
            }
            if bound.name == "self" || bound.name == "cls" {
                distance += 1.6;
            }
            if is_module {
                distance += 1.6;
            }
            distance -= (own_roles.likeness(&roles) * 0.35).min(1.0);
            distance -= likeness(own, bound.name) * 0.8;
            if wanted == Some(bound.name) {
                distance -= 1.0;
            }
            found.push((distance, bound.name));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    for (place, (distance, other)) in found.into_iter().take(10).enumerate() {
        let cost = cost + distance.max(-1.2) + 0.12 * place as f64;
        bench.replace(family, cost, at, other);
    }
}

/// Attributes of the object in place of a local name, those that are called alike first.
fn own_attributes(bench: &mut Bench<'_, '_>, at: SiteIndex, name: &ExprName) {
    let class = bench
        .function(at)
        .and_then(|function| bench.sites.class(function))
        .map(|class| class.kind);
    let Some(ScopeKind::Class(class)) = class else {
        return;
    };
    if matches!(name.id.as_str(), "self" | "cls") {
        return;
    }
    let known = bench.vocabulary.attributes(&class.name, false).iter();
    let wanted = wanted::name(bench, at).filter(|wanted| *wanted != name.id.as_str());
    let mut known: Vec<(f64, &str)> = known
        .map(|attribute| {
            let is_wanted = wanted == Some(attribute.trim_matches('_'));
            let less = if is_wanted { 1.0 } else { 0.0 };
            (2.8 - 1.4 * likeness(&name.id, attribute) - less, *attribute)
        })
        .collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    for (nth, (cost, attribute)) in known.into_iter().take(3).enumerate() {
        let cost = cost + 0.2 * nth as f64;
        bench.replace(Family::Variable, cost, at, &format!("self.{attribute}"));
    }
}

/// A value that was kept under the wrong name.
fn stored(bench: &mut Bench<'_, '_>, at: SiteIndex, name: &ExprName) {
    if !matches!(
        bench.parent(at),
        Some(AnyNodeRef::StmtAssign(_) | AnyNodeRef::StmtAugAssign(_))
    ) {
        return;
    }
    let Some(function) = bench.function(at) else {
        return;
    };
    let mut known: Vec<&str> = Vec::new();
    for bound in &function.bound {
        if bound.name != name.id.as_str() && bound.by == BoundBy::Assignment {
            push_new(&mut known, bound.name);
        }
    }
    for other in known.into_iter().take(4) {
        let cost = 3.4 - likeness(&name.id, other);
        bench.replace(Family::Variable, cost, at, other);
    }
}

pub(super) fn attribute(bench: &mut Bench<'_, '_>, at: SiteIndex, attribute: &ExprAttribute) {
    let is_callee = matches!(
        bench.parent(at),
        Some(AnyNodeRef::ExprCall(call)) if call.func.range() == attribute.range
    );
    let own = attribute.attr.as_str();
    let object = bench.text(&*attribute.value);
    let mut known: Vec<(f64, &str)> = Vec::new();
    if object == "self" || object == "cls" {
        let class = bench
            .function(at)
            .and_then(|function| bench.sites.class(function))
            .map(|class| class.kind);
        if let Some(ScopeKind::Class(class)) = class {
            let names = bench.vocabulary.attributes(&class.name, is_callee);
            known.extend(names.iter().map(|name| (0.0, *name)));
        }
    } else if let Some(members) = bench.vocabulary.members.get(object) {
        known.extend(members.iter().map(|name| (0.6, *name)));
    }
    if is_callee {
        let others = bench.vocabulary.methods_called().into_iter();
        let alike = others.filter(|name| likeness(own, name) >= 0.5);
        known.extend(alike.map(|name| (0.6, name)));
    }
    known.retain(|(_, name)| *name != own);
    let wanted = wanted::name(bench, at).filter(|wanted| *wanted != own.trim_matches('_'));
    for (cost, name) in &mut known {
        *cost += 2.2 - 1.4 * likeness(own, name);
        if wanted == Some(name.trim_matches('_')) {
            *cost -= 1.0;
        }
    }
    known.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    let mut seen = Vec::new();
    known.retain(|(_, name)| {
        let is_new = !seen.contains(name);
        seen.push(*name);
        is_new
    });
    let range = attribute.attr.range();
    for (cost, name) in known.into_iter().take(8) {
        bench.push(Family::Attribute, cost, at, Edit::replace(range, name));
    }
    if is_callee {
        return;
    }
    if attribute.ctx == ExprContext::Load {
        // The local name of the same thing.
        let function = bench.function(at);
        let is_bound =
            function.is_some_and(|function| function.bound.iter().any(|bound| bound.name == own));
        if is_bound {
            bench.replace(Family::Variable, 2.0, at, own);
        } else if object == "self" {
            names_instead(bench, at, Family::Variable, 2.8);
        }
        if is_in_arithmetic(bench, at) {
            arithmetic::off_by_one(bench, at, 2.6);
        }
    }
}
