//! The nodes of a source in the order of its text, each with its parent, statement and scope.

use ruff_python_ast::{
    AnyNodeRef, Expr, Stmt,
    visitor::source_order::{SourceOrderVisitor, TraversalSignal, walk_body},
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{
    scopes::{BoundBy, Scope, ScopeIndex, ScopeKind, stored},
    source::Source,
};

/// Among the sites of [`Sites`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteIndex(u32);

/// A node and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    pub node: AnyNodeRef<'a>,
    /// `None` for statements of the module.
    pub parent: Option<SiteIndex>,
    /// The innermost statement that the node is in; itself for a statement.
    pub statement: SiteIndex,
    pub scope: ScopeIndex,
    /// Whether the node is an annotation or in one: it is never run for its value.
    pub in_annotation: bool,
    /// Whether it is a string that documents its module, class or function.
    pub is_docstring: bool,
}

/// All nodes of a source.
#[derive(Clone, Debug)]
pub struct Sites<'a> {
    source: &'a Source,
    sites: Vec<Site<'a>>,
    scopes: Vec<Scope<'a>>,
}

impl<'a> Sites<'a> {
    pub fn of(source: &'a Source) -> Self {
        let module = source.syntax();
        let scope = Scope::new(ScopeKind::Module, None, "", false, module.into());
        let mut walk = Walk {
            source,
            sites: Vec::new(),
            scopes: vec![scope],
            open: Vec::new(),
            annotation: 0,
        };
        walk_body(&mut walk, &module.body);
        Self {
            source,
            sites: walk.sites,
            scopes: walk.scopes,
        }
    }

    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// In the order of the text, parents before their children.
    pub fn iter(&self) -> impl Iterator<Item = (SiteIndex, &Site<'a>)> {
        (0..).map(SiteIndex).zip(&self.sites)
    }

    pub fn site(&self, index: SiteIndex) -> &Site<'a> {
        &self.sites[index.0 as usize]
    }

    pub fn node(&self, index: SiteIndex) -> AnyNodeRef<'a> {
        self.site(index).node
    }

    /// Those around a node, the innermost first.
    pub fn ancestors(&self, index: SiteIndex) -> impl Iterator<Item = SiteIndex> + '_ {
        std::iter::successors(self.site(index).parent, |outer| self.site(*outer).parent)
    }

    /// The function that a node runs in, lambdas and comprehensions left out; `None` at the level of a
    /// module or a class.
    pub fn function(&self, index: SiteIndex) -> Option<&Scope<'a>> {
        let scope = self.scope(self.site(index).scope);
        self.outward(scope)
            .find(|scope| !matches!(scope.kind, ScopeKind::Lambda | ScopeKind::Comprehension))
            .filter(|scope| scope.function().is_some())
    }

    /// The class whose body a function stands in.
    pub fn class(&self, scope: &Scope<'a>) -> Option<&Scope<'a>> {
        let parent = self.scope(scope.parent?);
        matches!(parent.kind, ScopeKind::Class(_)).then_some(parent)
    }

    pub fn scope(&self, index: ScopeIndex) -> &Scope<'a> {
        &self.scopes[index.0 as usize]
    }

    /// In the order of the text, the module's first.
    pub fn scopes(&self) -> impl Iterator<Item = (ScopeIndex, &Scope<'a>)> {
        (0..).map(ScopeIndex).zip(&self.scopes)
    }

    /// A scope and those whose names it sees, the innermost first: a function does not see the names of the
    /// class that it stands in.
    pub fn visible(&self, index: ScopeIndex) -> impl Iterator<Item = &Scope<'a>> {
        let own = self.scope(index);
        let outer = self.outward(own).skip(1);
        std::iter::once(own).chain(outer.filter(|scope| !matches!(scope.kind, ScopeKind::Class(_))))
    }

    fn outward<'s>(&'s self, scope: &'s Scope<'a>) -> impl Iterator<Item = &'s Scope<'a>> {
        std::iter::successors(Some(scope), |scope| {
            scope.parent.map(|parent| self.scope(parent))
        })
    }
}

struct Open {
    site: SiteIndex,
    /// The scope that the node makes.
    scope: Option<ScopeIndex>,
}

struct Walk<'a> {
    source: &'a Source,
    sites: Vec<Site<'a>>,
    scopes: Vec<Scope<'a>>,
    open: Vec<Open>,
    /// Annotations that are open.
    annotation: usize,
}

impl<'a> Walk<'a> {
    /// The scope that a node at `start` below the open ones lies in.
    fn scope_at(&self, start: TextSize) -> ScopeIndex {
        let inside = |open: &&Open| {
            open.scope
                .is_some_and(|scope| self.scopes[scope.0 as usize].body <= start)
        };
        let scope = self.open.iter().rev().find(inside);
        scope.and_then(|open| open.scope).unwrap_or(ScopeIndex(0))
    }

    fn open_scope(&mut self, kind: ScopeKind<'a>, node: AnyNodeRef<'a>) -> ScopeIndex {
        let parent = self.scope_at(node.start());
        let outer = &self.scopes[parent.0 as usize];
        let scope = Scope::new(
            kind,
            Some(parent),
            &outer.qualified_name,
            outer.is_function_like(),
            node,
        );
        self.scopes.push(scope);
        ScopeIndex(self.scopes.len() as u32 - 1)
    }

    /// The scope that `node` makes, its parameters bound.
    fn scope_of(&mut self, node: AnyNodeRef<'a>) -> Option<ScopeIndex> {
        let outer = self.scope_at(node.start());
        let (kind, parameters) = match node {
            AnyNodeRef::StmtFunctionDef(function) => {
                self.scopes[outer.0 as usize].bind_identifier(&function.name, BoundBy::Function);
                (ScopeKind::Function(function), Some(&*function.parameters))
            }
            AnyNodeRef::StmtClassDef(class) => {
                self.scopes[outer.0 as usize].bind_identifier(&class.name, BoundBy::Class);
                (ScopeKind::Class(class), None)
            }
            AnyNodeRef::ExprLambda(lambda) => (ScopeKind::Lambda, lambda.parameters.as_deref()),
            AnyNodeRef::ExprListComp(_)
            | AnyNodeRef::ExprSetComp(_)
            | AnyNodeRef::ExprDictComp(_)
            | AnyNodeRef::ExprGenerator(_) => (ScopeKind::Comprehension, None),
            _ => return None,
        };
        let scope = self.open_scope(kind, node);
        if let Some(parameters) = parameters {
            self.scopes[scope.0 as usize].bind_parameters(parameters);
        }
        Some(scope)
    }

    fn bind(&mut self, node: AnyNodeRef<'a>, index: ScopeIndex) {
        if let Some(name) = stored(node) {
            let is_walrus = self.open.last().is_some_and(|open| {
                let parent = self.sites[open.site.0 as usize].node;
                matches!(parent, AnyNodeRef::ExprNamed(_))
            });
            let index = if is_walrus {
                self.statements_scope(index)
            } else {
                index
            };
            let scope = &mut self.scopes[index.0 as usize];
            scope.bind(name.id.as_str(), name.range, BoundBy::Assignment);
            return;
        }
        let scope = &mut self.scopes[index.0 as usize];
        match node {
            AnyNodeRef::Alias(alias) => match &alias.asname {
                Some(name) => scope.bind_identifier(name, BoundBy::Import),
                None => {
                    let name = alias.name.as_str().split('.').next().unwrap_or_default();
                    scope.bind(name, alias.name.range, BoundBy::Import);
                }
            },
            AnyNodeRef::ExceptHandlerExceptHandler(handler) => {
                if let Some(name) = &handler.name {
                    scope.bind_identifier(name, BoundBy::Assignment);
                }
            }
            AnyNodeRef::PatternMatchAs(pattern) => {
                if let Some(name) = &pattern.name {
                    scope.bind_identifier(name, BoundBy::Assignment);
                }
            }
            AnyNodeRef::PatternMatchStar(pattern) => {
                if let Some(name) = &pattern.name {
                    scope.bind_identifier(name, BoundBy::Assignment);
                }
            }
            AnyNodeRef::StmtGlobal(statement) => {
                let names = statement.names.iter().map(|name| name.as_str());
                scope.outer.extend(names);
            }
            AnyNodeRef::StmtNonlocal(statement) => {
                let names = statement.names.iter().map(|name| name.as_str());
                scope.outer.extend(names);
            }
            _ => {}
        }
    }

    /// Where `:=` binds: outside of all comprehensions.
    fn statements_scope(&self, mut index: ScopeIndex) -> ScopeIndex {
        while let Scope {
            kind: ScopeKind::Comprehension,
            parent: Some(parent),
            ..
        } = self.scopes[index.0 as usize]
        {
            index = parent;
        }
        index
    }

    fn is_docstring(&self, node: AnyNodeRef<'a>) -> bool {
        let AnyNodeRef::ExprStringLiteral(_) = node else {
            return false;
        };
        let Some(statement) = self.open.last() else {
            return false;
        };
        let statement_range = self.sites[statement.site.0 as usize].node.range();
        let body = match self.open.iter().rev().nth(1) {
            None => &self.source.syntax().body,
            Some(outer) => match self.sites[outer.site.0 as usize].node {
                AnyNodeRef::StmtFunctionDef(function) => &function.body,
                AnyNodeRef::StmtClassDef(class) => &class.body,
                _ => return false,
            },
        };
        is_first_expression(body, statement_range)
    }
}

fn is_first_expression(body: &[Stmt], range: TextRange) -> bool {
    let first = body.first();
    first.is_some_and(|first| first.is_expr_stmt() && first.range() == range)
}

impl<'a> SourceOrderVisitor<'a> for Walk<'a> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        let scope = self.scope_at(node.start());
        let index = SiteIndex(self.sites.len() as u32);
        let parent = self.open.last().map(|open| open.site);
        let statement = if node.is_statement() {
            index
        } else {
            parent.map_or(index, |parent| self.sites[parent.0 as usize].statement)
        };
        let site = Site {
            node,
            parent,
            statement,
            scope,
            in_annotation: self.annotation > 0,
            is_docstring: self.is_docstring(node),
        };
        self.bind(node, scope);
        self.sites.push(site);
        let scope = self.scope_of(node);
        self.open.push(Open { site: index, scope });
        TraversalSignal::Traverse
    }

    fn leave_node(&mut self, _node: AnyNodeRef<'a>) {
        self.open.pop();
    }

    fn visit_annotation(&mut self, annotation: &'a Expr) {
        self.annotation += 1;
        self.visit_expr(annotation);
        self.annotation -= 1;
    }
}

#[cfg(test)]
mod tests {
    use ruff_python_ast::AnyNodeRef;

    use super::*;
    use crate::sites::{BoundBy, Source};

    const TEXT: &str = r#""""Module."""
import os.path as p, sys
LIMIT = 3

class Box(Base, key=LIMIT):
    """A box."""
    size: int = 0

    def fill(self, items: list[str] = LIMIT, *rest, deep=lambda a: a) -> "Box":
        """Fills."""
        total = [w for w in items if (last := w)]
        def inner():
            nonlocal total
            return total
        for i, (j, k) in items:
            pass
        return total
"#;

    fn names<'a>(scope: &Scope<'a>, by: BoundBy) -> Vec<&'a str> {
        let bound = scope.bound.iter().filter(|bound| bound.by == by);
        bound.map(|bound| bound.name).collect()
    }

    #[test]
    fn scopes_bind_what_python_binds_in_them() {
        let source = Source::parse(TEXT).unwrap();
        let sites = Sites::of(&source);
        let find = |name: &str| {
            let mut scopes = sites.scopes();
            scopes
                .find(|(_, scope)| scope.qualified_name == name)
                .unwrap()
        };
        let (_, module) = find("");
        assert_eq!(names(module, BoundBy::Import), ["p", "sys"]);
        assert_eq!(names(module, BoundBy::Assignment), ["LIMIT"]);
        assert_eq!(names(module, BoundBy::Class), ["Box"]);
        let (_, class) = find("Box");
        assert_eq!(names(class, BoundBy::Assignment), ["size"]);
        assert_eq!(names(class, BoundBy::Function), ["fill"]);
        let (index, fill) = find("Box.fill");
        assert_eq!(names(fill, BoundBy::Parameter), ["self", "items", "deep"]);
        assert_eq!(names(fill, BoundBy::VariadicParameter), ["rest"]);
        assert_eq!(
            names(fill, BoundBy::Assignment),
            ["total", "last", "i", "j", "k"]
        );
        assert_eq!(sites.class(fill).unwrap().qualified_name, "Box");
        let seen: Vec<_> = sites
            .visible(index)
            .map(|scope| &scope.qualified_name[..])
            .collect();
        assert_eq!(seen, ["Box.fill", ""]);
        assert_eq!(find("Box.fill.<locals>.inner").1.outer, ["total"]);
        let (_, lambda) = find("Box.<lambda>");
        assert_eq!(names(lambda, BoundBy::Parameter), ["a"]);
    }

    #[test]
    fn every_node_knows_where_it_stands() {
        let source = Source::parse(TEXT).unwrap();
        let sites = Sites::of(&source);
        let docstrings = sites.iter().filter(|(_, site)| site.is_docstring);
        assert_eq!(docstrings.count(), 3);
        let annotations = sites.iter().filter(|(_, site)| site.in_annotation);
        let annotations: Vec<_> = annotations
            .filter(|(_, site)| site.node.is_expr_name() || site.node.is_expr_string_literal())
            .map(|(_, site)| source.slice(site.node))
            .collect();
        assert_eq!(annotations, ["int", "list", "str", "\"Box\""]);
        let mut last = 0;
        for (index, site) in sites.iter() {
            assert!(site.parent.is_none_or(|parent| parent < index));
            let parents = site.parent.map(|parent| sites.node(parent).range());
            assert!(parents.is_none_or(|range| range.contains_range(site.node.range())));
            assert!(sites.node(site.statement).is_statement());
            last = last.max(site.node.start().to_usize());
        }
        assert!(last > 0);
        let (default, _) = sites
            .iter()
            .filter(
                |(_, site)| matches!(site.node, AnyNodeRef::ExprName(name) if name.id == "LIMIT"),
            )
            .last()
            .unwrap();
        let scope = sites.scope(sites.site(default).scope);
        assert_eq!(
            scope.qualified_name, "Box",
            "a default is evaluated outside of its function"
        );
        assert!(sites.function(default).is_none());
        let (returned, _) = sites
            .iter()
            .find(|(_, site)| matches!(site.node, AnyNodeRef::StmtReturn(_)))
            .unwrap();
        let function = sites.function(returned).unwrap();
        assert_eq!(function.qualified_name, "Box.fill.<locals>.inner");
    }
}
