//! Arguments that a call may lack: those of its parameters' names, those that other calls have, and those that
//! Python's own functions take.

use ruff_python_ast::{AnyNodeRef, Expr, ExprCall, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Family, bench::Bench, constants::likeness, vocabulary::push_new};
use crate::sites::{BoundBy, Edit, Scope, ScopeKind, SiteIndex};

/// Arguments that some functions take beside those that they need: the name, how many it has without, what is added,
/// what that costs, and the exception that speaks for it.
const OPTIONAL: &[(&str, usize, &str, f64, &str)] = &[
    ("sorted", 1, "reverse=True", 2.2, ""),
    ("sort", 0, "reverse=True", 2.2, ""),
    ("get", 1, "default", 1.4, ""),
    ("get", 1, "0", 2.4, "TypeError"),
    ("get", 1, "''", 2.6, "TypeError"),
    ("get", 1, "[]", 2.8, "TypeError"),
    ("get", 1, "{}", 3.0, "TypeError"),
    ("get", 1, "False", 3.2, ""),
    ("pop", 1, "None", 2.2, "KeyError"),
    ("pop", 0, "0", 2.2, ""),
    ("next", 1, "None", 2.2, "StopIteration"),
    ("next", 1, "default", 1.4, "StopIteration"),
    ("getattr", 2, "None", 2.2, "AttributeError"),
    ("split", 1, "1", 2.2, "ValueError"),
    ("rsplit", 1, "1", 2.2, "ValueError"),
    ("replace", 2, "1", 2.8, ""),
    ("setdefault", 1, "[]", 2.4, "AttributeError"),
    ("setdefault", 1, "{}", 2.6, "AttributeError"),
    ("enumerate", 1, "1", 2.0, ""),
    ("encode", 1, "'ignore'", 2.2, "UnicodeEncodeError"),
    ("encode", 1, "'replace'", 2.6, "UnicodeEncodeError"),
    ("decode", 1, "'ignore'", 2.2, "UnicodeDecodeError"),
    ("decode", 1, "'replace'", 2.6, "UnicodeDecodeError"),
    ("max", 1, "default=0", 2.4, "ValueError"),
    ("min", 1, "default=0", 2.4, "ValueError"),
    ("max", 1, "default=None", 2.6, "ValueError"),
    ("min", 1, "default=None", 2.6, "ValueError"),
    ("round", 1, "2", 2.8, ""),
];

/// Functions that take more than one argument to be of use.
const OF_SEVERAL: &[&str] = &[
    "zip",
    "map",
    "filter",
    "isinstance",
    "getattr",
    "setattr",
    "partial",
];

/// A call that may lack an argument.
struct Lacking<'c> {
    at: SiteIndex,
    call: &'c ExprCall,
    /// Behind the last argument.
    end: TextSize,
    separator: &'static str,
}

impl Lacking<'_> {
    fn add(&self, bench: &mut Bench<'_, '_>, cost: f64, text: &str) {
        let edit = Edit::insert(self.end, format!("{}{text}", self.separator));
        bench.push(Family::Argument, cost, self.at, edit);
    }
}

/// Edits that add an argument to a call whose arguments stand at `all`.
pub(super) fn missing(
    bench: &mut Bench<'_, '_>,
    at: SiteIndex,
    call: &ExprCall,
    all: &[TextRange],
) {
    let close = call.arguments.end() - TextSize::from(1);
    let lacking = Lacking {
        at,
        call,
        end: all.last().map_or(close, |last| last.end()),
        separator: if all.is_empty() { "" } else { ", " },
    };
    as_other_calls(bench, &lacking);
    optional(bench, &lacking);
    let Some(function) = bench.function(at) else {
        return;
    };
    let parameters = parameters_of(bench, at, call);
    if parameters.is_empty() {
        let called = bench.text(&*call.func);
        let is_short = call.arguments.args.len() == 1 && OF_SEVERAL.contains(&called);
        if is_short || is_lacking(bench, call, None) {
            for (nth, name) in locals(bench, &lacking).into_iter().enumerate() {
                lacking.add(bench, 1.0 + 0.15 * nth as f64, &name);
            }
        }
        unknown(bench, &lacking, function, all);
    } else {
        by_parameters(bench, &lacking, &parameters);
    }
}

/// Arguments that other calls of the same function or of a method of that name have.
fn as_other_calls(bench: &mut Bench<'_, '_>, lacking: &Lacking<'_>) {
    let call = lacking.call;
    let callee = bench.text(&*call.func);
    let method = match &*call.func {
        Expr::Attribute(attribute) => Some(format!(".{}", attribute.attr)),
        _ => None,
    };
    let mut keywords: Vec<(&str, f64)> = Vec::new();
    let mut positional: Vec<(&str, f64)> = Vec::new();
    let mut same: Vec<(SiteIndex, f64)> = Vec::new();
    for (name, calls) in &bench.vocabulary.calls {
        let more = match &method {
            _ if *name == callee => 0.0,
            Some(method) if name.ends_with(method.as_str()) => 0.4,
            _ => continue,
        };
        same.extend(calls.iter().map(|index| (*index, more)));
    }
    same.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    let known = |list: &[(&str, f64)], text: &str| list.iter().any(|(other, _)| *other == text);
    for (other, more) in same {
        let AnyNodeRef::ExprCall(other) = bench.sites.node(other) else {
            continue;
        };
        for keyword in &other.arguments.keywords {
            let own = call.arguments.keywords.iter();
            let is_given = own.clone().any(|own| own.arg == keyword.arg);
            let text = bench.source.slice(keyword);
            if keyword.arg.is_some() && !is_given && !known(&keywords, text) {
                keywords.push((text, more));
            }
        }
        for argument in other.arguments.args.iter().skip(call.arguments.args.len()) {
            let text = bench.source.slice(argument);
            if !known(&positional, text) {
                positional.push((text, more));
            }
        }
    }
    for (keyword, more) in keywords.into_iter().take(4) {
        lacking.add(bench, 2.4 + more, keyword);
    }
    if call.arguments.keywords.is_empty() {
        for (argument, more) in positional.into_iter().take(4) {
            lacking.add(bench, 2.6 + more, argument);
        }
    }
}

fn optional(bench: &mut Bench<'_, '_>, lacking: &Lacking<'_>) {
    let call = lacking.call;
    let name = match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return,
    };
    let given = call.arguments.args.len();
    for (known, count, text, cost, error) in OPTIONAL {
        let is_asked = *known == name && *count == given && call.arguments.keywords.is_empty();
        let is_there = *text != "default" || in_scope(bench, lacking.at, text);
        if is_asked && is_there {
            let came = bench.hints.raised.iter().any(|raised| raised == error);
            let less = if came { 1.4 } else { 0.0 };
            lacking.add(bench, cost - less, text);
        }
    }
    let keyed = matches!(
        name,
        "sorted" | "sort" | "min" | "max" | "groupby" | "nlargest" | "nsmallest"
    );
    let is_keyed = call.arguments.find_keyword("key").is_some();
    if keyed && !is_keyed && in_scope(bench, lacking.at, "key") {
        lacking.add(bench, 1.4, "key=key");
    }
}

fn in_scope(bench: &Bench<'_, '_>, at: SiteIndex, name: &str) -> bool {
    let scope = bench.sites.site(at).scope;
    let mut visible = bench.sites.visible(scope);
    visible.any(|scope| {
        let is_inside = !matches!(scope.kind, ScopeKind::Module);
        is_inside && scope.bound.iter().any(|bound| bound.name == name)
    })
}

/// Values called like the parameters that are not given.
fn by_parameters(bench: &mut Bench<'_, '_>, lacking: &Lacking<'_>, parameters: &[Parameter<'_>]) {
    let call = lacking.call;
    let given = call.arguments.args.len();
    let has_keywords = !call.arguments.keywords.is_empty();
    if call.arguments.args.iter().any(Expr::is_starred_expr) {
        return;
    }
    for (place, Parameter { name, is_required }) in parameters.iter().enumerate() {
        let is_given = call.arguments.find_keyword(name).is_some();
        let is_asked_for = is_lacking(bench, call, Some(name));
        if is_given || place < given && !is_asked_for && !is_misplaced(bench, call, name, place) {
            continue;
        }
        let less = match (is_asked_for, is_required) {
            (true, _) => 1.2,
            (false, true) => 0.2,
            (false, false) => 0.0,
        };
        let mut values = values_for(bench, lacking.at, name);
        if is_asked_for {
            let known = values.clone();
            let locals = locals(bench, lacking).into_iter().enumerate();
            let locals = locals.map(|(nth, local)| (local, 2.2 + 0.15 * nth as f64));
            values.extend(locals.filter(|(local, _)| !known.iter().any(|(it, _)| it == local)));
        }
        for (value, cost) in values {
            let cost = cost - less;
            if place < given {
                let before = call.arguments.args[place].start();
                let edit = Edit::insert(before, format!("{value}, "));
                bench.push(Family::Argument, cost + 0.2, lacking.at, edit);
                continue;
            }
            if place == given && !has_keywords {
                lacking.add(bench, cost, &value);
            }
            lacking.add(bench, cost + 0.2, &format!("{name}={value}"));
        }
    }
}

/// Whether a failure says that a call of this name lacks an argument: this one, or any.
fn is_lacking(bench: &Bench<'_, '_>, call: &ExprCall, parameter: Option<&str>) -> bool {
    let called = match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    bench.hints.lacking.iter().any(|(name, parameters)| {
        let is_asked = parameter.is_none_or(|asked| parameters.iter().any(|it| it == asked));
        name == called && is_asked
    })
}

/// Attributes of the object that the function reads, then names of the functions around, that the call does not hand over yet, those of the innermost first.
fn locals(bench: &Bench<'_, '_>, lacking: &Lacking<'_>) -> Vec<String> {
    let scope = bench.sites.site(lacking.at).scope;
    let inside = bench
        .sites
        .visible(scope)
        .filter(|scope| !matches!(scope.kind, ScopeKind::Module));
    let given: Vec<&str> = bench
        .ingredients
        .names(lacking.call.arguments.range())
        .collect();
    let mut found: Vec<String> = Vec::new();
    let body = bench.function(lacking.at).map(|it| bench.text(it.range));
    let class = bench
        .function(lacking.at)
        .and_then(|function| bench.sites.class(function));
    if let (Some(body), Some(ScopeKind::Class(class))) = (body, class.map(|class| class.kind)) {
        let known = bench.vocabulary.attributes(&class.name, false).iter();
        let read = known.map(|name| format!("self.{name}"));
        found.extend(read.filter(|text| body.contains(text.as_str())).take(3));
    }
    for bound in inside.flat_map(|scope| &scope.bound) {
        let is_value = matches!(bound.by, BoundBy::Parameter | BoundBy::Assignment);
        let is_object = matches!(bound.name, "self" | "cls" | "_");
        let is_known = given.contains(&bound.name) || found.iter().any(|it| it == bound.name);
        if is_value && !is_object && !is_known {
            found.push(bound.name.to_owned());
        }
    }
    found.truncate(8);
    found
}

/// Whether what stands in a parameter's place is called like a later one, and nothing like this one.
fn is_misplaced(bench: &Bench<'_, '_>, call: &ExprCall, name: &str, place: usize) -> bool {
    let texts: Vec<&str> = call
        .arguments
        .args
        .iter()
        .map(|it| bench.source.slice(it))
        .collect();
    !texts.iter().any(|text| text.ends_with(name))
        && texts.get(place).is_some()
        && call.arguments.args.len() <= place + 2
}

/// What a parameter of this name could be given, with what it costs.
fn values_for(bench: &Bench<'_, '_>, at: SiteIndex, name: &str) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    if in_scope(bench, at, name) {
        found.push((name.to_owned(), 1.4));
    }
    let Some(function) = bench.function(at) else {
        return found;
    };
    if let Some(ScopeKind::Class(class)) = bench.sites.class(function).map(|class| class.kind) {
        let known = bench.vocabulary.attributes(&class.name, false).iter();
        let same = known.filter(|attribute| attribute.trim_start_matches('_') == name);
        found.extend(same.map(|attribute| (format!("self.{attribute}"), 1.8)));
    }
    if found.is_empty() {
        let mut alike: Vec<(String, f64)> = Vec::new();
        for bound in &function.bound {
            let likeness = likeness(name, bound.name);
            let is_value = matches!(bound.by, BoundBy::Parameter | BoundBy::Assignment);
            let is_known = alike.iter().any(|(other, _)| other == bound.name);
            if is_value && !is_known && likeness >= 0.4 {
                alike.push((bound.name.to_owned(), 3.2 - likeness));
            }
        }
        alike.sort_by(|a, b| a.1.total_cmp(&b.1));
        found.extend(alike.into_iter().take(2));
    }
    found
}

/// Of a function that another file defines: parameters of the caller that nothing makes use of, then others.
fn unknown<'a>(
    bench: &mut Bench<'_, 'a>,
    lacking: &Lacking<'_>,
    function: &Scope<'a>,
    all: &[TextRange],
) {
    let neglected = bench.neglected(function);
    let unread: Vec<String> = neglected
        .unread
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    for name in unread.iter().take(2) {
        if lacking.call.arguments.keywords.is_empty() {
            lacking.add(bench, 1.4, name);
        }
        lacking.add(bench, 1.6, &format!("{name}={name}"));
    }
    if !lacking.call.arguments.keywords.is_empty() {
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    for bound in &function.bound {
        let is_used = all
            .iter()
            .any(|range| bench.source.slice(*range) == bound.name);
        if bound.by == BoundBy::Parameter && bound.name != "self" && !is_used {
            push_new(&mut names, bound.name);
        }
    }
    let names: Vec<String> = names.into_iter().take(3).map(str::to_owned).collect();
    for name in names {
        lacking.add(bench, 3.0, &name);
    }
}

pub(super) struct Parameter<'a> {
    pub(super) name: &'a str,
    is_required: bool,
}

/// The parameters of what is called, if this file defines it.
pub(super) fn parameters_of<'a>(
    bench: &Bench<'_, 'a>,
    at: SiteIndex,
    call: &ExprCall,
) -> Vec<Parameter<'a>> {
    let (name, is_method) = match &*call.func {
        Expr::Name(name) => (name.id.as_str(), false),
        Expr::Attribute(attribute) => (attribute.attr.as_str(), true),
        _ => return Vec::new(),
    };
    let own_class = bench
        .function(at)
        .and_then(|function| bench.sites.class(function))
        .map(|class| class.range);
    let scopes = bench.sites.scopes();
    let matching = scopes.filter_map(|(_, scope)| {
        let function = scope.function()?;
        let class = bench.sites.class(scope);
        let is_own = class.map(|class| class.range) == own_class;
        let called = function.name.as_str() == name;
        match (is_method, class.map(|class| class.kind)) {
            (true, Some(_)) if called => Some((!is_own, function, true)),
            (false, None) if called => Some((false, function, false)),
            // A class is called as its constructor is.
            (_, Some(ScopeKind::Class(class)))
                if class.name.as_str() == name && function.name.as_str() == "__init__" =>
            {
                Some((false, function, true))
            }
            _ => None,
        }
    });
    // Of methods of this name those of the own class go first.
    match matching.min_by_key(|(is_far, ..)| *is_far) {
        Some((_, function, is_bound)) => named(function, is_bound),
        None => Vec::new(),
    }
}

fn named(function: &StmtFunctionDef, is_bound: bool) -> Vec<Parameter<'_>> {
    let is_static = function.decorator_list.iter().any(|it| {
        it.expression
            .as_name_expr()
            .is_some_and(|name| name.id == "staticmethod")
    });
    let parameters = function.parameters.iter_non_variadic_params();
    let parameters = parameters.skip(usize::from(is_bound && !is_static));
    parameters
        .map(|parameter| Parameter {
            name: parameter.name().as_str(),
            is_required: parameter.default().is_none(),
        })
        .collect()
}
