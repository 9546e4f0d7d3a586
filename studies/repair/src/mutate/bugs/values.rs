//! Literals, indices and slices, defaults of parameters.

use code::sites::{
    Edit,
    ast::{
        AnyNodeRef, Expr, ExprBooleanLiteral, ExprNumberLiteral, ExprStringLiteral, ExprSubscript,
        Number, StmtFunctionDef,
    },
};
use ruff_text_size::Ranged;

use super::{Bug, Catalogue, Family, Place};

impl<'a> Catalogue<'_, 'a> {
    pub(super) fn number(&mut self, place: &Place<'_, 'a>, node: &'a ExprNumberLiteral) {
        for other in neighbours(node) {
            self.add(place, Family::OffByOne, node, other);
        }
    }

    pub(super) fn flag(&mut self, place: &Place<'_, 'a>, node: &'a ExprBooleanLiteral) {
        self.add(place, Family::Flag, node, flipped(node));
    }

    pub(super) fn text(&mut self, place: &Place<'_, 'a>, node: &'a ExprStringLiteral) {
        // Messages are seldom tested, and what is wrong with them is no bug of the code.
        let in_message = self.sites.ancestors(place.index).any(|outer| {
            let node = self.sites.node(outer);
            matches!(node, AnyNodeRef::StmtRaise(_) | AnyNodeRef::StmtAssert(_))
                || matches!(node, AnyNodeRef::ExprCall(call) if self.slice(&*call.func).contains("warn"))
        });
        if !in_message && let Some(other) = misspelt(self.slice(node)) {
            self.add(place, Family::Text, node, other);
        }
    }

    pub(super) fn subscript(&mut self, place: &Place<'_, 'a>, node: &'a ExprSubscript) {
        match &*node.slice {
            Expr::Slice(slice) => {
                for part in [&slice.lower, &slice.upper, &slice.step]
                    .into_iter()
                    .flatten()
                {
                    let part = self.bracketed(&**part, slice);
                    self.add(place, Family::Slice, part, "");
                }
            }
            Expr::NumberLiteral(index) if self.slice(index) == "0" => {
                self.add(place, Family::Slice, index, "-1");
            }
            Expr::UnaryOp(index) if self.slice(index) == "-1" => {
                self.add(place, Family::Slice, index, "0");
            }
            _ => {}
        }
    }

    pub(super) fn defaults(&mut self, function: &'a StmtFunctionDef) {
        let Some(name) = self.functions.get(&function.range().start()).copied() else {
            return;
        };
        let lines = match (function.body.first(), function.body.last()) {
            (Some(first), Some(last)) => (self.source.lines(first).0, self.source.lines(last).1),
            _ => return,
        };
        let defaults = function
            .parameters
            .iter_non_variadic_params()
            .filter_map(|parameter| parameter.default());
        for default in defaults {
            let others = match default {
                Expr::NumberLiteral(number) => neighbours(number),
                Expr::BooleanLiteral(flag) => vec![flipped(flag).to_owned()],
                Expr::StringLiteral(text) => misspelt(self.slice(text)).into_iter().collect(),
                _ => continue,
            };
            for other in others {
                self.bugs.push(Bug {
                    family: Family::DefaultValue,
                    edit: Edit::replace(default, other),
                    function: name.to_owned(),
                    lines,
                });
            }
        }
    }
}

/// One less and one more. Only of whole numbers that people count with.
fn neighbours(node: &ExprNumberLiteral) -> Vec<String> {
    let Number::Int(number) = &node.value else {
        return Vec::new();
    };
    match number.as_u64() {
        Some(0) => vec!["1".to_owned()],
        Some(number) if number < 100_000 => {
            vec![(number - 1).to_string(), (number + 1).to_string()]
        }
        _ => Vec::new(),
    }
}

fn flipped(node: &ExprBooleanLiteral) -> &'static str {
    if node.value { "False" } else { "True" }
}

/// A plain string with its last letter forgotten, or its only character another.
fn misspelt(literal: &str) -> Option<String> {
    let quote = literal
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    let inner = literal.strip_prefix(quote)?.strip_suffix(quote)?;
    if inner.contains(['\\', '\n', quote]) {
        return None;
    }
    let other = match inner {
        "" => " ".to_owned(),
        " " => String::new(),
        "," => ";".to_owned(),
        "." => ",".to_owned(),
        "-" => "_".to_owned(),
        "_" => "-".to_owned(),
        "0" => " ".to_owned(),
        "r" => "w".to_owned(),
        inner => {
            let (last, letter) = inner.char_indices().last()?;
            if last == 0 || !letter.is_alphanumeric() && letter != ' ' {
                return None;
            }
            inner[..last].to_owned()
        }
    };
    Some(format!("{quote}{other}{quote}"))
}
