"""Formulas with variables and functions."""

from calculator.errors import CalculatorError, EvaluationError, ParseError
from calculator.evaluate import Calculator, evaluate
from calculator.parse import parse
from calculator.show import show
from calculator.simplify import simplify

__all__ = [
    "Calculator",
    "CalculatorError",
    "EvaluationError",
    "ParseError",
    "evaluate",
    "parse",
    "show",
    "simplify",
]
