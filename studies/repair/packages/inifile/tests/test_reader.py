import unittest

from inifile import SyntaxProblem, dumps, loads

TEXT = """\
# of the whole
name = Anna

[Server]
Host = example.org   ; the public one
port: 8080
path = /a;b
motto = "  wide  "
words =
    one
    two # inside

[empty]
"""


class TestLoads(unittest.TestCase):
    def setUp(self):
        self.document = loads(TEXT)

    def test_sections(self):
        self.assertEqual(self.document.sections(), ["server", "empty"])
        self.assertEqual(self.document.keys("empty"), ["name"])

    def test_keys_are_of_any_case(self):
        self.assertEqual(self.document.get("SERVER", "host"), "example.org")
        self.assertEqual(self.document.get("server", "HOST"), "example.org")

    def test_colons(self):
        self.assertEqual(self.document.get("server", "port"), "8080")

    def test_the_first_sign_counts(self):
        document = loads("url = http://a\ntime: 10=11")
        self.assertEqual(document.get("default", "url"), "http://a")
        self.assertEqual(document.get("default", "time"), "10=11")

    def test_comments(self):
        self.assertEqual(self.document.get("server", "path"), "/a;b")

    def test_quotes_keep_blanks(self):
        self.assertEqual(self.document.get("server", "motto"), "  wide  ")
        self.assertEqual(loads("a = \"'\"").get("default", "a"), "'")
        self.assertEqual(loads("a = '").get("default", "a"), "'")

    def test_values_of_several_lines(self):
        self.assertEqual(self.document.get("server", "words"), "one\ntwo")

    def test_comment_between_lines_of_a_value(self):
        document = loads("a = 1\n# no end\n  2\n")
        self.assertEqual(document.get("default", "a"), "1\n2")

    def test_what_cannot_be_read(self):
        cases = [
            ("a = 1\n\n  b", 3, "continues nothing"),
            ("[open", 1, "not closed"),
            ("\n[ ]", 2, "without a name"),
            ("word", 1, "neither"),
            ("= 3", 1, "without a key"),
            ("[a]\n  b", 2, "continues nothing"),
        ]
        for text, line, reason in cases:
            with self.subTest(text=text):
                with self.assertRaises(SyntaxProblem) as caught:
                    loads(text)
                self.assertEqual(caught.exception.line, line)
                self.assertIn(reason, str(caught.exception))


class TestDumps(unittest.TestCase):
    def test_what_is_written_is_read_back(self):
        document = loads(TEXT)
        again = loads(dumps(document))
        self.assertEqual(list(again.items()), list(document.items()))

    def test_text(self):
        document = loads("[a]\nx=1\ny=p #q\n[b]\nz = 'r #s'\nlines = 1\n  2")
        expected = '[a]\nx = 1\ny = p\n\n[b]\nz = "r #s"\nlines = 1\n    2\n'
        self.assertEqual(dumps(document), expected)


if __name__ == "__main__":
    unittest.main()
