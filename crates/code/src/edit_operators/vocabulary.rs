//! What a file is made of: its names, constants, attributes and expressions, as ingredients of edits.

use ruff_python_ast::{AnyNodeRef, Expr, ExprCall, ExprContext};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::sites::{BoundBy, Scope, ScopeKind, SiteIndex, Sites};

/// All lists are in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Vocabulary<'a> {
    /// Texts of numbers, with where they stand.
    pub(super) numbers: Vec<(TextRange, &'a str)>,
    /// Texts of strings without values in them, documentation apart.
    pub(super) strings: Vec<(TextRange, &'a str)>,
    /// By the class's name: attributes that are read, set or called on `self`, and methods.
    attributes: FxHashMap<&'a str, ClassNames<'a>>,
    /// By target, the text of each value that is assigned to it.
    pub(super) assigned: FxHashMap<&'a str, Vec<(TextRange, &'a str)>>,
    /// Values that are returned or yielded.
    pub(super) returned: Vec<(TextRange, &'a str)>,
    /// Conditions of `if` and `while`.
    pub(super) conditions: Vec<(TextRange, &'a str)>,
    /// By the callee's text, its calls.
    pub(super) calls: FxHashMap<&'a str, Vec<SiteIndex>>,
    /// By the parameter's name, the defaults that it has in this file.
    pub(super) defaults: FxHashMap<&'a str, Vec<(TextRange, &'a str)>>,
    /// Attributes and names that are used anywhere.
    used: FxHashSet<&'a str>,
    /// Names of exceptions that are raised, caught or defined.
    pub(super) exceptions: Vec<&'a str>,
    /// By the scope's start and the name: how it is used.
    roles: FxHashMap<(TextRange, &'a str), Roles<'a>>,
    /// By the name before the dot, attributes that are used of it.
    pub(super) members: FxHashMap<&'a str, Vec<&'a str>>,
    /// By the text of a value, functions and, with their dots, methods that convert it somewhere.
    pub(super) converted: FxHashMap<&'a str, Vec<&'a str>>,
    /// How often each of these is called.
    conversions: FxHashMap<&'a str, usize>,
}

/// Functions of Python that make a value of one other, and methods that make one of the object alone.
const FUNCTIONS: &[&str] = &[
    "abs",
    "bool",
    "bytes",
    "dict",
    "float",
    "frozenset",
    "int",
    "iter",
    "len",
    "list",
    "next",
    "repr",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "tuple",
];
const METHODS: &[&str] = &[
    ".casefold",
    ".copy",
    ".decode",
    ".encode",
    ".items",
    ".keys",
    ".lower",
    ".lstrip",
    ".rstrip",
    ".strip",
    ".title",
    ".upper",
    ".values",
];

#[derive(Debug, Default)]
struct ClassNames<'a> {
    values: Vec<&'a str>,
    methods: Vec<&'a str>,
}

/// How a name is used in a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles<'a> {
    is_called: bool,
    is_iterated: bool,
    is_subscripted: bool,
    is_arithmetic: bool,
    is_tested: bool,
    members: FxHashSet<&'a str>,
    /// Callees that it is handed to.
    handed_to: FxHashSet<&'a str>,
    compared_with: FxHashSet<&'a str>,
}

impl Roles<'_> {
    /// How alike two names are used, from 0.
    pub(super) fn likeness(&self, other: &Self) -> f64 {
        let flags = |roles: &Self| {
            [
                roles.is_called,
                roles.is_iterated,
                roles.is_subscripted,
                roles.is_arithmetic,
                roles.is_tested,
            ]
        };
        let both = flags(self).into_iter().zip(flags(other));
        let flags = both.filter(|(a, b)| *a && *b).count();
        let members = self.members.intersection(&other.members).count();
        let handed = self.handed_to.intersection(&other.handed_to).count();
        let compared = self
            .compared_with
            .intersection(&other.compared_with)
            .count();
        flags as f64 + members as f64 + handed as f64 + compared as f64
    }
}

impl<'a> Vocabulary<'a> {
    pub(super) fn of(sites: &Sites<'a>) -> Self {
        let mut vocabulary = Self::default();
        for (_, scope) in sites.scopes() {
            vocabulary.read_scope(sites, scope);
        }
        for (index, site) in sites.iter() {
            if !site.in_annotation && !site.is_docstring {
                vocabulary.read(sites, index);
            }
        }
        vocabulary
    }

    /// Attributes of the class around a function: values or methods.
    pub(super) fn attributes(&self, class: &str, methods: bool) -> &[&'a str] {
        let names = self.attributes.get(class);
        let list = names.map(|names| {
            if methods {
                &names.methods
            } else {
                &names.values
            }
        });
        list.map_or(&[], Vec::as_slice)
    }

    /// Conversions that are made anywhere, the most frequent first.
    pub(super) fn conversions(&self) -> Vec<&'a str> {
        let mut known: Vec<(&str, usize)> =
            self.conversions.iter().map(|(a, n)| (*a, *n)).collect();
        known.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        known.into_iter().map(|(name, _)| name).collect()
    }

    /// Methods that anything calls.
    pub(super) fn methods_called(&self) -> Vec<&'a str> {
        let callees = self.calls.keys();
        let names = callees.filter_map(|callee| Some(callee.rsplit_once('.')?.1));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether anything uses a name, or an attribute that is called so.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    pub(super) fn roles(&self, function: &Scope<'a>, name: &'a str) -> Roles<'a> {
        let roles = self.roles.get(&(function.range, name));
        roles.cloned().unwrap_or_default()
    }

    fn read_scope(&mut self, sites: &Sites<'a>, scope: &Scope<'a>) {
        if let Some(function) = scope.function() {
            for parameter in function.parameters.iter_non_variadic_params() {
                if let Some(default) = parameter.default() {
                    let text = sites.source().slice(default);
                    let known = self.defaults.entry(parameter.name().as_str());
                    known.or_default().push((default.range(), text));
                }
            }
            if let Some(class) = sites.class(scope) {
                let names = self.class(class);
                push_new(&mut names.methods, function.name.as_str());
            }
        }
        if let ScopeKind::Class(class) = scope.kind {
            let bound = scope.bound.iter();
            let values = bound.filter(|bound| bound.by == BoundBy::Assignment);
            let values: Vec<_> = values.map(|bound| bound.name).collect();
            let names = self.class(scope);
            for value in values {
                push_new(&mut names.values, value);
            }
            if class.name.ends_with("Error") || class.name.ends_with("Exception") {
                push_new(&mut self.exceptions, class.name.as_str());
            }
        }
    }

    fn class(&mut self, scope: &Scope<'a>) -> &mut ClassNames<'a> {
        let name = match scope.kind {
            ScopeKind::Class(class) => class.name.as_str(),
            _ => "",
        };
        self.attributes.entry(name).or_default()
    }

    fn read(&mut self, sites: &Sites<'a>, index: SiteIndex) {
        let source = sites.source();
        let node = sites.node(index);
        let text = |expression: &Expr| (expression.range(), source.slice(expression));
        match node {
            AnyNodeRef::ExprNumberLiteral(_) => {
                self.numbers.push((node.range(), source.slice(node)));
            }
            AnyNodeRef::ExprStringLiteral(_) => {
                self.strings.push((node.range(), source.slice(node)));
            }
            AnyNodeRef::StmtAssign(node) => {
                for target in &node.targets {
                    let known = self.assigned.entry(source.slice(target));
                    known.or_default().push(text(&node.value));
                }
            }
            AnyNodeRef::StmtReturn(node) => {
                self.returned.extend(node.value.as_deref().map(text));
            }
            AnyNodeRef::ExprYield(node) => {
                self.returned.extend(node.value.as_deref().map(text));
            }
            AnyNodeRef::StmtIf(node) => self.conditions.push(text(&node.test)),
            AnyNodeRef::ElifElseClause(node) => {
                self.conditions.extend(node.test.as_ref().map(text));
            }
            AnyNodeRef::StmtWhile(node) => self.conditions.push(text(&node.test)),
            AnyNodeRef::ExprCall(node) => {
                let known = self.calls.entry(source.slice(&*node.func));
                known.or_default().push(index);
                self.read_conversion(sites, node);
            }
            AnyNodeRef::StmtRaise(node) => {
                let raised = node.exc.as_deref().map(|exc| match exc {
                    Expr::Call(call) => &*call.func,
                    other => other,
                });
                if let Some(Expr::Name(name)) = raised {
                    push_new(&mut self.exceptions, name.id.as_str());
                }
            }
            AnyNodeRef::ExceptHandlerExceptHandler(node) => match node.type_.as_deref() {
                Some(Expr::Name(name)) => push_new(&mut self.exceptions, name.id.as_str()),
                Some(Expr::Tuple(tuple)) => {
                    for name in tuple.elts.iter().filter_map(Expr::as_name_expr) {
                        push_new(&mut self.exceptions, name.id.as_str());
                    }
                }
                _ => {}
            },
            AnyNodeRef::ExprAttribute(node) => {
                self.used.insert(node.attr.as_str());
                if let Expr::Name(object) = &*node.value {
                    let members = self.members.entry(object.id.as_str()).or_default();
                    push_new(members, node.attr.as_str());
                    self.read_own_attribute(sites, index, object.id.as_str(), node.attr.as_str());
                }
            }
            AnyNodeRef::ExprName(name) if name.ctx == ExprContext::Load => {
                self.used.insert(name.id.as_str());
                self.read_role(sites, index, name.id.as_str());
            }
            _ => {}
        }
    }

    fn read_conversion(&mut self, sites: &Sites<'a>, call: &ExprCall) {
        let (found, value) = match (&*call.func, &*call.arguments.args) {
            (Expr::Name(name), [value]) if call.arguments.keywords.is_empty() => {
                let known = FUNCTIONS.iter().find(|it| **it == name.id.as_str());
                (known, value)
            }
            (Expr::Attribute(attribute), []) if call.arguments.is_empty() => {
                let known = METHODS
                    .iter()
                    .find(|it| it[1..] == *attribute.attr.as_str());
                (known, &*attribute.value)
            }
            _ => return,
        };
        if let Some(conversion) = found {
            *self.conversions.entry(conversion).or_default() += 1;
            let known = self.converted.entry(sites.source().slice(value));
            push_new(known.or_default(), conversion);
        }
    }

    fn read_own_attribute(
        &mut self,
        sites: &Sites<'a>,
        index: SiteIndex,
        object: &str,
        attribute: &'a str,
    ) {
        let Some(class) = (object == "self")
            .then(|| sites.function(index))
            .flatten()
            .and_then(|function| sites.class(function))
        else {
            return;
        };
        let names = self.class(class);
        if !names.methods.contains(&attribute) {
            push_new(&mut names.values, attribute);
        }
    }

    fn read_role(&mut self, sites: &Sites<'a>, index: SiteIndex, name: &'a str) {
        let (Some(function), Some(parent)) = (sites.function(index), sites.site(index).parent)
        else {
            return;
        };
        let range = sites.node(index).range();
        let roles = self.roles.entry((function.range, name)).or_default();
        let source = sites.source();
        match sites.node(parent) {
            AnyNodeRef::ExprCall(call) if call.func.range() == range => roles.is_called = true,
            AnyNodeRef::Arguments(_) => {
                let call = sites.ancestors(index).nth(1).map(|call| sites.node(call));
                if let Some(AnyNodeRef::ExprCall(call)) = call {
                    roles.handed_to.insert(source.slice(&*call.func));
                }
            }
            AnyNodeRef::StmtFor(node) if node.iter.range() == range => roles.is_iterated = true,
            AnyNodeRef::Comprehension(node) if node.iter.range() == range => {
                roles.is_iterated = true;
            }
            AnyNodeRef::ExprSubscript(node) if node.value.range() == range => {
                roles.is_subscripted = true;
            }
            AnyNodeRef::ExprBinOp(_) | AnyNodeRef::StmtAugAssign(_) => roles.is_arithmetic = true,
            AnyNodeRef::ExprUnaryOp(_)
            | AnyNodeRef::ExprBoolOp(_)
            | AnyNodeRef::StmtIf(_)
            | AnyNodeRef::StmtWhile(_)
            | AnyNodeRef::ElifElseClause(_) => roles.is_tested = true,
            AnyNodeRef::ExprAttribute(node) => {
                roles.members.insert(node.attr.as_str());
            }
            AnyNodeRef::ExprCompare(node) => {
                let operands = std::iter::once(&*node.left).chain(&node.comparators);
                for operand in operands.filter(|operand| operand.range() != range) {
                    roles.compared_with.insert(source.slice(operand));
                }
            }
            _ => {}
        }
    }
}

pub(super) fn push_new<'a>(list: &mut Vec<&'a str>, item: &'a str) {
    if !list.contains(&item) {
        list.push(item);
    }
}
