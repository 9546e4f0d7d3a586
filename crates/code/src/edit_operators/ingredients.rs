//! Pieces of a file that may be missing elsewhere in it, and where they would have meaning.
//!
//! Fixes are mostly made of code near by (Barr et al. 2014). A piece is only offered where every name in it is
//! bound.

use std::{cell::RefCell, rc::Rc};

use ruff_python_ast::{AnyNodeRef, Expr, ExprContext, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{bench::blocks, constants::likeness, forgotten::renamed, vocabulary::Vocabulary};
use crate::sites::{BoundBy, Scope, ScopeKind, SiteIndex, Sites};

/// Longer pieces are more than one edit is about.
const MAX_PIECE: usize = 160;
/// Names of a piece that are exchanged at most.
const MAX_STRANGE: usize = 2;

/// A piece of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) range: TextRange,
    /// Of the function that it stands in.
    function: Option<TextSize>,
    /// What stands before and behind it in its block; empty where there is nothing.
    pub(super) before: &'a str,
    pub(super) behind: &'a str,
}

/// A piece as it could be written elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Adapted {
    /// Names that have no meaning there, and what they become.
    pub(super) names: Vec<(String, String)>,
    /// More than that of the piece as it is.
    pub(super) cost: f64,
}

/// By a piece, and where it would be written.
type AdaptedByPlace = FxHashMap<(TextRange, TextSize), Rc<[Adapted]>>;

impl Adapted {
    /// `text` with these names.
    pub(super) fn of(&self, text: &str) -> String {
        let names = self.names.iter();
        names.fold(text.to_owned(), |text, (from, to)| renamed(&text, from, to))
    }
}

/// All lists are in the order of the text.
#[derive(Debug)]
pub(super) struct Ingredients<'s, 'a> {
    sites: &'s Sites<'a>,
    /// Statements that do something, and checks that leave.
    pub(super) statements: Vec<Piece<'a>>,
    /// Operands of conditions.
    pub(super) conditions: Vec<Piece<'a>>,
    /// Conditions of comprehensions, each with the name that it is about.
    pub(super) filters: Vec<(TextRange, &'a str)>,
    /// Names that are read, by where.
    loads: Vec<(TextSize, &'a str)>,
    /// Names that any scope of the file binds: others are Python's own.
    bound: FxHashSet<&'a str>,
    /// By the function's start, what its names can be.
    visible: RefCell<FxHashMap<TextSize, FxHashSet<&'a str>>>,
    adapted: RefCell<AdaptedByPlace>,
}

impl<'s, 'a> Ingredients<'s, 'a> {
    pub(super) fn of(sites: &'s Sites<'a>) -> Self {
        let mut found = Self {
            sites,
            statements: Vec::new(),
            conditions: Vec::new(),
            filters: Vec::new(),
            loads: Vec::new(),
            bound: FxHashSet::default(),
            visible: RefCell::default(),
            adapted: RefCell::default(),
        };
        for (_, scope) in sites.scopes() {
            found.bound.extend(scope.bound.iter().map(|it| it.name));
        }
        for (index, site) in sites.iter() {
            if !site.in_annotation && !site.is_docstring {
                found.read(index);
            }
        }
        found
    }

    fn read(&mut self, index: SiteIndex) {
        let node = self.sites.node(index);
        match node {
            AnyNodeRef::ExprName(name) if name.ctx == ExprContext::Load => {
                self.loads.push((name.start(), name.id.as_str()));
            }
            AnyNodeRef::StmtIf(branch) => {
                self.operands(index, &branch.test);
                let leaves = matches!(
                    &*branch.body,
                    [Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) | Stmt::Continue(_)]
                );
                if leaves && branch.elif_else_clauses.is_empty() {
                    self.statement(index);
                }
            }
            AnyNodeRef::ElifElseClause(clause) => {
                if let Some(test) = &clause.test {
                    self.operands(index, test);
                }
            }
            AnyNodeRef::StmtWhile(repetition) => self.operands(index, &repetition.test),
            AnyNodeRef::StmtAssert(assertion) => self.operands(index, &assertion.test),
            AnyNodeRef::ExprIf(choice) => self.operands(index, &choice.test),
            AnyNodeRef::ExprBoolOp(operation) => {
                for operand in &operation.values {
                    self.operands(index, operand);
                }
            }
            AnyNodeRef::Comprehension(comprehension) => {
                if let Expr::Name(target) = &comprehension.target {
                    let conditions = comprehension.ifs.iter();
                    self.filters
                        .extend(conditions.map(|it| (it.range(), target.id.as_str())));
                }
            }
            AnyNodeRef::StmtExpr(statement) => {
                let value = &*statement.value;
                if value.is_call_expr() || value.is_yield_expr() || value.is_yield_from_expr() {
                    self.statement(index);
                }
            }
            AnyNodeRef::StmtAugAssign(_)
            | AnyNodeRef::StmtDelete(_)
            | AnyNodeRef::StmtAssign(_) => {
                self.statement(index);
            }
            _ => {}
        }
    }

    fn statement(&mut self, index: SiteIndex) {
        let range = self.sites.node(index).range();
        let is_inside = self.sites.function(index).is_some();
        if is_inside && range.len().to_usize() <= MAX_PIECE {
            let (before, behind) = self.neighbours(index);
            self.statements.push(Piece {
                range,
                function: self.start_of_function(index),
                before,
                behind,
            });
        }
    }

    fn start_of_function(&self, index: SiteIndex) -> Option<TextSize> {
        let function = self.sites.function(index);
        function.map(|function| function.range.start())
    }

    fn neighbours(&self, index: SiteIndex) -> (&'a str, &'a str) {
        let range = self.sites.node(index).range();
        let parent = self.sites.site(index).parent;
        let blocks = parent.map(|parent| blocks(self.sites.node(parent)));
        let found = blocks.into_iter().flatten().find_map(|block| {
            let place = block.iter().position(|it| it.range() == range)?;
            Some((block, place))
        });
        let Some((block, place)) = found else {
            return ("", "");
        };
        let text = |at: Option<usize>| {
            let statement = at.and_then(|at| block.get(at));
            statement.map_or("", |statement| self.sites.source().slice(statement))
        };
        (text(place.checked_sub(1)), text(Some(place + 1)))
    }

    fn operands(&mut self, index: SiteIndex, condition: &Expr) {
        match condition {
            Expr::BoolOp(operation) => {
                for value in &operation.values {
                    self.operands(index, value);
                }
            }
            _ => {
                let range = condition.range();
                let is_known = self.conditions.iter().any(|piece| piece.range == range);
                if range.len().to_usize() <= MAX_PIECE && !is_known {
                    self.conditions.push(Piece {
                        range,
                        function: self.start_of_function(index),
                        before: "",
                        behind: "",
                    });
                }
            }
        }
    }

    /// Whether the file binds a name; one that it does not is Python's own.
    pub(super) fn is_bound_somewhere(&self, name: &str) -> bool {
        self.bound.contains(name)
    }

    /// Names that are read within a range.
    pub(super) fn names(&self, range: TextRange) -> impl Iterator<Item = &'a str> + '_ {
        let first = self.loads.partition_point(|(at, _)| *at < range.start());
        let inside = self.loads[first..].iter();
        inside
            .take_while(move |(at, _)| *at < range.end())
            .map(|(_, name)| *name)
    }

    /// Whether every name of a piece has a meaning in `function`.
    pub(super) fn fits(&self, piece: TextRange, function: &Scope<'a>) -> bool {
        let mut visible = self.visible.borrow_mut();
        let visible = visible
            .entry(function.range.start())
            .or_insert_with(|| self.seen_by(function));
        let inner = self.inner_names(piece);
        self.names(piece).all(|name| {
            visible.contains(name) || !self.bound.contains(name) || inner.contains(&name)
        })
    }

    /// What the names of a piece would have to become in `function`, the likeliest first: nothing where all have a
    /// meaning there; `None` of it where too many have none.
    pub(super) fn adapted(
        &self,
        piece: &Piece<'a>,
        function: &Scope<'a>,
        vocabulary: &Vocabulary<'a>,
    ) -> Rc<[Adapted]> {
        let key = (piece.range, function.range.start());
        if let Some(known) = self.adapted.borrow().get(&key) {
            return known.clone();
        }
        let found: Rc<[Adapted]> = self.adapt(piece, function, vocabulary).into();
        self.adapted.borrow_mut().insert(key, found.clone());
        found
    }

    fn adapt(
        &self,
        piece: &Piece<'a>,
        function: &Scope<'a>,
        vocabulary: &Vocabulary<'a>,
    ) -> Vec<Adapted> {
        if self.fits(piece.range, function) {
            return vec![Adapted {
                names: Vec::new(),
                cost: 0.0,
            }];
        }
        let inner = self.inner_names(piece.range);
        let mut strange: Vec<&str> = Vec::new();
        let mut own: Vec<&str> = Vec::new();
        for name in self.names(piece.range) {
            let is_strange = {
                let visible = self.visible.borrow();
                let visible = visible.get(&function.range.start());
                !visible.is_some_and(|visible| visible.contains(name))
            };
            let list = match is_strange && self.bound.contains(name) && !inner.contains(&name) {
                true => &mut strange,
                false => &mut own,
            };
            if !list.contains(&name) {
                list.push(name);
            }
        }
        let home = self.sites.scopes().map(|(_, scope)| scope);
        let mut home = home.filter(|scope| Some(scope.range.start()) == piece.function);
        let (Some(home), 1..=MAX_STRANGE) =
            (home.find(|it| it.function().is_some()), strange.len())
        else {
            return Vec::new();
        };
        let instead = |name: &str| {
            let mut found: Vec<(f64, &str)> = Vec::new();
            for bound in &function.bound {
                let is_value = matches!(bound.by, BoundBy::Parameter | BoundBy::Assignment);
                let is_object = matches!(bound.name, "self" | "cls" | "_");
                let is_known = found.iter().any(|(_, other)| *other == bound.name);
                if !is_value || is_object || is_known || own.contains(&bound.name) {
                    continue;
                }
                let (theirs, ours) = (
                    vocabulary.roles(home, name),
                    vocabulary.roles(function, bound.name),
                );
                let alike = 0.3 * theirs.likeness(&ours).min(3.0) + likeness(name, bound.name);
                found.push((-alike, bound.name));
            }
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            found
        };
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        match strange[..] {
            [one] => {
                let found = instead(one).into_iter().take(2);
                found
                    .map(|(distance, to)| Adapted {
                        names: vec![pair(one, to)],
                        cost: (0.9 + distance).max(0.2),
                    })
                    .collect()
            }
            [one, other] => {
                let (firsts, seconds) = (instead(one), instead(other));
                let Some((near, first)) = firsts.first() else {
                    return Vec::new();
                };
                let second = seconds.iter().find(|(_, second)| second != first);
                let adapted = second.map(|(far, second)| Adapted {
                    names: vec![pair(one, first), pair(other, second)],
                    cost: (1.4 + (near + far) / 2.0).max(0.4),
                });
                adapted.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn seen_by(&self, function: &Scope<'a>) -> FxHashSet<&'a str> {
        let mut names: FxHashSet<&str> = function.bound.iter().map(|it| it.name).collect();
        let mut outer = function.parent;
        while let Some(index) = outer {
            let scope = self.sites.scope(index);
            if !matches!(scope.kind, ScopeKind::Class(_)) {
                names.extend(scope.bound.iter().map(|it| it.name));
            }
            outer = scope.parent;
        }
        names
    }

    /// What comprehensions and lambdas of a piece bind for themselves.
    fn inner_names(&self, piece: TextRange) -> Vec<&'a str> {
        let scopes = self.sites.scopes().map(|(_, scope)| scope);
        let inside = scopes.filter(|scope| piece.contains_range(scope.range));
        inside
            .flat_map(|scope| scope.bound.iter().map(|it| it.name))
            .collect()
    }
}
