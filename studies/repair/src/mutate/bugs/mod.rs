//! The catalogue of bugs: small changes of Python functions as people make them by mistake.
//!
//! What mutation testing calls operators (those of mutmut and cosmic-ray among them), and slips: a wrong variable, a
//! forgotten guard, a statement in the wrong block. Each belongs to a [`Family`]. Whether a change breaks anything is
//! for the tests to say.

mod calls;
mod conditions;
mod names;
mod operators;
mod statements;
mod values;

use std::collections::{BTreeSet, HashMap};

use code::sites::{
    Edit, ScopeKind, Site, SiteIndex, Sites, Source,
    ast::{AnyNodeRef, Stmt},
};
use ruff_text_size::{Ranged, TextRange, TextSize};
use serde::{Deserialize, Serialize};

/// Kinds of bugs, by what somebody got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// `<` for `<=`.
    Boundary,
    /// `<` for `>`, `==` for `!=`, `in` for `not in`.
    Comparison,
    /// 1 too many or too few.
    OffByOne,
    /// `+` for `-`, `//` for `/`.
    Arithmetic,
    /// `b - a` for `a - b`.
    OperandOrder,
    /// `-=` or `=` for `+=`.
    Accumulation,
    /// `or` for `and`.
    Logic,
    /// A `not` that is missing or too many.
    Negation,
    /// One of several conditions, or the only one of a comprehension, is missing.
    ConditionMissing,
    /// A check that returns, raises or goes on early is missing.
    GuardMissing,
    /// One case of several is missing.
    CaseMissing,
    /// The two sides of a decision are swapped.
    BranchOrder,
    /// `continue` for `break`, `if` for `while`.
    LoopControl,
    /// Another local variable than the one that is meant.
    WrongVariable,
    /// Another attribute of `self` than the one that is meant.
    WrongAttribute,
    /// `min` for `max`, `lstrip` for `rstrip`.
    WrongFunction,
    /// Two arguments are swapped.
    ArgumentOrder,
    /// An argument is not handed on.
    ArgumentMissing,
    /// A default of a parameter.
    DefaultValue,
    /// `True` for `False`.
    Flag,
    /// A string that is a little other.
    Text,
    /// `x[1:]` as `x[:]`, `x[0]` as `x[-1]`.
    Slice,
    /// `list(x)`, `str(x)`, `x.copy()` as `x`.
    ConversionMissing,
    /// A statement is missing.
    StatementMissing,
    /// Two statements are in the wrong order.
    StatementOrder,
    /// A statement is one block too deep or not deep enough.
    WrongBlock,
    /// A forgotten `return`, a pair the wrong way round, `yield` for `yield from`.
    Result,
    /// Another exception is raised or caught.
    Exception,
}

impl Family {
    /// As in files and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boundary => "boundary",
            Self::Comparison => "comparison",
            Self::OffByOne => "off_by_one",
            Self::Arithmetic => "arithmetic",
            Self::OperandOrder => "operand_order",
            Self::Accumulation => "accumulation",
            Self::Logic => "logic",
            Self::Negation => "negation",
            Self::ConditionMissing => "condition_missing",
            Self::GuardMissing => "guard_missing",
            Self::CaseMissing => "case_missing",
            Self::BranchOrder => "branch_order",
            Self::LoopControl => "loop_control",
            Self::WrongVariable => "wrong_variable",
            Self::WrongAttribute => "wrong_attribute",
            Self::WrongFunction => "wrong_function",
            Self::ArgumentOrder => "argument_order",
            Self::ArgumentMissing => "argument_missing",
            Self::DefaultValue => "default_value",
            Self::Flag => "flag",
            Self::Text => "text",
            Self::Slice => "slice",
            Self::ConversionMissing => "conversion_missing",
            Self::StatementMissing => "statement_missing",
            Self::StatementOrder => "statement_order",
            Self::WrongBlock => "wrong_block",
            Self::Result => "result",
            Self::Exception => "exception",
        }
    }
}

/// A bug that can be planted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    pub family: Family,
    pub edit: Edit,
    /// `Class.method`: the function that is wrong then.
    pub function: String,
    /// First and last line, from 1, of which one must run for the bug to matter.
    pub lines: (u32, u32),
}

/// Every bug of the catalogue that fits a source, in the order of its text. What each makes still is Python.
pub fn bugs(source: &Source) -> Vec<Bug> {
    let sites = Sites::of(source);
    let functions = sites
        .scopes()
        .filter_map(|(_, scope)| match scope.kind {
            ScopeKind::Function(_) => Some((scope.range.start(), &*scope.qualified_name)),
            _ => None,
        })
        .collect();
    let mut catalogue = Catalogue {
        source,
        sites: &sites,
        functions,
        bugs: Vec::new(),
    };
    for (index, site) in sites.iter() {
        if site.in_annotation || site.is_docstring {
            continue;
        }
        if let AnyNodeRef::StmtFunctionDef(function) = site.node {
            catalogue.defaults(function);
        }
        if let Some(function) = sites.function(index) {
            let place = Place {
                index,
                site,
                function: &function.qualified_name,
                lines: catalogue.reached(site),
            };
            catalogue.visit(&place);
        }
    }
    let mut seen = BTreeSet::new();
    let mut bugs = catalogue.bugs;
    bugs.retain(|bug| {
        let same = source.text()[bug.edit.start..bug.edit.end] == bug.edit.replacement;
        !same && seen.insert(bug.edit.clone()) && bug.edit.parses(source)
    });
    bugs.sort_by(|a, b| a.edit.cmp(&b.edit));
    bugs
}

struct Catalogue<'s, 'a> {
    source: &'a Source,
    sites: &'s Sites<'a>,
    /// Names by where definitions begin.
    functions: HashMap<TextSize, &'s str>,
    bugs: Vec<Bug>,
}

/// A node inside of a function.
struct Place<'s, 'a> {
    index: SiteIndex,
    site: &'s Site<'a>,
    function: &'s str,
    /// See [`Bug::lines`].
    lines: (u32, u32),
}

impl<'a> Catalogue<'_, 'a> {
    fn visit(&mut self, place: &Place<'_, 'a>) {
        match place.site.node {
            AnyNodeRef::ExprCompare(node) => self.comparison(place, node),
            AnyNodeRef::ExprBinOp(node) => self.binary(place, node),
            AnyNodeRef::StmtAugAssign(node) => self.accumulation(place, node),
            AnyNodeRef::ExprBoolOp(node) => self.logic(place, node),
            AnyNodeRef::ExprUnaryOp(node) => self.unary(place, node),
            AnyNodeRef::ExprIf(node) => self.conditional(place, node),
            AnyNodeRef::Comprehension(node) => self.comprehension(place, node),
            AnyNodeRef::StmtIf(node) => self.decision(place, node),
            AnyNodeRef::StmtWhile(node) => self.repetition(place, node),
            AnyNodeRef::ExprNumberLiteral(node) => self.number(place, node),
            AnyNodeRef::ExprBooleanLiteral(node) => self.flag(place, node),
            AnyNodeRef::ExprStringLiteral(node) => self.text(place, node),
            AnyNodeRef::ExprSubscript(node) => self.subscript(place, node),
            AnyNodeRef::ExprName(node) => self.variable(place, node),
            AnyNodeRef::ExprAttribute(node) => self.attribute(place, node),
            AnyNodeRef::ExprCall(node) => self.call(place, node),
            AnyNodeRef::ExprYieldFrom(node) => self.yield_from(place, node),
            AnyNodeRef::StmtReturn(node) => self.result(place, node),
            AnyNodeRef::StmtRaise(node) => self.raised(place, node),
            AnyNodeRef::ExceptHandlerExceptHandler(node) => self.caught(place, node),
            _ => {}
        }
        if place.site.node.is_statement() {
            self.statement(place);
        }
    }

    /// Lines of the statement that a node is in; of one with blocks, its head.
    fn reached(&self, site: &Site<'a>) -> (u32, u32) {
        let statement = self.sites.node(site.statement);
        let (first, last) = self.source.lines(statement);
        let body = match statement {
            AnyNodeRef::StmtFunctionDef(node) => &node.body[..],
            AnyNodeRef::StmtFor(node) => &node.body,
            AnyNodeRef::StmtWhile(node) => &node.body,
            AnyNodeRef::StmtWith(node) => &node.body,
            AnyNodeRef::StmtTry(node) => &node.body,
            AnyNodeRef::StmtIf(node) => {
                // A later condition stands on a line of its own.
                let at = self.source.line(site.node.start());
                return match node.body.first() {
                    Some(inner) if at < self.source.line(inner.start()) || at == first => {
                        (first, self.source.line(inner.start()).max(first + 1) - 1)
                    }
                    _ => (at, at),
                };
            }
            _ => return (first, last),
        };
        let inner = body.first().map_or(last, |inner| {
            self.source.line(inner.start()).max(first + 1) - 1
        });
        (first, inner)
    }

    fn add(
        &mut self,
        place: &Place<'_, 'a>,
        family: Family,
        at: impl Ranged,
        replacement: impl Into<String>,
    ) {
        let edit = Edit::replace(at, replacement);
        self.add_edit(place, family, edit);
    }

    fn add_edit(&mut self, place: &Place<'_, 'a>, family: Family, edit: Edit) {
        self.bugs.push(Bug {
            family,
            edit,
            function: place.function.to_owned(),
            lines: place.lines,
        });
    }

    fn slice(&self, at: impl Ranged) -> &'a str {
        self.source.slice(at)
    }

    /// Swaps the texts of two ranges, the first before the second.
    fn add_swap(
        &mut self,
        place: &Place<'_, 'a>,
        family: Family,
        first: TextRange,
        second: TextRange,
    ) {
        let between = self.slice(TextRange::new(first.end(), second.start()));
        let swapped = [self.slice(second), between, self.slice(first)].concat();
        let whole = TextRange::new(first.start(), second.end());
        self.add(place, family, whole, swapped);
    }

    /// A node among others of `within`, with brackets of its own.
    fn bracketed(&self, node: impl Ranged, within: impl Ranged) -> TextRange {
        self.source.with_brackets(node, within.range())
    }

    /// The block that a statement stands in, and which of it it is.
    fn block(&self, place: &Place<'_, 'a>) -> Option<(&'a [Stmt], usize)> {
        let parent = self.sites.node(place.site.parent?);
        let blocks: Vec<&'a [Stmt]> = match parent {
            AnyNodeRef::StmtFunctionDef(node) => vec![&node.body],
            AnyNodeRef::StmtFor(node) => vec![&node.body, &node.orelse],
            AnyNodeRef::StmtWhile(node) => vec![&node.body, &node.orelse],
            AnyNodeRef::StmtIf(node) => vec![&node.body],
            AnyNodeRef::ElifElseClause(node) => vec![&node.body],
            AnyNodeRef::StmtWith(node) => vec![&node.body],
            AnyNodeRef::StmtTry(node) => vec![&node.body, &node.orelse, &node.finalbody],
            AnyNodeRef::ExceptHandlerExceptHandler(node) => vec![&node.body],
            AnyNodeRef::MatchCase(node) => vec![&node.body],
            _ => return None,
        };
        let range = place.site.node.range();
        blocks.into_iter().find_map(|block| {
            let at = block
                .iter()
                .position(|statement| statement.range() == range)?;
            Some((block, at))
        })
    }

    /// The whole lines of a node, when nothing else but a comment stands on them.
    fn own_lines(&self, node: impl Ranged) -> Option<(u32, u32)> {
        let range = node.range();
        let (first, last) = self.source.lines(range);
        let lines = self.source.line_span(first, last);
        let text = self.source.text();
        let before = &text[lines.start..range.start().to_usize()];
        let after = text[range.end().to_usize()..lines.end].trim();
        (before.trim().is_empty() && (after.is_empty() || after.starts_with('#')))
            .then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each bug of a family makes of a text, where it differs.
    pub(super) fn made(text: &str, family: Family) -> Vec<String> {
        let source = Source::parse(text).unwrap();
        let bugs = bugs(&source).into_iter().filter(|bug| bug.family == family);
        bugs.map(|bug| bug.edit.apply(text)).collect()
    }

    fn assert_makes(body: &str, family: Family, expected: &[&str]) {
        let whole = |body: &str| {
            let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
            format!("def f(a, b, xs, *, key=None):\n{}", lines.concat())
        };
        let mut expected: Vec<String> = expected.iter().map(|body| whole(body)).collect();
        let mut made = made(&whole(body), family);
        expected.sort();
        made.sort();
        assert_eq!(made, expected, "{body}");
    }

    #[test]
    fn operators() {
        use Family::*;
        assert_makes("return a < b", Boundary, &["return a <= b"]);
        assert_makes("return a < b", Comparison, &["return a > b"]);
        assert_makes("return (a) is not b", Comparison, &["return (a) is b"]);
        assert_makes("return a - (b)", Arithmetic, &["return a + (b)"]);
        assert_makes("return a - (b)", OperandOrder, &["return (b) - a"]);
        assert_makes("return 'x' + a", Arithmetic, &[]);
        assert_makes("return '%s' % a", Arithmetic, &[]);
        assert_makes("a += b", Accumulation, &["a = b", "a -= b"]);
        assert_makes("return a and b", Logic, &["return a or b"]);
        assert_makes(
            "return a and (b)",
            ConditionMissing,
            &["return (b)", "return a"],
        );
        assert_makes("return not a", Negation, &["return a"]);
        assert_makes(
            "if a:\n    return b",
            Negation,
            &["if not a:\n    return b"],
        );
    }

    #[test]
    fn values_and_names() {
        use Family::*;
        assert_makes("return xs[1]", OffByOne, &["return xs[0]", "return xs[2]"]);
        assert_makes(
            "return a + 1",
            OffByOne,
            &["return a", "return a + 0", "return a + 2"],
        );
        assert_makes("return xs[0]", Slice, &["return xs[-1]"]);
        assert_makes(
            "return xs[a:-1]",
            Slice,
            &["return xs[:-1]", "return xs[a:]"],
        );
        assert_makes("return True", Flag, &["return False"]);
        assert_makes("return 'name'", Text, &["return 'nam'"]);
        assert_makes("raise ValueError('name')", Text, &[]);
        assert_makes("return key", WrongVariable, &["return xs", "return b"]);
        assert_makes(
            "return f(b)",
            WrongVariable,
            &["return f(a)", "return f(xs)"],
        );
        let class = "class C:\n    def __init__(self):\n        self.a = 0\n        self.b = 0\n\n\
            \x20   def g(self, n=3):\n        return self.b\n";
        let a = class.replace("return self.b", "return self.a");
        assert_eq!(made(class, WrongAttribute), [a]);
        let two = class.replace("n=3", "n=2");
        let four = class.replace("n=3", "n=4");
        assert_eq!(made(class, DefaultValue), [two, four]);
    }

    #[test]
    fn calls_and_results() {
        use Family::*;
        assert_makes("return min(xs)", WrongFunction, &["return max(xs)"]);
        assert_makes("return a.lstrip()", WrongFunction, &["return a.rstrip()"]);
        assert_makes("return f(a, (b))", ArgumentOrder, &["return f((b), a)"]);
        assert_makes(
            "return f(a, b, key=key)",
            ArgumentMissing,
            &["return f(a, key=key)", "return f(a, b)"],
        );
        assert_makes("return list(xs)", ConversionMissing, &["return xs"]);
        assert_makes("return xs.copy()", ConversionMissing, &["return xs"]);
        assert_makes("return a, b", Result, &["a, b", "return b, a"]);
        assert_makes("yield from xs", Result, &["yield xs"]);
        assert_makes("raise KeyError(a)", Exception, &["raise IndexError(a)"]);
    }

    #[test]
    fn statements_and_blocks() {
        use Family::*;
        assert_makes(
            "if not xs:\n    return a\nreturn b",
            GuardMissing,
            &["return b"],
        );
        assert_makes(
            "if a:\n    b()\nelif b:\n    a()\nelse:\n    xs()",
            CaseMissing,
            &["if a:\n    b()\nelse:\n    xs()"],
        );
        assert_makes(
            "if a:\n    b()\nelse:\n    xs()",
            BranchOrder,
            &["if a:\n    xs()\nelse:\n    b()"],
        );
        assert_makes(
            "return a if key else b",
            BranchOrder,
            &["return b if key else a"],
        );
        assert_makes(
            "for x in xs:\n    break",
            LoopControl,
            &["for x in xs:\n    continue"],
        );
        assert_makes(
            "xs.append(a)  # why\nreturn xs",
            StatementMissing,
            &["return xs"],
        );
        assert_makes(
            "if a:\n    xs.append(a)\nreturn xs",
            StatementMissing,
            &["if a:\n    pass\nreturn xs"],
        );
        assert_makes(
            "a = b\nb = a + key\nreturn a",
            StatementOrder,
            &["b = a + key\na = b\nreturn a"],
        );
        assert_makes(
            "for x in xs:\n    a = x\n    b.add(a)\nreturn b",
            WrongBlock,
            &[
                "for x in xs:\n    a = x\nb.add(a)\nreturn b",
                "for x in xs:\n    a = x\n    b.add(a)\n    return b",
            ],
        );
        assert_makes(
            "return [x for x in xs if x]",
            ConditionMissing,
            &["return [x for x in xs]"],
        );
    }

    #[test]
    fn lines_tell_what_must_run() {
        let text = "def f(a,\n      b=1):\n    if (a and\n            b):\n        return 1\n    elif b > a:\n        return (2,\n                3)\n";
        let source = Source::parse(text).unwrap();
        let bugs = bugs(&source);
        let lines = |family| {
            let found = bugs.iter().filter(|bug| bug.family == family);
            found.map(|bug| bug.lines).collect::<Vec<_>>()
        };
        assert_eq!(lines(Family::Logic), [(3, 4)]);
        assert_eq!(lines(Family::Comparison), [(6, 6)]);
        assert_eq!(lines(Family::DefaultValue), [(3, 8), (3, 8)]);
        assert_eq!(lines(Family::OffByOne)[2], (7, 8));
    }
}
