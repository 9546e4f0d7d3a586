//! What stands elsewhere in the same place: the other arguments of a function, the other indices of a list, the other
//! values that something is compared with.

use ruff_python_ast::{AnyNodeRef, ExprContext};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::FxHashMap;

use super::{Family, bench::Bench};
use crate::sites::{Edit, SiteIndex, Sites};

/// Longer surroundings stand nowhere else.
const MAX_AROUND: usize = 100;
/// What is offered for one place.
const MOST: usize = 4;

/// By what stands around them, values and where they are.
#[derive(Debug, Default)]
pub(super) struct Siblings<'a>(FxHashMap<Around<'a>, Vec<(TextRange, &'a str)>>);

/// The text before and behind a value in what it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Around<'a> {
    Text(&'a str, &'a str),
    /// The callee, and which argument it is.
    Argument(&'a str, usize),
}

impl<'a> Siblings<'a> {
    pub(super) fn of(sites: &Sites<'a>) -> Self {
        let mut found = Self::default();
        for (index, site) in sites.iter() {
            if site.in_annotation || site.is_docstring || !is_value(site.node) {
                continue;
            }
            for around in around(sites, index).into_iter().flatten() {
                let text = sites.source().slice(site.node);
                found
                    .0
                    .entry(around)
                    .or_default()
                    .push((site.node.range(), text));
            }
        }
        found
    }
}

/// Edits that put in place of the value `at` what stands in its place elsewhere.
pub(super) fn instead(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    let node = bench.node(at);
    let Some(function) = bench.function(at).filter(|_| is_value(node)) else {
        return;
    };
    let own = bench.text(node);
    let mut found: Vec<(f64, &str)> = Vec::new();
    for (nth, around) in around(bench.sites, at).into_iter().enumerate() {
        let known = around.and_then(|around| bench.siblings.0.get(&around));
        for (range, text) in known.into_iter().flatten() {
            let is_offered = found.iter().any(|(_, other)| other == text);
            if *text == own || is_offered || !bench.ingredients.fits(*range, function) {
                continue;
            }
            let far = if function.range.contains_range(*range) {
                0.0
            } else {
                0.4
            };
            found.push((1.7 + 0.3 * nth as f64 + far, text));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let family = match node {
        AnyNodeRef::ExprAttribute(_) => Family::Attribute,
        _ => Family::Variable,
    };
    for (nth, (cost, text)) in found.into_iter().take(MOST).enumerate() {
        let edit = Edit::replace(node, text);
        bench.push(family, cost + 0.15 * nth as f64, at, edit);
    }
}

fn is_value(node: AnyNodeRef<'_>) -> bool {
    match node {
        AnyNodeRef::ExprName(name) => name.ctx == ExprContext::Load,
        AnyNodeRef::ExprAttribute(attribute) => attribute.ctx == ExprContext::Load,
        AnyNodeRef::ExprSubscript(subscript) => subscript.ctx == ExprContext::Load,
        _ => false,
    }
}

/// The closest surroundings first.
fn around<'a>(sites: &Sites<'a>, index: SiteIndex) -> [Option<Around<'a>>; 2] {
    let range = sites.node(index).range();
    let mut outer = sites.ancestors(index).map(|index| sites.node(index));
    let Some(parent) = outer.next() else {
        return [None, None];
    };
    let (whole, argument) = match parent {
        AnyNodeRef::Arguments(arguments) => {
            let Some(AnyNodeRef::ExprCall(call)) = outer.next() else {
                return [None, None];
            };
            let place = arguments.args.iter().position(|it| it.range() == range);
            let callee = sites.source().slice(&*call.func);
            let argument = place.map(|place| Around::Argument(callee, place));
            (AnyNodeRef::ExprCall(call), argument)
        }
        AnyNodeRef::ExprAttribute(_)
        | AnyNodeRef::ExprBinOp(_)
        | AnyNodeRef::ExprCompare(_)
        | AnyNodeRef::ExprSubscript(_)
        | AnyNodeRef::ExprUnaryOp(_)
        | AnyNodeRef::Keyword(_)
        | AnyNodeRef::StmtAssign(_)
        | AnyNodeRef::StmtAugAssign(_)
        | AnyNodeRef::StmtReturn(_) => (parent, None),
        // What is called has operators of its own.
        _ => return [None, None],
    };
    let is_callee = matches!(whole, AnyNodeRef::ExprCall(call) if call.func.range() == range);
    let whole = whole.range();
    if is_callee || whole.len().to_usize() > MAX_AROUND + range.len().to_usize() {
        return [None, argument];
    }
    let source = sites.source();
    let before = source.slice(TextRange::new(whole.start(), range.start()));
    let behind = source.slice(TextRange::new(range.end(), whole.end()));
    [Some(Around::Text(before, behind)), argument]
}
