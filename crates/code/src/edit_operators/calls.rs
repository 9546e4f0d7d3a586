//! Calls: their arguments, what is called, and calls too many or too few.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

use super::{Family, arguments, arithmetic, bench::Bench, constants::likeness};
use crate::sites::{BoundBy, Edit, ScopeKind, SiteIndex};

/// Functions and methods that are taken for one another.
const PAIRS: &[(&str, &str, f64)] = &[
    ("min", "max", 0.4),
    ("any", "all", 0.4),
    ("append", "extend", 0.8),
    ("append", "appendleft", 0.8),
    ("extend", "extendleft", 0.8),
    ("append", "add", 1.8),
    ("pop", "popleft", 0.8),
    ("pop", "get", 1.0),
    ("pop", "popitem", 2.0),
    ("get", "setdefault", 1.4),
    ("add", "discard", 1.2),
    ("remove", "discard", 1.0),
    ("add", "update", 1.4),
    ("update", "difference_update", 1.8),
    ("union", "intersection", 0.8),
    ("union", "difference", 1.2),
    ("intersection", "difference", 1.0),
    ("difference", "symmetric_difference", 1.0),
    ("issubset", "issuperset", 0.6),
    ("keys", "values", 0.8),
    ("keys", "items", 1.0),
    ("values", "items", 0.9),
    ("startswith", "endswith", 0.5),
    ("lstrip", "rstrip", 0.5),
    ("strip", "rstrip", 0.9),
    ("strip", "lstrip", 0.9),
    ("removeprefix", "removesuffix", 0.5),
    ("find", "rfind", 0.5),
    ("index", "rindex", 0.5),
    ("find", "index", 1.2),
    ("split", "rsplit", 0.6),
    ("split", "splitlines", 1.6),
    ("partition", "rpartition", 0.5),
    ("ljust", "rjust", 0.5),
    ("lower", "upper", 0.5),
    ("title", "capitalize", 0.8),
    ("isupper", "islower", 0.6),
    ("isalpha", "isalnum", 0.9),
    ("isdigit", "isalpha", 1.2),
    ("isdigit", "isnumeric", 1.0),
    ("bisect_left", "bisect_right", 0.4),
    ("insort_left", "insort_right", 0.4),
    ("heappush", "heappop", 1.4),
    ("heappushpop", "heapreplace", 0.8),
    ("floor", "ceil", 0.5),
    ("floor", "round", 1.2),
    ("ceil", "round", 1.2),
    ("int", "float", 1.0),
    ("int", "round", 1.4),
    ("list", "tuple", 1.0),
    ("list", "set", 1.4),
    ("list", "iter", 1.6),
    ("list", "dict", 2.0),
    ("set", "frozenset", 1.0),
    ("str", "repr", 0.6),
    ("ord", "chr", 0.8),
    ("iter", "next", 1.2),
    ("sorted", "list", 1.2),
    ("sorted", "reversed", 1.2),
    ("len", "sum", 1.6),
    ("sum", "max", 1.6),
    ("isinstance", "issubclass", 0.8),
    ("hasattr", "getattr", 1.0),
    ("getattr", "setattr", 1.6),
    ("setattr", "delattr", 1.4),
    ("zip", "zip_longest", 0.8),
    ("takewhile", "dropwhile", 0.5),
    ("filter", "filterfalse", 0.6),
    ("permutations", "combinations", 0.6),
    ("combinations", "combinations_with_replacement", 0.7),
    ("copy", "deepcopy", 0.6),
    ("match", "search", 0.7),
    ("match", "fullmatch", 0.7),
    ("search", "findall", 1.4),
    ("encode", "decode", 0.6),
    ("group", "groups", 1.0),
    ("read", "readline", 1.2),
    ("readline", "readlines", 1.0),
    ("write", "writelines", 1.2),
    ("join", "format", 2.4),
    ("count", "index", 1.4),
    ("sort", "reverse", 1.4),
    ("insert", "append", 1.4),
    ("remove", "pop", 1.4),
    ("abspath", "realpath", 0.8),
    ("dirname", "basename", 0.6),
    ("isfile", "isdir", 0.6),
    ("exists", "isfile", 1.0),
    ("dumps", "loads", 1.0),
    ("map", "filter", 1.2),
    ("enter", "exit", 1.4),
    ("acquire", "release", 0.8),
    ("gt", "lt", 0.6),
    ("ge", "le", 0.6),
    ("gt", "ge", 0.6),
    ("lt", "le", 0.6),
    ("eq", "ne", 0.6),
    ("add", "sub", 0.7),
    ("mul", "truediv", 1.0),
    ("chain", "zip", 1.8),
    ("partial", "partialmethod", 1.8),
];

pub(super) fn call(bench: &mut Bench<'_, '_>, at: SiteIndex, call: &ExprCall) {
    callee(bench, at, call);
    arguments(bench, at, call);
    let callee_text = bench.text(&*call.func);
    if let ([argument], true) = (&*call.arguments.args, call.arguments.keywords.is_empty())
        && !argument.is_starred_expr()
    {
        let is_wrapper = matches!(
            callee_text,
            "list"
                | "tuple"
                | "set"
                | "iter"
                | "sorted"
                | "reversed"
                | "str"
                | "int"
                | "abs"
                | "bool"
                | "float"
                | "len"
                | "dict"
                | "enumerate"
                | "repr"
                | "next"
        );
        let cost = if is_wrapper { 2.0 } else { 2.8 };
        let text = bench.text(argument);
        bench.replace_loose(Family::Conversion, cost, at, text);
    }
    // A method call that changes the value it is called on.
    if let Expr::Attribute(attribute) = &*call.func {
        let object = bench.text(&*attribute.value);
        let is_pure = matches!(
            attribute.attr.as_str(),
            "lower"
                | "upper"
                | "strip"
                | "lstrip"
                | "rstrip"
                | "copy"
                | "title"
                | "capitalize"
                | "casefold"
                | "keys"
                | "values"
                | "items"
                | "encode"
                | "decode"
                | "replace"
                | "swapcase"
                | "zfill"
                | "expandtabs"
        );
        let cost = if is_pure { 2.0 } else { 3.4 };
        if object != "self" {
            bench.replace(Family::Conversion, cost, at, object);
        }
    }
    if callee_text == "range" {
        range_bounds(bench, at, call);
    }
    if matches!(callee_text, "len" | "int" | "sum" | "min" | "max" | "abs") {
        arithmetic::off_by_one(bench, at, 2.4);
    }
}

fn callee(bench: &mut Bench<'_, '_>, at: SiteIndex, call: &ExprCall) {
    let (own, range) = match &*call.func {
        Expr::Name(name) => (name.id.as_str(), name.range),
        Expr::Attribute(attribute) => (attribute.attr.as_str(), attribute.attr.range()),
        _ => return,
    };
    for (a, b, cost) in PAIRS {
        let other = match own {
            _ if own == *a => b,
            _ if own == *b => a,
            _ => continue,
        };
        bench.push(Family::Callee, *cost, at, Edit::replace(range, *other));
    }
    if !call.func.is_name_expr() {
        return;
    }
    // Other functions of the module and names in scope that are called.
    let scope = bench.sites.site(at).scope;
    let mut known: Vec<(f64, &str)> = Vec::new();
    for scope in bench.sites.visible(scope) {
        let is_module = matches!(scope.kind, ScopeKind::Module);
        for bound in &scope.bound {
            let cost = match bound.by {
                BoundBy::Function | BoundBy::Class | BoundBy::Import if is_module => 3.4,
                BoundBy::Function => 2.6,
                BoundBy::Parameter | BoundBy::Assignment if !is_module => 2.8,
                _ => continue,
            };
            let is_called = bench.vocabulary.calls.contains_key(bound.name);
            let is_known = known.iter().any(|(_, name)| *name == bound.name);
            if bound.name == own || is_known || (!is_called && bound.by != BoundBy::Function) {
                continue;
            }
            known.push((cost - 1.8 * likeness(own, bound.name), bound.name));
        }
    }
    known.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    for (cost, other) in known.into_iter().take(6) {
        bench.push(Family::Callee, cost, at, Edit::replace(range, other));
    }
}

fn arguments(bench: &mut Bench<'_, '_>, at: SiteIndex, call: &ExprCall) {
    let positional = &call.arguments.args;
    let parameters = arguments::parameters_of(bench, at, call);
    for (place, pair) in positional.windows(2).enumerate() {
        // Each is called like the parameter of the other.
        let is_called = |argument: &Expr, place: usize| {
            let parameter = parameters.get(place);
            let text = bench.text(argument);
            parameter.is_some_and(|it| text.rsplit('.').next() == Some(it.name))
        };
        let is_crossed = is_called(&pair[0], place + 1) || is_called(&pair[1], place);
        let is_straight = is_called(&pair[0], place) || is_called(&pair[1], place + 1);
        let cost = match (is_crossed, is_straight) {
            (true, false) => 0.6,
            (false, true) => 2.0,
            _ => 1.4,
        };
        swap(bench, at, &pair[0], &pair[1], cost);
    }
    if let [first, _, third] = &**positional {
        swap(bench, at, first, third, 2.6);
    }
    let all: Vec<TextRange> = call
        .arguments
        .iter_source_order()
        .map(|argument| argument.range())
        .collect();
    for (place, range) in all.iter().enumerate() {
        // With the comma on one of its sides.
        let span = match (place, all.get(place + 1)) {
            (_, Some(next)) => TextRange::new(range.start(), next.start()),
            (0, None) => *range,
            (_, None) => TextRange::new(all[place - 1].end(), range.end()),
        };
        let is_last = place + 1 == all.len();
        let cost = if is_last { 2.2 } else { 3.0 };
        bench.push(Family::Argument, cost, at, Edit::replace(span, ""));
    }
    arguments::missing(bench, at, call, &all);
    swapped_keywords(bench, at, call);
}

fn swap(bench: &mut Bench<'_, '_>, at: SiteIndex, a: impl Ranged, b: impl Ranged, cost: f64) {
    let (a, b) = (a.range(), b.range());
    let range = TextRange::new(a.start(), b.end());
    let between = bench.text(TextRange::new(a.end(), b.start()));
    let text = format!("{}{between}{}", bench.text(b), bench.text(a));
    bench.push(Family::Swap, cost, at, Edit::replace(range, text));
}

fn swapped_keywords(bench: &mut Bench<'_, '_>, at: SiteIndex, call: &ExprCall) {
    for pair in call.arguments.keywords.windows(2) {
        if pair[0].arg.is_some() && pair[1].arg.is_some() {
            swap(bench, at, &pair[0].value, &pair[1].value, 2.2);
        }
    }
}

fn range_bounds(bench: &mut Bench<'_, '_>, at: SiteIndex, call: &ExprCall) {
    let texts: Vec<&str> = call
        .arguments
        .args
        .iter()
        .map(|arg| bench.text(arg))
        .collect();
    let variants: Vec<(f64, String)> = match texts[..] {
        [stop] => vec![
            (1.6, format!("range({stop} + 1)")),
            (1.6, format!("range({stop} - 1)")),
            (1.6, format!("range(1, {stop})")),
            (2.0, format!("range(1, {stop} + 1)")),
        ],
        [start, stop] => vec![
            (1.6, format!("range({start}, {stop} + 1)")),
            (1.6, format!("range({start}, {stop} - 1)")),
            (1.8, format!("range({start} + 1, {stop})")),
            (2.0, format!("range({stop})")),
        ],
        [start, stop, step] => vec![
            (1.6, format!("range({start}, {stop} + 1, {step})")),
            (1.6, format!("range({start}, {stop} - 1, {step})")),
            (2.0, format!("range({start}, {stop})")),
            (2.0, format!("range({start}, {stop}, -{step})")),
        ],
        _ => Vec::new(),
    };
    for (cost, text) in variants {
        bench.replace(Family::Bounds, cost, at, &text);
    }
}

/// Neighbours in a tuple in the wrong order.
pub(super) fn elements(bench: &mut Bench<'_, '_>, at: SiteIndex, elements: &[Expr]) {
    for pair in elements.windows(2) {
        swap(bench, at, &pair[0], &pair[1], 2.0);
    }
}
