"""Smaller trees of the same value."""

from calculator.errors import EvaluationError
from calculator.evaluate import Calculator


def _is_number(tree, value=None):
    return tree[0] == "number" and (value is None or tree[1] == value)


def names(tree):
    """The variables of a tree, sorted."""
    kind = tree[0]
    if kind == "number":
        return []
    if kind == "name":
        return [tree[1]]
    if kind == "call":
        parts = tree[2]
    else:
        parts = [part for part in tree[1:] if isinstance(part, tuple)]
    found = set()
    for part in parts:
        found.update(names(part))
    return sorted(found)


def _neutral(sign, left, right):
    """What is left of an operation with 0 or 1; ``None`` where it stays."""
    if sign == "+":
        if _is_number(left, 0):
            return right
        if _is_number(right, 0):
            return left
    if sign == "-" and _is_number(right, 0):
        return left
    if sign == "*":
        if _is_number(left, 0) or _is_number(right, 0):
            return ("number", 0)
        if _is_number(left, 1):
            return right
        if _is_number(right, 1):
            return left
    if sign == "/" and _is_number(right, 1):
        return left
    if sign == "**":
        if _is_number(right, 1):
            return left
        if _is_number(right, 0):
            return ("number", 1)
    return None


def simplify(tree):
    """Works out what has no variables, and drops zeros and ones."""
    kind = tree[0]
    if kind in ("number", "name"):
        return tree
    if kind == "call":
        return _worked_out(("call", tree[1], [simplify(part) for part in tree[2]]))
    if kind == "choice":
        condition, yes, no = (simplify(part) for part in tree[1:])
        if _is_number(condition):
            return yes if condition[1] else no
        return ("choice", condition, yes, no)
    if kind == "unary":
        inner = simplify(tree[2])
        if inner[0] == "unary":
            return inner[2]
        return _worked_out(("unary", "-", inner))
    _, sign, left, right = tree
    left, right = simplify(left), simplify(right)
    return _neutral(sign, left, right) or _worked_out(("binary", sign, left, right))


def _worked_out(tree):
    if names(tree):
        return tree
    try:
        return ("number", Calculator()._value(tree))
    except EvaluationError:
        return tree
