import unittest

from calculator import ParseError, parse, show
from calculator.tokens import tokenize


class TestTokens(unittest.TestCase):
    def texts(self, text):
        return [token.text for token in tokenize(text)[:-1]]

    def test_kinds(self):
        kinds = [token.kind for token in tokenize("x_1 + 2.5")]
        self.assertEqual(kinds, ["name", "operator", "number", "end"])

    def test_numbers(self):
        self.assertEqual(self.texts("1 23 4.5 .5 6. 7e3 8E-2"), "1 23 4.5 .5 6. 7e3 8E-2".split())

    def test_what_is_no_exponent(self):
        self.assertEqual(self.texts("2e"), ["2", "e"])
        self.assertEqual(self.texts("2e+x"), ["2", "e", "+", "x"])

    def test_longest_operator_first(self):
        self.assertEqual(self.texts("a**b<=c*d<e"), ["a", "**", "b", "<=", "c", "*", "d", "<", "e"])

    def test_positions(self):
        positions = [token.position for token in tokenize("ab  + c")]
        self.assertEqual(positions, [0, 4, 6, 7])

    def test_unknown(self):
        with self.assertRaises(ParseError) as caught:
            tokenize("a + $")
        self.assertEqual(caught.exception.position, 4)


class TestParse(unittest.TestCase):
    def test_precedence(self):
        self.assertEqual(
            parse("1 + 2 * x"),
            ("binary", "+", ("number", 1), ("binary", "*", ("number", 2), ("name", "x"))),
        )

    def test_left_and_right(self):
        for text, full in [
            ("a - b - c", "(a - b) - c"),
            ("a ** b ** c", "a ** (b ** c)"),
            ("a / b * c", "(a / b) * c"),
            ("a + b < c * d", "(a + b) < (c * d)"),
            ("-a ** b", "-(a ** b)"),
            ("a ** -b", "a ** (-b)"),
            ("-a * b", "(-a) * b"),
            ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
            ("a < b ? c : d + e", "(a < b) ? c : (d + e)"),
        ]:
            self.assertEqual(parse(text), parse(full), text)

    def test_calls(self):
        self.assertEqual(parse("f()"), ("call", "f", []))
        self.assertEqual(parse("f(1, x)"), ("call", "f", [("number", 1), ("name", "x")]))

    def test_plus_is_dropped(self):
        self.assertEqual(parse("+x"), ("name", "x"))

    def test_numbers(self):
        self.assertIsInstance(parse("2")[1], int)
        self.assertIsInstance(parse("2.0")[1], float)

    def test_faults(self):
        for text, position in [("", 0), ("1 +", 3), ("(1", 2), ("1 2", 2), ("f(1 2)", 4), ("a ? b", 5), (")", 0)]:
            with self.assertRaises(ParseError, msg=text) as caught:
                parse(text)
            self.assertEqual(caught.exception.position, position, text)


class TestShow(unittest.TestCase):
    def test_brackets_where_needed(self):
        for text in [
            "1 + 2 * x",
            "(1 + 2) * x",
            "a - (b - c)",
            "a - b - c",
            "(a ** b) ** c",
            "a ** b ** c",
            "-(a + b)",
            "-a * b",
            "max(a, b + 1)",
            "a < b ? c : d",
            "(a ? b : c) ? d : e",
            "a ? b : c ? d : e",
            "(a ? b : c) + 1",
            "2.5 * x",
        ]:
            self.assertEqual(show(parse(text)), text)

    def test_needless_brackets_go(self):
        self.assertEqual(show(parse("((a)) + (b * c)")), "a + b * c")
        self.assertEqual(show(("binary", "**", ("number", -2), ("number", 2))), "(-2) ** 2")


if __name__ == "__main__":
    unittest.main()
