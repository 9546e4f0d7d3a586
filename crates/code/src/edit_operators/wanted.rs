//! What a place calls the value that belongs there: the parameter it is handed to, the name it is kept under.

use ruff_python_ast::{AnyNodeRef, Expr, Stmt};
use ruff_text_size::Ranged;

use super::{arguments::parameters_of, bench::Bench};
use crate::sites::SiteIndex;

/// The name for what stands at `at`, where the place has one.
pub(super) fn name<'a>(bench: &Bench<'_, 'a>, at: SiteIndex) -> Option<&'a str> {
    let range = bench.node(at).range();
    let mut outer = bench.sites.ancestors(at);
    let found = match bench.node(outer.next()?) {
        AnyNodeRef::Keyword(keyword) => keyword.arg.as_ref()?.as_str(),
        AnyNodeRef::StmtAssign(assignment) if assignment.value.range() == range => {
            last_name(assignment.targets.first()?)?
        }
        AnyNodeRef::StmtReturn(_) => {
            let function = bench.function(at)?.function()?;
            // A function of a single statement is called like what it returns.
            let is_alone = function.body.iter().filter(|it| !is_text(it)).count() == 1;
            is_alone.then_some(function.name.as_str())?
        }
        AnyNodeRef::Arguments(arguments) => {
            let place = arguments.args.iter().position(|it| it.range() == range)?;
            let call = outer.next()?;
            let AnyNodeRef::ExprCall(node) = bench.node(call) else {
                return None;
            };
            parameters_of(bench, call, node).get(place)?.name
        }
        _ => return None,
    };
    let found = found.trim_matches('_');
    (!found.is_empty()).then_some(found)
}

fn last_name(target: &Expr) -> Option<&str> {
    match target {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

fn is_text(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(statement) if statement.value.is_string_literal_expr())
}
