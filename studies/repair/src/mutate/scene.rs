//! What stands in the sources where a test fails: the statement, what it calls, and the whole test.

use std::collections::BTreeSet;

use code::{
    RelativePath,
    sites::{
        Sites, Source,
        ast::{AnyNodeRef, Expr},
    },
};

use crate::workplace::Frame;

/// Longer statements are not quoted.
const STATEMENT_LINES: u32 = 8;
/// Lines of a test that are shown.
const TEST_LINES: u32 = 30;

/// Where a test fails.
#[derive(Default)]
pub(super) struct Scene {
    /// What is called there.
    pub(super) subject: Option<String>,
    pub(super) statement: Option<String>,
    /// Whether the statement is what says that something is wrong, and not only on the way to it.
    pub(super) is_check: bool,
    /// Whether the statement says that an exception is to come.
    pub(super) must_raise: bool,
    /// The whole test.
    pub(super) test: Option<String>,
    /// `path:line`, as deep as the failure is in the repository.
    pub(super) frame: Option<String>,
}

/// What a statement is of what fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// It raises what was found out before it.
    Raise,
    /// It gives back what somebody asked for.
    Return,
}

impl Scene {
    /// Takes in what stands at a frame of a test.
    pub(super) fn look(
        &mut self,
        frame: &Frame,
        names: &BTreeSet<String>,
        read: &impl Fn(&RelativePath) -> Option<String>,
    ) -> Part {
        let text = RelativePath::new(frame.path.as_str())
            .ok()
            .and_then(|path| read(&path));
        let Some(Ok(source)) = text.map(Source::parse) else {
            return Part::Whole;
        };
        let sites = Sites::of(&source);
        let on_line = |node: AnyNodeRef<'_>| {
            let (first, last) = source.lines(node);
            (first..=last).contains(&frame.line)
        };
        // The innermost is the last of those around a line.
        let statement = sites
            .iter()
            .filter(|(_, site)| site.node.is_statement() && on_line(site.node))
            .last();
        let Some((index, site)) = statement else {
            return Part::Whole;
        };
        // What must raise is told with what says so.
        let expects = |node: AnyNodeRef<'_>| match node {
            AnyNodeRef::StmtWith(with) => with.items.iter().any(|item| {
                let text = source.slice(&item.context_expr);
                text.contains("assertRaises") || text.contains("raises(")
            }),
            _ => false,
        };
        let around = std::iter::once(index).chain(sites.ancestors(index));
        let expectation = around
            .map(|index| sites.node(index))
            .find(|node| expects(*node));
        let node = expectation.unwrap_or(site.node);
        let (first, last) = source.lines(node);
        let is_block = expectation.is_none() && has_blocks(node);
        let part = match node {
            AnyNodeRef::StmtRaise(_) => Part::Raise,
            AnyNodeRef::StmtReturn(_) => Part::Return,
            _ => Part::Whole,
        };
        if !is_block && part != Part::Raise && last - first < STATEMENT_LINES {
            self.statement = Some(dedented(&source, first, last));
            self.must_raise = expectation.is_some();
            self.is_check = expectation.is_some() || is_check(node);
        }
        let test = sites.function(index).and_then(|scope| scope.function());
        if let Some(function) = test {
            let (first, last) = source.lines(function);
            let end = last.min(first + TEST_LINES);
            let rest = if end < last { "\n    …" } else { "" };
            self.test = Some(dedented(&source, first, end) + rest);
        }
        // Of a test, what it calls last; a class only where it calls nothing else.
        let begin = test.map_or(first, |function| source.lines(function).0);
        let mut subjects: Vec<(bool, bool, &str)> = Vec::new();
        for (_, site) in sites.iter() {
            let AnyNodeRef::ExprCall(call) = site.node else {
                continue;
            };
            let name = match &*call.func {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => continue,
            };
            let line = source.lines(site.node).0;
            let is_own =
                names.contains(name) && !name.starts_with(['_']) && !name.starts_with("assert");
            if is_own && (begin..=last.max(frame.line)).contains(&line) {
                let is_function = !name.starts_with(char::is_uppercase);
                subjects.push((is_function, line >= first, name));
            }
        }
        let best = subjects
            .iter()
            .map(|(function, here, _)| (*function, *here))
            .max();
        let mut of_best = subjects
            .iter()
            .filter(|(function, here, _)| Some((*function, *here)) == best);
        let chosen = match best {
            // In the statement itself the outermost call comes first.
            Some((_, true)) => of_best.next(),
            _ => of_best.next_back(),
        };
        // A helper's is nearer to what fails.
        if let (None, Some((_, _, name))) = (&self.subject, chosen) {
            self.subject = Some((*name).to_owned());
        }
        part
    }
}

/// `assert …`, `self.assertEqual(…)`, `self.fail(…)`.
fn is_check(node: AnyNodeRef<'_>) -> bool {
    let AnyNodeRef::StmtExpr(statement) = node else {
        return matches!(node, AnyNodeRef::StmtAssert(_));
    };
    let Expr::Call(call) = &*statement.value else {
        return false;
    };
    let name = match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    ["assert", "fail"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

fn has_blocks(node: AnyNodeRef<'_>) -> bool {
    matches!(
        node,
        AnyNodeRef::StmtFor(_)
            | AnyNodeRef::StmtWith(_)
            | AnyNodeRef::StmtIf(_)
            | AnyNodeRef::StmtWhile(_)
            | AnyNodeRef::StmtTry(_)
            | AnyNodeRef::StmtFunctionDef(_)
            | AnyNodeRef::StmtClassDef(_)
    )
}

/// Lines of a source without the blanks that all begin with.
fn dedented(source: &Source, first: u32, last: u32) -> String {
    let text = &source.text()[source.line_span(first, last)];
    let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    let common = filled.map(blanks).min().unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| line.get(common..).unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}
