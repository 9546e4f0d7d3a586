//! Statements that may have been forgotten, by what the function neglects and by what stands near by.

use ruff_python_ast::{AnyNodeRef, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{
    Family,
    bench::Bench,
    ingredients::{Adapted, Piece},
    neglected::{Collection, Neglected},
    vocabulary::push_new,
};
use crate::sites::{BoundBy, Scope, ScopeKind, SiteIndex};

/// Statements that are offered for one place.
const MOST: usize = 10;

/// A statement that could stand at a place.
struct Offer {
    cost: f64,
    family: Family,
    lines: Vec<String>,
}

/// Edits that add a statement before the one at `at`, and after it where it is the last of its block.
pub(super) fn around(bench: &mut Bench<'_, '_>, at: SiteIndex, is_last: bool) {
    let node = bench.node(at);
    let before = offers(bench, at, node.start());
    for Offer {
        cost,
        family,
        lines,
    } in before
    {
        if let Some(edit) = bench.before(node, &lines) {
            bench.push(family, cost, at, edit);
        }
    }
    let leaves = matches!(
        node,
        AnyNodeRef::StmtReturn(_)
            | AnyNodeRef::StmtRaise(_)
            | AnyNodeRef::StmtBreak(_)
            | AnyNodeRef::StmtContinue(_)
    );
    if !is_last || leaves {
        return;
    }
    for Offer {
        cost,
        family,
        lines,
    } in offers(bench, at, node.end())
    {
        if let Some(edit) = bench.after(node, &lines) {
            bench.push(family, cost, at, edit);
        }
    }
}

fn offers(bench: &mut Bench<'_, '_>, at: SiteIndex, place: TextSize) -> Vec<Offer> {
    let Some(function) = bench.function(at) else {
        return Vec::new();
    };
    let neglected = bench.neglected(function);
    let mut found: Vec<Offer> = Vec::new();
    let mut add = |cost: f64, family: Family, lines: Vec<String>| {
        let known = found.iter_mut().find(|offer| offer.lines == lines);
        match known {
            Some(offer) => offer.cost = offer.cost.min(cost),
            None => found.push(Offer {
                cost,
                family,
                lines,
            }),
        }
    };
    let is_in_loop = is_in_loop(bench, at);
    let things = things(bench, at, &neglected, place);
    let outside = if is_in_loop { 0.0 } else { 1.2 };
    for (name, collection, bound) in &neglected.unfilled {
        if *bound > place {
            continue;
        }
        for (line, cost) in filled(name, *collection, &things) {
            add(1.2 + cost + outside, Family::Insertion, vec![line]);
        }
    }
    for (name, bound) in &neglected.uncounted {
        if *bound > place {
            continue;
        }
        add(
            1.4 + outside,
            Family::Insertion,
            vec![format!("{name} += 1")],
        );
        add(
            2.4 + outside,
            Family::Insertion,
            vec![format!("{name} -= 1")],
        );
        for (nth, thing) in things.iter().filter(|thing| *thing != name).enumerate() {
            let cost = 1.9 + 0.4 * nth as f64 + outside;
            add(cost, Family::Insertion, vec![format!("{name} += {thing}")]);
        }
    }
    for (cost, line) in unused_members(bench, function, &neglected, place) {
        add(cost, Family::Insertion, vec![line]);
    }
    for (cost, line) in steps(bench, at) {
        add(cost, Family::Insertion, vec![line]);
    }
    let is_behind = place > bench.node(at).start();
    for (cost, family, lines) in copies(bench, at, function, &neglected, is_in_loop, is_behind) {
        add(cost, family, lines);
    }
    // What has nothing to do waits for something.
    if is_lone_pass(bench, at) {
        for offer in &mut found {
            offer.cost -= 0.8;
        }
    }
    found.sort_by(|a, b| {
        a.cost
            .total_cmp(&b.cost)
            .then_with(|| a.lines.cmp(&b.lines))
    });
    found.truncate(MOST);
    found
}

fn is_lone_pass(bench: &Bench<'_, '_>, at: SiteIndex) -> bool {
    let is_alone = bench.block(at).is_some_and(|(block, _)| block.len() == 1);
    is_alone && bench.node(at).is_stmt_pass()
}

/// Names that a statement at `place` would be about: targets of loops around it, what is never read, and what was
/// bound last.
fn things<'a>(
    bench: &Bench<'_, 'a>,
    at: SiteIndex,
    neglected: &Neglected<'a>,
    place: TextSize,
) -> Vec<&'a str> {
    let mut things: Vec<&str> = Vec::new();
    for (name, bound) in &neglected.unread {
        if *bound < place {
            push_new(&mut things, name);
        }
    }
    for outer in bench.sites.ancestors(at) {
        if let AnyNodeRef::StmtFor(repetition) = bench.node(outer) {
            match &*repetition.target {
                Expr::Tuple(tuple) => {
                    for name in tuple.elts.iter().rev().filter_map(Expr::as_name_expr) {
                        push_new(&mut things, name.id.as_str());
                    }
                }
                Expr::Name(name) => push_new(&mut things, name.id.as_str()),
                _ => {}
            }
        }
    }
    if let Some(function) = bench.function(at) {
        let bound = function.bound.iter().rev();
        let last = bound.filter(|it| it.at.start() < place && it.by == BoundBy::Assignment);
        for bound in last.take(2) {
            push_new(&mut things, bound.name);
        }
    }
    things.truncate(3);
    things
}

/// How a collection could be filled with some of `things`.
fn filled(name: &str, collection: Collection, things: &[&str]) -> Vec<(String, f64)> {
    let others: Vec<&str> = things.iter().copied().filter(|it| *it != name).collect();
    let mut lines = Vec::new();
    match collection {
        Collection::List | Collection::Set => {
            let method = if collection == Collection::List {
                "append"
            } else {
                "add"
            };
            for (nth, thing) in others.iter().enumerate() {
                lines.push((format!("{name}.{method}({thing})"), 0.3 * nth as f64));
            }
            if let (Collection::List, Some(first)) = (collection, others.first()) {
                lines.push((format!("{name}.extend({first})"), 1.0));
            }
        }
        Collection::Dict => {
            for (key, value, cost) in [(0, 1, 0.2), (1, 0, 0.3), (0, 2, 0.8), (1, 2, 0.9)] {
                if let (Some(key), Some(value)) = (others.get(key), others.get(value)) {
                    lines.push((format!("{name}[{key}] = {value}"), cost));
                }
            }
        }
    }
    lines
}

/// Attributes that are called like something unread, and methods of the class's own that nobody calls.
fn unused_members(
    bench: &Bench<'_, '_>,
    function: &Scope<'_>,
    neglected: &Neglected<'_>,
    place: TextSize,
) -> Vec<(f64, String)> {
    let Some(class) = bench.sites.class(function) else {
        return Vec::new();
    };
    let ScopeKind::Class(definition) = class.kind else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let attributes = bench.vocabulary.attributes(&definition.name, false);
    for (name, bound) in &neglected.unread {
        let same = attributes
            .iter()
            .filter(|attribute| *bound < place && attribute.trim_start_matches('_') == *name);
        lines.extend(same.map(|attribute| (1.5, format!("self.{attribute} = {name}"))));
    }
    for method in definition
        .body
        .iter()
        .filter_map(Stmt::as_function_def_stmt)
    {
        let name = method.name.as_str();
        let is_private = name.starts_with('_') && !name.starts_with("__");
        let is_plain = method.decorator_list.is_empty() && method.range != function.range;
        if !is_private || !is_plain || bench.vocabulary.mentions(name) {
            continue;
        }
        let parameters = method.parameters.iter_non_variadic_params().skip(1);
        let arguments: Option<Vec<&str>> = parameters
            .filter(|parameter| parameter.default().is_none())
            .map(|parameter| {
                let name = parameter.name().as_str();
                let is_bound = function.bound.iter().any(|bound| bound.name == name);
                is_bound.then_some(name)
            })
            .collect();
        if let Some(arguments) = arguments {
            lines.push((1.6, format!("self.{name}({})", arguments.join(", "))));
        }
    }
    lines
}

/// Names that the `while` around depends on, one further.
fn steps(bench: &Bench<'_, '_>, at: SiteIndex) -> Vec<(f64, String)> {
    let parent = bench
        .sites
        .ancestors(at)
        .next()
        .map(|outer| bench.node(outer));
    let Some(AnyNodeRef::StmtWhile(repetition)) = parent else {
        return Vec::new();
    };
    let Some(function) = bench.function(at) else {
        return Vec::new();
    };
    let mut names: Vec<&str> = Vec::new();
    for name in bench.ingredients.names(repetition.test.range()) {
        let is_local = function.bound.iter().any(|bound| bound.name == name);
        if is_local {
            push_new(&mut names, name);
        }
    }
    let names = names.into_iter().take(2);
    names
        .flat_map(|name| [(2.2, format!("{name} += 1")), (2.6, format!("{name} -= 1"))])
        .collect()
}

/// Statements of the file that would have meaning here.
fn copies<'a>(
    bench: &Bench<'_, 'a>,
    at: SiteIndex,
    function: &Scope<'a>,
    neglected: &Neglected<'_>,
    is_in_loop: bool,
    is_behind: bool,
) -> Vec<(f64, Family, Vec<String>)> {
    let statement = bench.node(at).range();
    let class = bench.sites.class(function).map(|class| class.range);
    let is_generator = bench.text(function.range).contains("yield");
    let neighbours: Vec<&str> = match bench.block(at) {
        Some((block, place)) => {
            let around = place.saturating_sub(1)..(place + 2).min(block.len());
            block[around].iter().map(|it| bench.text(it)).collect()
        }
        None => Vec::new(),
    };
    let around = around_place(bench, at, is_behind);
    let mut found: Vec<(f64, Family, Vec<String>)> = Vec::new();
    for piece in &bench.ingredients.statements {
        let (range, text) = (piece.range, bench.text(piece.range));
        let is_own = function.range.contains_range(range);
        let is_near = class.is_some_and(|class| class.contains_range(range));
        if range == statement || neighbours.contains(&text) || text.contains("\"\"\"") {
            continue;
        }
        let ends = |word: &str| text.trim_end().ends_with(word);
        if !is_in_loop && (ends("break") || ends("continue"))
            || !is_generator && text.starts_with("yield")
        {
            continue;
        }
        let is_check = text.starts_with("if ");
        let mut cost = match (is_own, is_near) {
            (true, _) => 3.0,
            (false, true) => 3.2,
            (false, false) => 3.9,
        };
        if is_check {
            cost -= 0.2;
            let raises = |name: &String| text.contains(name.as_str());
            if bench.hints.not_raised.iter().any(raises) {
                cost -= 1.2;
            }
        }
        let used = neglected.used_by(bench.ingredients.names(range));
        cost -= 1.1 * used.min(2) as f64;
        match bound_name(text) {
            Some(name) if is_unbound(bench, name) => cost -= 2.2,
            Some(_) => cost += 0.8,
            None => {}
        }
        let family = if is_check {
            Family::Guard
        } else {
            Family::Insertion
        };
        let lines = bench.lines_of(range);
        let adapted = bench
            .ingredients
            .adapted(piece, function, &bench.vocabulary);
        for adapted in adapted.iter() {
            let lines: Vec<String> = lines.iter().map(|line| adapted.of(line)).collect();
            if neighbours.contains(&&*lines.join("\n")) {
                continue;
            }
            let fitting = in_place(piece, adapted, around);
            found.push((cost + adapted.cost - fitting, family, lines));
        }
    }
    found
}

/// How much speaks for a piece because what stands around it stands around the place too.
fn in_place(piece: &Piece<'_>, adapted: &Adapted, (before, behind): (&str, &str)) -> f64 {
    let is_same = |theirs: &str, ours: &str| !theirs.is_empty() && adapted.of(theirs) == ours;
    let same = is_same(piece.before, before) || is_same(piece.behind, behind);
    // Both begin, or end, what they stand in.
    let ends = piece.before.is_empty() && before.is_empty();
    let closes = piece.behind.is_empty() && behind.is_empty();
    match (same, ends || closes) {
        (true, _) => 1.2,
        (false, true) => 0.3,
        (false, false) => 0.0,
    }
}

/// What would stand before and behind a new statement before or, where `is_behind`, behind the one at `at`.
fn around_place<'a>(bench: &Bench<'_, 'a>, at: SiteIndex, is_behind: bool) -> (&'a str, &'a str) {
    let own = bench.text(bench.node(at));
    let Some((block, place)) = bench.block(at) else {
        return ("", "");
    };
    let text = |at: Option<usize>| {
        let statement = at.and_then(|at| block.get(at));
        statement.map_or("", |statement| bench.text(statement))
    };
    match is_behind {
        true => (own, text(Some(place + 1))),
        false => (text(place.checked_sub(1)), own),
    }
}

/// The bare name that a statement is an assignment to.
fn bound_name(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    let is_assigned = text[end..].trim_start().starts_with("= ");
    is_assigned.then_some(&text[..end])
}

/// Whether a failure says that a name has no value.
fn is_unbound(bench: &Bench<'_, '_>, name: &str) -> bool {
    let hints = bench.hints;
    let came = hints.raised.iter();
    came.clone()
        .any(|it| matches!(it.as_str(), "UnboundLocalError" | "NameError"))
        && hints.words.iter().any(|word| word == name)
}

pub(super) fn is_in_loop(bench: &Bench<'_, '_>, at: SiteIndex) -> bool {
    let around = bench.sites.ancestors(at).map(|outer| bench.node(outer));
    around
        .take_while(|node| !matches!(node, AnyNodeRef::StmtFunctionDef(_)))
        .any(|node| matches!(node, AnyNodeRef::StmtFor(_) | AnyNodeRef::StmtWhile(_)))
}

/// A text with a word for another.
pub(super) fn renamed(text: &str, from: &str, to: &str) -> String {
    let is_part = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let mut out = String::new();
    let mut rest = 0;
    for (at, _) in text.match_indices(from) {
        let before = text[..at].chars().next_back();
        let after = text[at + from.len()..].chars().next();
        let is_attribute = before == Some('.');
        if at >= rest && !is_part(before) && !is_part(after) && !is_attribute {
            out += &text[rest..at];
            out += to;
            rest = at + from.len();
        }
    }
    out + &text[rest..]
}

/// The span of a piece without what stands around it, for those who compare.
pub(super) fn overlaps(one: TextRange, other: TextRange) -> bool {
    one.start() < other.end() && other.start() < one.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_renamed_and_attributes_are_not() {
        assert_eq!(renamed("x.x > xx + x", "x", "item"), "item.x > xx + item");
        assert_eq!(renamed("a", "b", "c"), "a");
    }

    #[test]
    fn assignments_to_bare_names_are_told() {
        assert_eq!(bound_name("total = 1"), Some("total"));
        for other in [
            "self.total = 1",
            "a[0] = 1",
            "total += 1",
            "f(a = 1)",
            "a == 1",
        ] {
            assert_eq!(bound_name(other), None);
        }
    }
}
