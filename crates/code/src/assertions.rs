//! Takes a script of Python assertions apart into what is computed and what is expected of it.
//!
//! The expected side of `assert f(1) == [2]` is read here, so that a judge can have `f(1)` computed
//! in one place and compare in another.

use ruff_python_ast::{CmpOp, Expr, ExprCall, Number, Stmt, StmtAssert, UnaryOp};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextRange};

/// A script whose assertions stand at its end, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertions {
    /// What comes before the first assertion: imports, helpers, data.
    pub setup: String,
    pub assertions: Vec<Assertion>,
}

/// One `assert` statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// The expression that is to be computed.
    pub expression: String,
    pub expected: Expectation,
}

/// What the value of an expression must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// Equal to this, as Python's `==` has it.
    Equal(Literal),
    /// Not equal to this.
    NotEqual(Literal),
    /// Exactly `None`, `True` or `False`.
    Is(Literal),
    /// A number this close to another.
    Close {
        to: Literal,
        absolute: f64,
        relative: f64,
    },
    /// Equal to one of these.
    OneOf(Vec<Literal>),
    True,
    False,
}

/// A value that stands in the script itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    None,
    Bool(bool),
    /// Decimal digits, perhaps behind a minus sign.
    Int(String),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    List(Vec<Literal>),
    Tuple(Vec<Literal>),
    Set(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

/// Longer scripts are left whole: the parser recurses.
const MAX_SCRIPT: usize = 256 << 10;
const PARSER_STACK: usize = 256 << 20;

/// The assertions of `script`; `None` when it is not a setup followed by assertions alone, or does not
/// parse, and has to be run as a whole.
pub fn assertions(script: &str) -> Option<Assertions> {
    if script.len() > MAX_SCRIPT || !script.contains("assert") {
        return None;
    }
    // Nesting is bounded by the length, and the stack by both.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(PARSER_STACK)
            .spawn_scoped(scope, || take_apart(script))
            .ok()?
            .join()
            .ok()?
    })
}

fn take_apart(script: &str) -> Option<Assertions> {
    let module = parse_module(script).ok()?;
    let body = &module.syntax().body;
    let first = body.iter().position(Stmt::is_assert_stmt)?;
    let (setup, rest) = body.split_at(first);
    let assertions = rest
        .iter()
        .map(|statement| Some(assertion(script, statement.as_assert_stmt()?)))
        .collect::<Option<Vec<_>>>()?;
    let setup = match setup.last() {
        Some(last) => &script[..usize::from(last.end())],
        None => "",
    };
    Some(Assertions {
        setup: setup.to_owned(),
        assertions,
    })
}

fn assertion(script: &str, statement: &StmtAssert) -> Assertion {
    // In parentheses, as an expression in parentheses of its own may span lines.
    let text = |range: TextRange| format!("({})", &script[range]);
    let (expression, expected) = split(&statement.test);
    Assertion {
        expression: text(expression.range()),
        expected,
    }
}

/// The computed part and what is expected of it.
fn split(test: &Expr) -> (&Expr, Expectation) {
    let whole = (test, Expectation::True);
    match test {
        Expr::UnaryOp(unary) if unary.op == UnaryOp::Not => (&unary.operand, Expectation::False),
        Expr::Compare(compare) => {
            let ([op], [right]) = (&compare.ops[..], &compare.comparators[..]) else {
                return whole;
            };
            let left = &*compare.left;
            match (op, literal(left), literal(right)) {
                (CmpOp::Eq, None, Some(expected)) => (left, Expectation::Equal(expected)),
                (CmpOp::Eq, Some(expected), None) => (right, Expectation::Equal(expected)),
                (CmpOp::NotEq, None, Some(other)) => (left, Expectation::NotEqual(other)),
                (CmpOp::Is, None, Some(expected @ (Literal::None | Literal::Bool(_)))) => {
                    (left, Expectation::Is(expected))
                }
                (CmpOp::In, None, Some(Literal::List(items) | Literal::Tuple(items))) => {
                    (left, Expectation::OneOf(items))
                }
                (CmpOp::Lt | CmpOp::LtE, None, Some(bound)) => near(left, &bound).unwrap_or(whole),
                _ => whole,
            }
        }
        Expr::Call(call) => is_close(call).unwrap_or(whole),
        _ => whole,
    }
}

/// `abs(computed - expected) < bound`.
fn near<'a>(left: &'a Expr, bound: &Literal) -> Option<(&'a Expr, Expectation)> {
    let call = left.as_call_expr()?;
    let [argument] = &call.arguments.args[..] else {
        return None;
    };
    let difference = argument.as_bin_op_expr()?;
    let named = call.func.as_name_expr()?.id.as_str() == "abs";
    if !named || !matches!(difference.op, ruff_python_ast::Operator::Sub) {
        return None;
    }
    let absolute = number(bound)?;
    let (computed, to) = match (literal(&difference.left), literal(&difference.right)) {
        (None, Some(to)) => (&*difference.left, to),
        (Some(to), None) => (&*difference.right, to),
        _ => return None,
    };
    number(&to)?;
    let relative = 0.0;
    Some((
        computed,
        Expectation::Close {
            to,
            absolute,
            relative,
        },
    ))
}

/// `math.isclose(computed, expected, rel_tol=…, abs_tol=…)`.
fn is_close(call: &ExprCall) -> Option<(&Expr, Expectation)> {
    let named = match &*call.func {
        Expr::Attribute(attribute) => {
            attribute.attr.as_str() == "isclose" && attribute.value.as_name_expr()?.id == "math"
        }
        Expr::Name(name) => name.id == "isclose",
        _ => false,
    };
    let [left, right] = &call.arguments.args[..] else {
        return None;
    };
    let (mut relative, mut absolute) = (1e-9, 0.0);
    for keyword in &call.arguments.keywords {
        let value = number(&literal(&keyword.value)?)?;
        match keyword.arg.as_ref()?.as_str() {
            "rel_tol" => relative = value,
            "abs_tol" => absolute = value,
            _ => return None,
        }
    }
    let (computed, to) = match (literal(left), literal(right)) {
        (None, Some(to)) => (left, to),
        (Some(to), None) => (right, to),
        _ => return None,
    };
    number(&to)?;
    named.then_some((
        computed,
        Expectation::Close {
            to,
            absolute,
            relative,
        },
    ))
}

fn number(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Int(digits) => digits.parse().ok(),
        Literal::Float(value) => Some(*value),
        _ => None,
    }
}

/// The value of an expression that needs nothing but itself.
fn literal(expression: &Expr) -> Option<Literal> {
    let all = |items: &[Expr]| items.iter().map(literal).collect::<Option<Vec<_>>>();
    Some(match expression {
        Expr::NoneLiteral(_) => Literal::None,
        Expr::BooleanLiteral(bool) => Literal::Bool(bool.value),
        Expr::StringLiteral(text) => Literal::Str(text.value.to_str().to_owned()),
        Expr::BytesLiteral(bytes) => Literal::Bytes(bytes.value.bytes().collect()),
        Expr::NumberLiteral(number) => match &number.value {
            Number::Int(int) => Literal::Int(int_digits(&int.to_string())?),
            Number::Float(value) => Literal::Float(*value),
            Number::Complex { .. } => return None,
        },
        Expr::UnaryOp(unary) if unary.op == UnaryOp::USub => match literal(&unary.operand)? {
            Literal::Int(digits) if digits == "0" => Literal::Int(digits),
            Literal::Int(digits) if !digits.starts_with('-') => Literal::Int(format!("-{digits}")),
            Literal::Float(value) => Literal::Float(-value),
            _ => return None,
        },
        Expr::List(list) => Literal::List(all(&list.elts)?),
        Expr::Tuple(tuple) => Literal::Tuple(all(&tuple.elts)?),
        Expr::Set(set) => Literal::Set(all(&set.elts)?),
        Expr::Dict(dict) => {
            let pairs = dict
                .items
                .iter()
                .map(|item| Some((literal(item.key.as_ref()?)?, literal(&item.value)?)));
            Literal::Dict(pairs.collect::<Option<_>>()?)
        }
        Expr::Call(call) => called(call)?,
        _ => return None,
    })
}

/// `set(…)`, `float("inf")` and their like.
fn called(call: &ExprCall) -> Option<Literal> {
    if !call.arguments.keywords.is_empty() {
        return None;
    }
    let items = |literal: Literal| match literal {
        Literal::List(items) | Literal::Tuple(items) | Literal::Set(items) => Some(items),
        _ => None,
    };
    match (
        call.func.as_name_expr()?.id.as_str(),
        &call.arguments.args[..],
    ) {
        ("set" | "frozenset", []) => Some(Literal::Set(Vec::new())),
        ("set" | "frozenset", [argument]) => Some(Literal::Set(items(literal(argument)?)?)),
        ("float", [argument]) => match literal(argument)? {
            Literal::Str(text) => match text.trim().to_lowercase().as_str() {
                "inf" | "+inf" | "infinity" => Some(Literal::Float(f64::INFINITY)),
                "-inf" | "-infinity" => Some(Literal::Float(f64::NEG_INFINITY)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Decimal digits of an integer as it is spelled, small or large.
fn int_digits(text: &str) -> Option<String> {
    let text = text.replace('_', "");
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| {
        let digits = text.trim_start_matches('0');
        if digits.is_empty() { "0" } else { digits }.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(script: &str) -> (String, Expectation) {
        let mut found = assertions(script).unwrap().assertions;
        assert_eq!(found.len(), 1);
        let found = found.remove(0);
        (found.expression, found.expected)
    }

    #[test]
    fn the_expected_side_is_told_from_the_computed_one() {
        let int = |n: &str| Literal::Int(n.to_owned());
        let cases: [(&str, &str, Expectation); 14] = [
            ("assert f(1) == 2", "(f(1))", Expectation::Equal(int("2"))),
            ("assert 2 == f(1)", "(f(1))", Expectation::Equal(int("2"))),
            (
                "assert (f(1)) == -2, 'm'",
                "(f(1))",
                Expectation::Equal(int("-2")),
            ),
            (
                "assert f(1) != 2",
                "(f(1))",
                Expectation::NotEqual(int("2")),
            ),
            (
                "assert f(1) is None",
                "(f(1))",
                Expectation::Is(Literal::None),
            ),
            ("assert f(1)", "(f(1))", Expectation::True),
            ("assert not f(1)", "(f(1))", Expectation::False),
            ("assert f(1) == g(1)", "(f(1) == g(1))", Expectation::True),
            ("assert 0 < f(1) < 3", "(0 < f(1) < 3)", Expectation::True),
            (
                "assert f(1) in (1, 2)",
                "(f(1))",
                Expectation::OneOf(vec![int("1"), int("2")]),
            ),
            (
                "assert abs(f(1) - 2.5) < 1e-6",
                "(f(1))",
                Expectation::Close {
                    to: Literal::Float(2.5),
                    absolute: 1e-6,
                    relative: 0.0,
                },
            ),
            (
                "assert math.isclose(f(1), 2, rel_tol=0.001)",
                "(f(1))",
                Expectation::Close {
                    to: int("2"),
                    absolute: 0.0,
                    relative: 0.001,
                },
            ),
            (
                "assert set(f(1)) == set([1])",
                "(set(f(1)))",
                Expectation::Equal(Literal::Set(vec![int("1")])),
            ),
            (
                "assert f(1) == 123456789012345678901234567890",
                "(f(1))",
                Expectation::Equal(int("123456789012345678901234567890")),
            ),
        ];
        for (script, expression, expected) in cases {
            assert_eq!(only(script), (expression.to_owned(), expected), "{script}");
        }
    }

    #[test]
    fn a_setup_comes_before_and_nothing_between() {
        let found = assertions("import math\nx = 3\nassert f(x) == 1\nassert g(x)\n").unwrap();
        assert_eq!(found.setup, "import math\nx = 3");
        assert_eq!(found.assertions.len(), 2);
        for script in [
            "assert f(1) == 2\nx = 3\nassert f(x) == 1",
            "def check(f):\n    assert f(1) == 2\ncheck(g)",
            "x = 1",
            "assert f(",
            "",
        ] {
            assert_eq!(assertions(script), None, "{script}");
        }
    }

    #[test]
    fn long_and_deep_scripts_are_left_whole() {
        let deep = format!(
            "assert f({}1{}) == 2",
            "(".repeat(50_000),
            ")".repeat(50_000)
        );
        let _ = assertions(&deep);
        let sum = format!("assert f(1) == {}", vec!["1"; 50_000].join("+"));
        let _ = assertions(&sum);
        assert_eq!(
            assertions(&format!("{}\nassert f(1)", "#".repeat(MAX_SCRIPT))),
            None
        );
    }
}
