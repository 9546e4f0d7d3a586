"""Trees to numbers."""

import math
import operator

from calculator.errors import EvaluationError
from calculator.parse import parse

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _clamp(value, low, high):
    if low > high:
        raise ValueError("the low end is above the high end")
    return max(low, min(value, high))


def _mean(*values):
    return sum(values) / len(values)


# Name, the least and the most number of arguments.
FUNCTIONS = {
    "abs": (abs, 1, 1),
    "clamp": (_clamp, 3, 3),
    "floor": (math.floor, 1, 1),
    "max": (max, 2, None),
    "mean": (_mean, 1, None),
    "min": (min, 2, None),
    "round": (round, 1, 2),
    "sqrt": (math.sqrt, 1, 1),
}
CONSTANTS = {"pi": math.pi, "e": math.e}
MAX_POWER = 10_000


class Calculator:
    """Formulas over variables; a variable can hold a formula."""

    def __init__(self, **variables):
        self._variables = dict(variables)
        self._functions = dict(FUNCTIONS)
        self._open = []

    def set(self, name, value):
        """``value`` is a number, or the text of a formula."""
        if name in CONSTANTS:
            raise EvaluationError(f"{name} is a constant")
        self._variables[name] = parse(value) if isinstance(value, str) else value

    def define(self, name, function, least=1, most=None):
        if most is not None and most < least:
            raise ValueError("fewer arguments allowed than needed")
        self._functions[name] = (function, least, most)

    def evaluate(self, text):
        return self._value(parse(text))

    def _value(self, tree):
        kind = tree[0]
        if kind == "number":
            return tree[1]
        if kind == "name":
            return self._variable(tree[1])
        if kind == "unary":
            return -self._value(tree[2])
        if kind == "choice":
            return self._value(tree[2] if self._value(tree[1]) else tree[3])
        if kind == "call":
            return self._call(tree[1], [self._value(argument) for argument in tree[2]])
        _, sign, left, right = tree
        return self._apply(sign, self._value(left), self._value(right))

    def _variable(self, name):
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name not in self._variables:
            raise EvaluationError(f"{name} has no value")
        value = self._variables[name]
        if not isinstance(value, tuple):
            return value
        if name in self._open:
            circle = " -> ".join(self._open[self._open.index(name):] + [name])
            raise EvaluationError(f"variables need each other: {circle}")
        self._open.append(name)
        try:
            return self._value(value)
        finally:
            self._open.pop()

    def _apply(self, sign, left, right):
        if sign in ("/", "%") and right == 0:
            raise EvaluationError("division by zero")
        if sign == "**" and abs(right) > MAX_POWER:
            raise EvaluationError("the power is too large")
        result = BINARY[sign](left, right)
        if isinstance(result, complex):
            raise EvaluationError("the result is no real number")
        return result

    def _call(self, name, arguments):
        if name not in self._functions:
            raise EvaluationError(f"there is no function {name}")
        function, least, most = self._functions[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            raise EvaluationError(f"{name} does not take {len(arguments)} arguments")
        try:
            return function(*arguments)
        except ValueError as error:
            raise EvaluationError(f"{name}: {error}") from error


def evaluate(text, **variables):
    """The value of one formula."""
    return Calculator(**variables).evaluate(text)
