//! Which operators look at which nodes.

use ruff_python_ast::AnyNodeRef;

use super::{
    arithmetic, bench::Bench, calls, comparisons, conditions, constants, conversions, exceptions,
    insertions, names, returns, siblings, statements, subscripts,
};
use crate::sites::SiteIndex;

/// Notes all edits that begin at one node.
pub(super) fn apply(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    let node = bench.node(at);
    match node {
        AnyNodeRef::ExprCompare(compare) => comparisons::compare(bench, at, compare),
        AnyNodeRef::ExprBoolOp(operation) => conditions::bool_operation(bench, at, operation),
        AnyNodeRef::ExprUnaryOp(operation) => arithmetic::unary(bench, at, operation),
        AnyNodeRef::ExprBinOp(operation) => arithmetic::binary(bench, at, operation),
        AnyNodeRef::ExprIf(choice) => conditions::choice(bench, at, choice),
        AnyNodeRef::ExprNumberLiteral(number) => constants::number(bench, at, number),
        AnyNodeRef::ExprBooleanLiteral(literal) => constants::boolean(bench, at, literal.value),
        AnyNodeRef::ExprNoneLiteral(_) => constants::none(bench, at),
        AnyNodeRef::ExprStringLiteral(_) => constants::string(bench, at),
        AnyNodeRef::ExprName(name) => names::name(bench, at, name),
        AnyNodeRef::ExprAttribute(attribute) => names::attribute(bench, at, attribute),
        AnyNodeRef::ExprCall(call) => calls::call(bench, at, call),
        AnyNodeRef::ExprSubscript(subscript) => subscripts::subscript(bench, at, subscript),
        AnyNodeRef::Comprehension(comprehension) => {
            subscripts::comprehension(bench, at, comprehension);
        }
        AnyNodeRef::ExprTuple(tuple) => calls::elements(bench, at, &tuple.elts),
        AnyNodeRef::ExprYield(_) | AnyNodeRef::ExprYieldFrom(_) => returns::yielded(bench, at),
        AnyNodeRef::ExceptHandlerExceptHandler(handler) => {
            exceptions::handler(bench, at, handler);
        }
        _ if node.is_statement() => statement(bench, at),
        _ => {}
    }
    conditions::in_condition(bench, at);
    conversions::around(bench, at);
    siblings::instead(bench, at);
}

fn statement(bench: &mut Bench<'_, '_>, at: SiteIndex) {
    match bench.node(at) {
        AnyNodeRef::StmtReturn(statement) => returns::returned(bench, at, statement),
        AnyNodeRef::StmtExpr(statement) => returns::expression(bench, at, statement),
        AnyNodeRef::StmtAssign(statement) => statements::assignment(bench, at, statement),
        AnyNodeRef::StmtAugAssign(statement) => {
            arithmetic::augmented_assignment(bench, at, statement);
        }
        AnyNodeRef::StmtFor(statement) => subscripts::iterated(bench, at, &statement.iter),
        AnyNodeRef::StmtRaise(statement) => exceptions::raised(bench, at, statement),
        AnyNodeRef::StmtFunctionDef(function) => statements::definition(bench, at, function),
        AnyNodeRef::StmtIf(statement) => statements::branch(bench, at, statement),
        AnyNodeRef::StmtBreak(_) | AnyNodeRef::StmtContinue(_) => statements::jump(bench, at),
        AnyNodeRef::StmtTry(statement) => exceptions::tried(bench, at, statement),
        _ => {}
    }
    statements::place(bench, at);
    insertions::around(bench, at);
}
