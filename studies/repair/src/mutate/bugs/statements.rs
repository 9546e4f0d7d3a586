//! Statements: missing, in the wrong order or block, with the wrong outcome.

use code::sites::{
    Edit,
    ast::{
        AnyNodeRef, ExceptHandlerExceptHandler, Expr, ExprYieldFrom, Stmt, StmtRaise, StmtReturn,
    },
};
use ruff_text_size::{Ranged, TextSize};

use super::{Catalogue, Family, Place};

impl<'a> Catalogue<'_, 'a> {
    pub(super) fn statement(&mut self, place: &Place<'_, 'a>) {
        match place.site.node {
            AnyNodeRef::StmtBreak(node) => {
                self.add(place, Family::LoopControl, node, "continue");
            }
            AnyNodeRef::StmtContinue(node) => {
                self.add(place, Family::LoopControl, node, "break");
            }
            AnyNodeRef::StmtExpr(node) if does_something(&node.value) => {
                self.removed(place, Family::StatementMissing);
            }
            AnyNodeRef::StmtAugAssign(_) | AnyNodeRef::StmtDelete(_) => {
                self.removed(place, Family::StatementMissing);
            }
            AnyNodeRef::StmtAssign(node) => {
                let elsewhere = |target: &Expr| match target {
                    Expr::Name(name) => self.bound_before(place, name.id.as_str(), node.start()),
                    Expr::Attribute(_) | Expr::Subscript(_) => true,
                    _ => false,
                };
                if node.targets.iter().all(elsewhere) {
                    self.removed(place, Family::StatementMissing);
                }
            }
            _ => {}
        }
        self.order(place);
        self.wrong_block(place);
    }

    /// Removes the statement with its lines, or leaves `pass` where it was the only one.
    pub(super) fn removed(&mut self, place: &Place<'_, 'a>, family: Family) {
        let node = place.site.node;
        let (Some((first, last)), Some((block, _))) = (self.own_lines(node), self.block(place))
        else {
            return;
        };
        match block {
            [_] => self.add(place, family, node, "pass"),
            _ => {
                let edit = Edit::replace_span(self.source.line_span(first, last), "");
                self.add_edit(place, family, edit);
            }
        }
    }

    /// Whether the function binds a name before `at`, so that it has a value without what stands there.
    fn bound_before(&self, place: &Place<'_, 'a>, name: &str, at: TextSize) -> bool {
        let Some(function) = self.sites.function(place.index) else {
            return false;
        };
        let mut bound = function.bound.iter();
        bound.any(|bound| bound.name == name && bound.at.start() < at)
    }

    /// Swaps the statement with the next where one uses what the other sets.
    fn order(&mut self, place: &Place<'_, 'a>) {
        let Some((block, at)) = self.block(place) else {
            return;
        };
        let (first, Some(second)) = (&block[at], block.get(at + 1)) else {
            return;
        };
        if !is_simple(first) || !is_simple(second) {
            return;
        }
        let (Some(_), Some(_)) = (self.own_lines(first), self.own_lines(second)) else {
            return;
        };
        let uses = |user: &Stmt, setter: &Stmt| {
            let set = self.set_by(setter);
            set.iter().any(|name| has_word(self.slice(user), name))
        };
        if uses(first, second) || uses(second, first) {
            self.add_swap(place, Family::StatementOrder, first.range(), second.range());
        }
    }

    /// What a simple statement changes.
    fn set_by(&self, statement: &Stmt) -> Vec<&'a str> {
        let text = |expression: &Expr| match expression {
            Expr::Tuple(tuple) => tuple.elts.iter().map(|part| self.slice(part)).collect(),
            other => vec![self.slice(other)],
        };
        match statement {
            Stmt::Assign(node) => node.targets.iter().flat_map(text).collect(),
            Stmt::AugAssign(node) => text(&node.target),
            Stmt::Expr(node) => match &*node.value {
                Expr::Call(call) => match &*call.func {
                    Expr::Attribute(method) => vec![self.slice(&*method.value)],
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Moves a statement of one line out of the loop or decision that it ends, or into the loop before it.
    fn wrong_block(&mut self, place: &Place<'_, 'a>) {
        let (Some((block, at)), Some((first, last))) =
            (self.block(place), self.own_lines(place.site.node))
        else {
            return;
        };
        let statement = &block[at];
        if first != last || !is_simple(statement) && !statement.is_return_stmt() {
            return;
        }
        let own = self.source.indentation(statement.start());
        let span = self.source.line_span(first, last);
        let line = &self.source.text()[span.clone()];
        let parent = place.site.parent.map(|parent| self.sites.node(parent));
        let ends_block = at + 1 == block.len() && block.len() > 1;
        if ends_block
            && let Some(outer @ (AnyNodeRef::StmtFor(_) | AnyNodeRef::StmtWhile(_))) = parent
            && outer.end() == statement.end()
        {
            let outer = self.source.indentation(outer.start());
            let moved = format!("{outer}{}", line.trim_start());
            self.add_edit(
                place,
                Family::WrongBlock,
                Edit::replace_span(span.clone(), moved),
            );
        }
        let before = at.checked_sub(1).map(|before| &block[before]);
        let inner = match before {
            Some(Stmt::For(node)) if node.orelse.is_empty() => node.body.last(),
            Some(Stmt::While(node)) if node.orelse.is_empty() => node.body.last(),
            Some(Stmt::If(node)) if node.elif_else_clauses.is_empty() => node.body.last(),
            _ => None,
        };
        if let Some(inner) = inner
            && self.own_lines(inner).is_some()
        {
            let deeper = self.source.indentation(inner.start());
            if deeper.len() > own.len() {
                let moved = format!("{deeper}{}", line.trim_start());
                self.add_edit(place, Family::WrongBlock, Edit::replace_span(span, moved));
            }
        }
    }

    pub(super) fn result(&mut self, place: &Place<'_, 'a>, node: &'a StmtReturn) {
        let Some(value) = &node.value else { return };
        let is_literal = value.is_literal_expr() || value.is_name_expr();
        if !is_literal {
            let at = code::sites::Edit::replace_span(
                node.start().to_usize()..value.start().to_usize(),
                "",
            );
            self.add_edit(place, Family::Result, at);
        }
        if let Expr::Tuple(tuple) = &**value
            && let [first, second] = &tuple.elts[..]
        {
            self.add_swap(place, Family::Result, first.range(), second.range());
        }
    }

    pub(super) fn yield_from(&mut self, place: &Place<'_, 'a>, node: &'a ExprYieldFrom) {
        let value = self.slice(self.bracketed(&*node.value, node));
        self.add(place, Family::Result, node, format!("yield {value}"));
    }

    pub(super) fn raised(&mut self, place: &Place<'_, 'a>, node: &'a StmtRaise) {
        let name = match node.exc.as_deref() {
            Some(Expr::Call(call)) => &*call.func,
            Some(other) => other,
            None => return,
        };
        self.other_exception(place, name);
    }

    pub(super) fn caught(&mut self, place: &Place<'_, 'a>, node: &'a ExceptHandlerExceptHandler) {
        let line = self.source.line(node.start());
        let place = Place {
            lines: (line, line),
            ..*place
        };
        match node.type_.as_deref() {
            Some(Expr::Tuple(several)) => {
                for one in &several.elts {
                    self.other_exception(&place, one);
                }
            }
            Some(one) => self.other_exception(&place, one),
            None => {}
        }
    }

    fn other_exception(&mut self, place: &Place<'_, 'a>, name: &'a Expr) {
        let other = match self.slice(name) {
            "KeyError" => "IndexError",
            "IndexError" => "KeyError",
            "ValueError" => "TypeError",
            "TypeError" => "ValueError",
            "AttributeError" => "NameError",
            "StopIteration" => "IndexError",
            "LookupError" => "KeyError",
            "NotImplementedError" => "RuntimeError",
            "ZeroDivisionError" => "ValueError",
            "OverflowError" => "ValueError",
            "RuntimeError" => "ValueError",
            "OSError" | "IOError" => "ValueError",
            "ImportError" => "AttributeError",
            "Exception" => "RuntimeError",
            _ => return,
        };
        self.add(place, Family::Exception, name, other);
    }
}

/// Whether leaving an expression out changes anything.
fn does_something(value: &Expr) -> bool {
    value.is_call_expr()
        || value.is_yield_expr()
        || value.is_yield_from_expr()
        || value.is_await_expr()
}

fn is_simple(statement: &Stmt) -> bool {
    matches!(
        statement,
        Stmt::Assign(_) | Stmt::AugAssign(_) | Stmt::Expr(_)
    )
}

/// Whether `word` stands in `text` as a whole.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !is_part(before) && !is_part(after)
    })
}
