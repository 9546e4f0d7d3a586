//! Exceptions that are raised, and those that are caught.

use ruff_python_ast::{ExceptHandlerExceptHandler, Expr, StmtRaise, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Family, bench::Bench};
use crate::sites::{Edit, SiteIndex};

/// Exceptions that are taken for one another.
const KIN: &[&[&str]] = &[
    &["KeyError", "IndexError", "LookupError"],
    &["ValueError", "TypeError"],
    &["AttributeError", "TypeError", "KeyError", "NameError"],
    &["StopIteration", "IndexError", "ValueError", "GeneratorExit"],
    &[
        "OSError",
        "FileNotFoundError",
        "FileExistsError",
        "PermissionError",
        "IOError",
    ],
    &["RuntimeError", "ValueError", "NotImplementedError"],
    &["ImportError", "ModuleNotFoundError"],
    &[
        "ZeroDivisionError",
        "ArithmeticError",
        "OverflowError",
        "ValueError",
    ],
    &[
        "UnicodeDecodeError",
        "UnicodeEncodeError",
        "UnicodeError",
        "ValueError",
    ],
    &["AssertionError", "ValueError"],
];

fn instead<'b>(bench: &'b Bench<'_, '_>, own: &str) -> Vec<(f64, &'b str)> {
    let mut found: Vec<(f64, &str)> = Vec::new();
    let mut add = |cost: f64, name: &'b str| {
        if name == own {
            return;
        }
        match found.iter_mut().find(|(_, known)| *known == name) {
            Some((known, _)) => *known = known.min(cost),
            None => found.push((cost, name)),
        }
    };
    let hints = bench.hints;
    for name in hints.raised.iter().chain(&hints.not_raised) {
        add(0.4, name);
    }
    for kin in KIN.iter().filter(|kin| kin.contains(&own)) {
        for name in *kin {
            add(1.4, name);
        }
    }
    for name in &bench.vocabulary.exceptions {
        add(2.0, name);
    }
    add(2.2, "Exception");
    for name in [
        "ValueError",
        "TypeError",
        "KeyError",
        "IndexError",
        "AttributeError",
    ] {
        add(2.6, name);
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    found.truncate(12);
    found
}

pub(super) fn handler(
    bench: &mut Bench<'_, '_>,
    at: SiteIndex,
    handler: &ExceptHandlerExceptHandler,
) {
    let Some(caught) = handler.type_.as_deref() else {
        return;
    };
    let names: Vec<&Expr> = match caught {
        Expr::Tuple(tuple) => tuple.elts.iter().collect(),
        other => vec![other],
    };
    for name in &names {
        let range = name.range();
        let own = bench.text(range);
        let others: Vec<(f64, String)> = owned(instead(bench, own));
        for (cost, other) in &others {
            let edit = Edit::replace(range, other.as_str());
            bench.push(Family::Exception, *cost, at, edit);
        }
        if names.len() == 1 {
            for (cost, other) in others.iter().take(5) {
                let edit = Edit::replace(range, format!("({own}, {other})"));
                bench.push(Family::Exception, cost + 0.8, at, edit);
            }
        }
    }
}

pub(super) fn tried(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &StmtTry) {
    // An exception that came out of the block and should have been caught here.
    for handler in &statement.handlers {
        let handler = handler.as_except_handler();
        let Some(caught) = handler.and_then(|handler| handler.type_.as_deref()) else {
            continue;
        };
        let own = bench.text(caught);
        let others: Vec<(f64, String)> = owned(instead(bench, own));
        for (cost, other) in others {
            let edit = Edit::replace(caught, other);
            bench.push(Family::Exception, cost + 0.4, at, edit);
        }
    }
}

pub(super) fn raised(bench: &mut Bench<'_, '_>, at: SiteIndex, statement: &StmtRaise) {
    let range = match statement.exc.as_deref() {
        None => return,
        Some(Expr::Call(call)) => call.func.range(),
        Some(other) => other.range(),
    };
    let others: Vec<(f64, String)> = owned(instead(bench, bench.text(range)));
    for (cost, other) in others {
        bench.push(Family::Exception, cost, at, Edit::replace(range, other));
    }
    let end = TextRange::new(range.end(), statement.end());
    if statement.cause.is_some()
        && let Some(from) = bench.text(end).rfind(" from ")
    {
        let start = range.end() + TextSize::try_from(from).unwrap_or_default();
        let edit = Edit::replace(TextRange::new(start, statement.end()), "");
        bench.push(Family::Exception, 3.4, at, edit);
    }
    // It should not be raised at all.
    bench.push(Family::Guard, 2.6, at, Edit::replace(statement, "pass"));
    for (other, cost) in [("return", 2.8), ("continue", 3.2), ("return None", 4.0)] {
        bench.push(Family::Guard, cost, at, Edit::replace(statement, other));
    }
}

fn owned(found: Vec<(f64, &str)>) -> Vec<(f64, String)> {
    let owned = found.into_iter();
    owned.map(|(cost, name)| (cost, name.to_owned())).collect()
}
