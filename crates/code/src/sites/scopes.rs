//! Scopes of a module and the names that are bound in them.

use ruff_python_ast::{
    AnyNodeRef, Expr, ExprContext, Identifier, Parameters, StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Among the scopes of [`Sites`](super::Sites); 0 is the module's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeIndex(pub(super) u32);

/// What has names of its own.
#[derive(Clone, Copy, Debug)]
pub enum ScopeKind<'a> {
    Module,
    Class(&'a StmtClassDef),
    Function(&'a StmtFunctionDef),
    Lambda,
    Comprehension,
}

/// A scope and what it binds.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    pub kind: ScopeKind<'a>,
    pub parent: Option<ScopeIndex>,
    /// `Class.method`, `outer.<locals>.inner`; empty for the module.
    pub qualified_name: String,
    /// Of the whole definition.
    pub range: TextRange,
    /// In the order of the text; a name is listed as often as it is bound.
    pub bound: Vec<Bound<'a>>,
    /// Names that `global` and `nonlocal` send elsewhere.
    pub outer: Vec<&'a str>,
    /// From here on, nodes lie in the scope; before are decorators, defaults and annotations, or bases.
    pub(super) body: TextSize,
}

/// A name that a scope binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<'a> {
    pub name: &'a str,
    pub at: TextRange,
    pub by: BoundBy,
}

/// How a name comes to be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundBy {
    Parameter,
    /// `*args` and `**kwargs`.
    VariadicParameter,
    /// By an assignment, a loop, a `with`, a handler, a pattern or `:=`.
    Assignment,
    Import,
    Function,
    Class,
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        kind: ScopeKind<'a>,
        parent: Option<ScopeIndex>,
        outer_name: &str,
        outer_is_function: bool,
        node: AnyNodeRef<'a>,
    ) -> Self {
        let (name, body) = match kind {
            ScopeKind::Module => ("", node.start()),
            ScopeKind::Class(class) => (class.name.as_str(), body_start(&class.body, node)),
            ScopeKind::Function(function) => {
                (function.name.as_str(), body_start(&function.body, node))
            }
            ScopeKind::Lambda => ("<lambda>", lambda_body(node)),
            ScopeKind::Comprehension => ("<comprehension>", node.start()),
        };
        let qualified_name = match (outer_name, outer_is_function) {
            ("", _) => name.to_owned(),
            (outer, true) => format!("{outer}.<locals>.{name}"),
            (outer, false) => format!("{outer}.{name}"),
        };
        Self {
            kind,
            parent,
            qualified_name,
            range: node.range(),
            bound: Vec::new(),
            outer: Vec::new(),
            body,
        }
    }

    /// The function that this scope is, or `None`.
    pub fn function(&self) -> Option<&'a StmtFunctionDef> {
        match self.kind {
            ScopeKind::Function(function) => Some(function),
            _ => None,
        }
    }

    pub(super) fn is_function_like(&self) -> bool {
        !matches!(self.kind, ScopeKind::Module | ScopeKind::Class(_))
    }

    pub(super) fn bind(&mut self, name: &'a str, at: TextRange, by: BoundBy) {
        self.bound.push(Bound { name, at, by });
    }

    pub(super) fn bind_identifier(&mut self, identifier: &'a Identifier, by: BoundBy) {
        self.bind(identifier.as_str(), identifier.range(), by);
    }

    pub(super) fn bind_parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters.iter_source_order() {
            let by = if parameter.is_variadic() {
                BoundBy::VariadicParameter
            } else {
                BoundBy::Parameter
            };
            self.bind_identifier(&parameter.as_parameter().name, by);
        }
    }
}

/// The name that an expression binds, when it is one that binds.
pub(super) fn stored(node: AnyNodeRef<'_>) -> Option<&ruff_python_ast::ExprName> {
    match node {
        AnyNodeRef::ExprName(name) if name.ctx == ExprContext::Store => Some(name),
        _ => None,
    }
}

fn body_start(body: &[ruff_python_ast::Stmt], node: AnyNodeRef<'_>) -> TextSize {
    body.first().map_or(node.end(), Ranged::start)
}

fn lambda_body(node: AnyNodeRef<'_>) -> TextSize {
    match node {
        AnyNodeRef::ExprLambda(lambda) => Expr::start(&lambda.body),
        _ => node.start(),
    }
}
