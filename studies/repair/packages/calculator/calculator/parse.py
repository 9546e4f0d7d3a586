"""Tokens to trees, by binding powers.

Trees are tuples: ``("number", 1)``, ``("name", "x")``, ``("unary", "-", tree)``,
``("binary", "+", left, right)``, ``("call", "max", [trees])`` and
``("choice", condition, yes, no)``.
"""

from calculator.errors import ParseError
from calculator.tokens import tokenize

# What binds to the left and to the right of an operator, the loosest first.
BINDING = {
    "<": (3, 4),
    "<=": (3, 4),
    ">": (3, 4),
    ">=": (3, 4),
    "==": (3, 4),
    "!=": (3, 4),
    "+": (5, 6),
    "-": (5, 6),
    "*": (7, 8),
    "/": (7, 8),
    "%": (7, 8),
    "**": (12, 11),
}
UNARY = 9
CHOICE = 1


class Parser:
    def __init__(self, text):
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def token(self):
        return self.tokens[self.at]

    def advance(self):
        token = self.token
        self.at += 1
        return token

    def take(self, text):
        """Passes an operator, if it is the next token."""
        if self.token.kind == "operator" and self.token.text == text:
            self.at += 1
            return True
        return False

    def expect(self, text):
        if not self.take(text):
            found = self.token.text or "the end"
            raise ParseError(f"expected {text!r} and found {found!r}", self.token.position)

    def expression(self, least=0):
        left = self.operand()
        while self.token.kind == "operator":
            operator = self.token.text
            if operator == "?":
                if CHOICE < least:
                    break
                self.advance()
                yes = self.expression()
                self.expect(":")
                no = self.expression(CHOICE)
                left = ("choice", left, yes, no)
                continue
            if operator not in BINDING:
                break
            before, after = BINDING[operator]
            if before < least:
                break
            self.advance()
            left = ("binary", operator, left, self.expression(after))
        return left

    def operand(self):
        token = self.advance()
        if token.kind == "number":
            is_whole = token.text.isdigit()
            return ("number", int(token.text) if is_whole else float(token.text))
        if token.kind == "name":
            if self.take("("):
                return ("call", token.text, self.arguments())
            return ("name", token.text)
        if token.text in ("-", "+"):
            inner = self.expression(UNARY)
            return ("unary", "-", inner) if token.text == "-" else inner
        if token.text == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        found = token.text or "the end"
        raise ParseError(f"expected a value and found {found!r}", token.position)

    def arguments(self):
        arguments = []
        if self.take(")"):
            return arguments
        while True:
            arguments.append(self.expression())
            if self.take(")"):
                return arguments
            self.expect(",")


def parse(text):
    """The tree of a formula."""
    parser = Parser(text)
    tree = parser.expression()
    if parser.token.kind != "end":
        raise ParseError(f"unexpected {parser.token.text!r}", parser.token.position)
    return tree
