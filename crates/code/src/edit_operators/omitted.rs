//! Conditions that may have been left out: one operand more, a filter of a comprehension, the same for another
//! attribute.

use ruff_python_ast::{AnyNodeRef, Comprehension, Expr, ExprCompare};
use ruff_text_size::{Ranged, TextRange};

use super::{
    Family,
    bench::Bench,
    forgotten::{overlaps, renamed},
};
use crate::sites::{BoundBy, Edit, SiteIndex};

/// Conditions that are offered for one place.
const MOST: usize = 6;

/// Edits that ask more, or less, of the condition `at`.
pub(super) fn extended(bench: &mut Bench<'_, '_>, at: SiteIndex, cost: f64) {
    let node = bench.node(at);
    let text = bench.text(node);
    let is_loose = matches!(
        node,
        AnyNodeRef::ExprBoolOp(_)
            | AnyNodeRef::ExprIf(_)
            | AnyNodeRef::ExprLambda(_)
            | AnyNodeRef::ExprNamed(_)
    );
    let own = if is_loose {
        format!("({text})")
    } else {
        text.to_owned()
    };
    // What cannot be evaluated has to be asked about before.
    let is_protecting = bench.hints.raised.iter().any(|name| {
        matches!(
            name.as_str(),
            "TypeError" | "AttributeError" | "IndexError" | "KeyError" | "ZeroDivisionError"
        )
    });
    for (distance, atom) in atoms(bench, at) {
        for (word, more) in [("and", 0.0), ("or", 0.4)] {
            let both = match is_protecting {
                true => format!("{atom} {word} {own}"),
                false => format!("{own} {word} {atom}"),
            };
            bench.replace_loose(Family::Condition, cost + more + distance, at, &both);
        }
    }
}

/// Conditions that would have meaning at `at`, with what they cost more than the likeliest.
fn atoms(bench: &mut Bench<'_, '_>, at: SiteIndex) -> Vec<(f64, String)> {
    let Some(function) = bench.function(at) else {
        return Vec::new();
    };
    let node = bench.node(at);
    let (own, range) = (bench.text(node), node.range());
    let neglected = bench.neglected(function);
    let class = bench.sites.class(function).map(|class| class.range);
    let mut found: Vec<(f64, String)> = Vec::new();
    let mut add = |cost: f64, text: String| match found.iter_mut().find(|it| it.1 == text) {
        Some(known) => known.0 = known.0.min(cost),
        None => found.push((cost, text)),
    };
    let unread = neglected
        .unread
        .iter()
        .filter(|(_, at)| *at < range.start());
    for (name, _) in unread.take(3) {
        add(-0.6, (*name).to_owned());
        add(-0.5, format!("not {name}"));
        add(-0.4, format!("{name} is None"));
        add(-0.4, format!("{name} is not None"));
    }
    for piece in &bench.ingredients.conditions {
        let (place, text) = (piece.range, bench.text(piece.range));
        if overlaps(place, range) || own.contains(text) {
            continue;
        }
        let mut cost = match class {
            _ if function.range.contains_range(place) => 0.0,
            Some(class) if class.contains_range(place) => 0.3,
            _ => 0.8,
        };
        cost -= 0.9 * neglected.used_by(bench.ingredients.names(place)).min(1) as f64;
        // What speaks of the same things is more likely to belong together.
        let mut names = bench.ingredients.names(place);
        if names.any(|name| bench.ingredients.names(range).any(|other| other == name)) {
            cost -= 0.2;
        }
        let adapted = bench
            .ingredients
            .adapted(piece, function, &bench.vocabulary);
        for adapted in adapted.iter() {
            let text = adapted.of(text);
            if !own.contains(text.as_str()) {
                add(cost + adapted.cost, text);
            }
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(MOST);
    found
}

/// A filter for a comprehension that has none.
pub(super) fn filter(bench: &mut Bench<'_, '_>, at: SiteIndex, comprehension: &Comprehension) {
    let targets: Vec<&str> = match &comprehension.target {
        Expr::Name(name) => vec![name.id.as_str()],
        Expr::Tuple(tuple) => {
            let names = tuple.elts.iter().filter_map(Expr::as_name_expr);
            names.map(|name| name.id.as_str()).collect()
        }
        _ => return,
    };
    let Some(function) = bench.function(at) else {
        return;
    };
    let neglected = bench.neglected(function);
    let iter = bench
        .source
        .with_brackets(&comprehension.iter, comprehension.range());
    let mut found: Vec<(f64, String)> = Vec::new();
    for target in targets {
        for (nth, (name, _)) in neglected.unread.iter().take(2).enumerate() {
            let cost = 1.8 + 0.2 * nth as f64;
            for (operator, more) in [("!=", 0.0), ("in", 0.2), ("not in", 0.2), ("==", 0.4)] {
                found.push((cost + more, format!("{target} {operator} {name}")));
            }
        }
        found.push((2.5, target.to_owned()));
        found.push((2.7, format!("{target} is not None")));
        for (range, name) in bench.ingredients.filters.clone() {
            if !bench.ingredients.fits(range, function) && !fits_but(bench, range, name, at) {
                continue;
            }
            let is_own = function.range.contains_range(range);
            let cost = if is_own { 2.2 } else { 2.9 };
            found.push((cost, renamed(bench.text(range), name, target)));
        }
        let parameters = function.bound.iter();
        let parameters = parameters.filter(|it| it.by == BoundBy::Parameter && it.name != "self");
        for parameter in parameters.take(2) {
            found.push((3.2, format!("{target} != {}", parameter.name)));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    found.dedup_by(|a, b| a.1 == b.1);
    for (cost, condition) in found.into_iter().take(MOST) {
        let edit = Edit::insert(iter.end(), format!(" if {condition}"));
        bench.push(Family::Condition, cost, at, edit);
    }
}

/// Whether all names of a filter but the one it is about are bound at `at`.
fn fits_but(bench: &Bench<'_, '_>, range: TextRange, name: &str, at: SiteIndex) -> bool {
    let scope = bench.sites.site(at).scope;
    let is_bound = |other: &str| {
        let mut visible = bench.sites.visible(scope);
        visible.any(|scope| scope.bound.iter().any(|bound| bound.name == other))
            || !bench.ingredients.is_bound_somewhere(other)
    };
    bench
        .ingredients
        .names(range)
        .all(|other| other == name || is_bound(other))
}

/// `a.x == b.x` with the same of another attribute.
pub(super) fn alike(bench: &mut Bench<'_, '_>, at: SiteIndex, compare: &ExprCompare) {
    let ([operator], [Expr::Attribute(right)], Expr::Attribute(left)) =
        (&*compare.ops, &*compare.comparators, &*compare.left)
    else {
        return;
    };
    if left.attr != right.attr {
        return;
    }
    let class = bench
        .function(at)
        .and_then(|function| bench.sites.class(function));
    let Some(crate::sites::ScopeKind::Class(class)) = class.map(|class| class.kind) else {
        return;
    };
    let function = bench
        .function(at)
        .map(|function| bench.text(function.range));
    let attributes = bench.vocabulary.attributes(&class.name, false);
    let unused = attributes
        .iter()
        .filter(|attribute| function.is_some_and(|text| !text.contains(&format!(".{attribute}"))));
    let (one, other) = (bench.text(&*left.value), bench.text(&*right.value));
    let text = bench.text(compare);
    let operator = operator.as_str();
    let both: Vec<String> = unused
        .take(3)
        .map(|attribute| format!("{text} and {one}.{attribute} {operator} {other}.{attribute}"))
        .collect();
    for both in both {
        bench.replace_loose(Family::Condition, 2.2, at, &both);
    }
}
