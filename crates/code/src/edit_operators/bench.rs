//! What every operator works with: the sites, what the file is made of, and the edits found so far.

use ruff_python_ast::{AnyNodeRef, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

use rustc_hash::FxHashMap;

use super::{
    Candidate, Family, Hints, ingredients::Ingredients, neglected::Neglected, repeated,
    siblings::Siblings, vocabulary::Vocabulary,
};
use crate::sites::{Edit, Scope, SiteIndex, Sites, Source};

pub(super) struct Bench<'s, 'a> {
    pub(super) sites: &'s Sites<'a>,
    pub(super) source: &'a Source,
    pub(super) vocabulary: Vocabulary<'a>,
    pub(super) ingredients: Ingredients<'s, 'a>,
    pub(super) siblings: Siblings<'a>,
    /// By where functions begin.
    neglected: FxHashMap<TextSize, Neglected<'a>>,
    pub(super) hints: &'s Hints,
    weight: &'s dyn Fn(u32) -> f64,
    found: Vec<Candidate>,
}

impl<'s, 'a> Bench<'s, 'a> {
    pub(super) fn new(
        sites: &'s Sites<'a>,
        weight: &'s dyn Fn(u32) -> f64,
        hints: &'s Hints,
    ) -> Self {
        Self {
            sites,
            source: sites.source(),
            vocabulary: Vocabulary::of(sites),
            ingredients: Ingredients::of(sites),
            siblings: Siblings::of(sites),
            neglected: FxHashMap::default(),
            hints,
            weight,
            found: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Vec<Candidate> {
        self.found
    }

    pub(super) fn node(&self, index: SiteIndex) -> AnyNodeRef<'a> {
        self.sites.node(index)
    }

    pub(super) fn text(&self, ranged: impl Ranged) -> &'a str {
        self.source.slice(ranged)
    }

    pub(super) fn parent(&self, index: SiteIndex) -> Option<AnyNodeRef<'a>> {
        let parent = self.sites.site(index).parent?;
        Some(self.sites.node(parent))
    }

    /// The function around a node, lambdas and comprehensions apart.
    pub(super) fn function(&self, index: SiteIndex) -> Option<&'s Scope<'a>> {
        self.sites.function(index)
    }

    /// What a function makes no use of.
    pub(super) fn neglected(&mut self, function: &Scope<'a>) -> Neglected<'a> {
        let known = self.neglected.entry(function.range.start());
        let found = known.or_insert_with(|| Neglected::of(&self.ingredients, function));
        found.clone()
    }

    /// The lines of a statement, without the indentation that they have in common.
    pub(super) fn lines_of(&self, statement: TextRange) -> Vec<String> {
        let own = self.source.indentation(statement.start());
        let lines = self.text(statement).lines();
        lines
            .map(|line| line.strip_prefix(own).unwrap_or(line).to_owned())
            .collect()
    }

    pub(super) fn is_wanted(&self, index: SiteIndex) -> bool {
        let site = self.sites.site(index);
        !site.in_annotation && !site.is_docstring && self.weight_of(index) > 0.0
    }

    /// The weight of the lines of the statement or the clause that a node is in, without its blocks.
    fn weight_of(&self, index: SiteIndex) -> f64 {
        let node = self.node(self.clause(index));
        let (first, last) = self.source.lines(own_range(node));
        (first..=last).map(self.weight).fold(0.0, f64::max)
    }

    /// The innermost statement, `elif`, `except` or `case` that a node is in.
    fn clause(&self, index: SiteIndex) -> SiteIndex {
        let is_clause = |node: AnyNodeRef<'_>| {
            node.is_statement()
                || matches!(
                    node,
                    AnyNodeRef::ElifElseClause(_)
                        | AnyNodeRef::ExceptHandlerExceptHandler(_)
                        | AnyNodeRef::MatchCase(_)
                )
        };
        std::iter::once(index)
            .chain(self.sites.ancestors(index))
            .find(|around| is_clause(self.node(*around)))
            .unwrap_or(index)
    }

    /// Notes an edit because of the node `at`.
    pub(super) fn push(&mut self, family: Family, cost: f64, at: SiteIndex, edit: Edit) {
        let old = &self.source.text()[edit.start..edit.end];
        if old == edit.replacement {
            return;
        }
        let clause = self.clause(at);
        let Some(surcharge) = repeated::surcharge(self, clause, &edit) else {
            return;
        };
        self.found.push(Candidate {
            family,
            line: self.source.line(self.node(clause).start()),
            weight: self.weight_of(at),
            cost: cost + surcharge,
            edit,
        });
    }

    /// Replaces the expression `at` by a text that binds as closely as a name or a call.
    pub(super) fn replace(&mut self, family: Family, cost: f64, at: SiteIndex, text: &str) {
        let edit = Edit::replace(self.node(at), text);
        self.push(family, cost, at, edit);
    }

    /// Replaces the expression `at` by one that may need brackets where it stands.
    pub(super) fn replace_loose(&mut self, family: Family, cost: f64, at: SiteIndex, text: &str) {
        if self.needs_brackets(at, text) {
            self.replace(family, cost, at, &format!("({text})"));
        } else {
            self.replace(family, cost, at, text);
        }
    }

    /// Whether `text` with operators in place of the expression `at` would bind with what stands around it.
    pub(super) fn needs_brackets(&self, at: SiteIndex, text: &str) -> bool {
        let range = self.node(at).range();
        if text
            .chars()
            .all(|letter| letter.is_alphanumeric() || "_.".contains(letter))
        {
            return false;
        }
        if self.has_brackets(range) {
            return false;
        }
        match self.parent(at) {
            Some(AnyNodeRef::ExprSubscript(parent)) => parent.value.range() == range,
            Some(AnyNodeRef::ExprCall(parent)) => parent.func.range() == range,
            Some(
                AnyNodeRef::ExprBinOp(_)
                | AnyNodeRef::ExprBoolOp(_)
                | AnyNodeRef::ExprUnaryOp(_)
                | AnyNodeRef::ExprCompare(_)
                | AnyNodeRef::ExprAttribute(_)
                | AnyNodeRef::ExprAwait(_)
                | AnyNodeRef::ExprStarred(_)
                | AnyNodeRef::ExprIf(_),
            ) => true,
            Some(AnyNodeRef::Comprehension(_)) => text.contains(" if ") || text.contains("lambda"),
            _ => false,
        }
    }

    /// Whether brackets of its own stand around an expression.
    fn has_brackets(&self, range: TextRange) -> bool {
        let text = self.source.text();
        let before = text[..range.start().to_usize()].trim_end();
        let after = text[range.end().to_usize()..].trim_start();
        let is_call = before.strip_suffix('(').is_some_and(|before| {
            before.ends_with(|letter: char| letter.is_alphanumeric() || "_])".contains(letter))
        });
        before.ends_with('(') && after.starts_with(')') && !is_call
    }

    /// The text of an operand, in brackets unless it binds closer than any operator.
    pub(super) fn operand(&self, expression: &Expr) -> String {
        let text = self.text(expression);
        if is_close(expression) {
            text.to_owned()
        } else {
            format!("({text})")
        }
    }

    /// The list of statements that the statement `at` stands in, and its place there.
    pub(super) fn block(&self, at: SiteIndex) -> Option<(&'a [Stmt], usize)> {
        let range = self.node(at).range();
        let found = |body: &'a [Stmt]| {
            let place = body
                .iter()
                .position(|statement| statement.range() == range)?;
            Some((body, place))
        };
        let Some(parent) = self.sites.site(at).parent else {
            return found(&self.source.syntax().body);
        };
        blocks(self.node(parent)).into_iter().find_map(found)
    }

    /// The whole lines of a statement that shares them with no other; `None` when it does.
    pub(super) fn whole_lines(&self, statement: impl Ranged) -> Option<std::ops::Range<usize>> {
        let range = statement.range();
        let (first, last) = self.source.lines(range);
        let span = self.source.line_span(first, last);
        let text = self.source.text();
        let before = &text[span.start..range.start().to_usize()];
        let after = text[range.end().to_usize()..span.end].trim();
        let alone = before.trim().is_empty() && (after.is_empty() || after.starts_with('#'));
        alone.then_some(span)
    }

    /// An insertion of lines before a statement that begins its line.
    pub(super) fn before(&self, statement: impl Ranged, lines: &[String]) -> Option<Edit> {
        let span = self.whole_lines(&statement)?;
        let at = TextSize::try_from(span.start).ok()?;
        Some(Edit::insert(at, self.indented(statement, lines)))
    }

    /// An insertion of lines after a statement.
    pub(super) fn after(&self, statement: impl Ranged, lines: &[String]) -> Option<Edit> {
        let span = self.whole_lines(&statement)?;
        let at = TextSize::try_from(span.end).ok()?;
        let text = self.indented(statement, lines);
        if self.source.text()[..span.end].ends_with('\n') {
            Some(Edit::insert(at, text))
        } else {
            Some(Edit::insert(at, format!("\n{}", text.trim_end())))
        }
    }

    fn indented(&self, statement: impl Ranged, lines: &[String]) -> String {
        let indentation = self.source.indentation(statement.start());
        let lines = lines.iter().map(|line| format!("{indentation}{line}\n"));
        lines.collect()
    }
}

/// The blocks of a statement.
pub(super) fn blocks<'a>(node: AnyNodeRef<'a>) -> Vec<&'a [Stmt]> {
    match node {
        AnyNodeRef::ModModule(node) => vec![&node.body],
        AnyNodeRef::StmtFunctionDef(node) => vec![&node.body],
        AnyNodeRef::StmtClassDef(node) => vec![&node.body],
        AnyNodeRef::StmtFor(node) => vec![&node.body, &node.orelse],
        AnyNodeRef::StmtWhile(node) => vec![&node.body, &node.orelse],
        AnyNodeRef::StmtIf(node) => vec![&node.body],
        AnyNodeRef::ElifElseClause(node) => vec![&node.body],
        AnyNodeRef::StmtWith(node) => vec![&node.body],
        AnyNodeRef::StmtTry(node) => vec![&node.body, &node.orelse, &node.finalbody],
        AnyNodeRef::ExceptHandlerExceptHandler(node) => vec![&node.body],
        AnyNodeRef::MatchCase(node) => vec![&node.body],
        _ => Vec::new(),
    }
}

/// A statement without its blocks.
pub(super) fn own_range(node: AnyNodeRef<'_>) -> TextRange {
    let blocks = blocks(node);
    let first = blocks.iter().filter_map(|block| block.first()).next();
    let body = first.map(Ranged::start);
    let end = match body {
        Some(body) if body > node.start() => body - TextSize::from(1),
        _ => node.end(),
    };
    TextRange::new(node.start(), end.max(node.start()))
}

/// Whether an expression binds closer than any operator.
pub(super) fn is_close(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Name(_)
            | Expr::Attribute(_)
            | Expr::Call(_)
            | Expr::Subscript(_)
            | Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::List(_)
            | Expr::Set(_)
            | Expr::Dict(_)
            | Expr::ListComp(_)
            | Expr::SetComp(_)
            | Expr::DictComp(_)
            | Expr::FString(_)
    )
}
