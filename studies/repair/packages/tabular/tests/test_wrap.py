import unittest

from tabular import fill, justify, shorten, wrap

FOX = "the quick brown fox jumps over the lazy dog"


class TestWrap(unittest.TestCase):
    def test_lines_are_as_full_as_can_be(self):
        self.assertEqual(wrap(FOX, 15), ["the quick brown", "fox jumps over", "the lazy dog"])
        self.assertEqual(wrap(FOX, 14)[0], "the quick")

    def test_one_line(self):
        self.assertEqual(wrap("  a   b ", 20), ["a b"])
        self.assertEqual(wrap("", 20), [])

    def test_indents(self):
        lines = wrap(FOX, 16, indent="* ", hanging="  ")
        self.assertEqual(lines[0], "* the quick")
        self.assertEqual(lines[1], "  brown fox")
        self.assertTrue(all(len(line) <= 16 for line in lines))

    def test_long_words_are_cut(self):
        self.assertEqual(wrap("incomprehensible", 6), ["incom-", "prehe-", "nsible"])
        self.assertEqual(wrap("an incomprehensible", 10), ["an", "incompreh-", "ensible"])

    def test_narrow_lines_are_refused(self):
        with self.assertRaises(ValueError):
            wrap("a b", 1)
        with self.assertRaises(ValueError):
            wrap("a b", 5, hanging="    ")
        self.assertEqual(wrap("a b", 2), ["a", "b"])


class TestFill(unittest.TestCase):
    def test_paragraphs_stay_apart(self):
        text = "one two\nthree\n\n\nfour five\n"
        self.assertEqual(fill(text, 10), "one two\nthree\n\nfour five")

    def test_options_are_handed_on(self):
        self.assertEqual(fill("a b", 4, indent="> ", hanging="> "), "> a\n> b")


class TestJustify(unittest.TestCase):
    def test_blanks_grow_from_the_left(self):
        self.assertEqual(justify("a b c", 8), "a   b  c")
        self.assertEqual(justify("a b c", 7), "a  b  c")
        self.assertEqual(justify("a b c", 5), "a b c")

    def test_single_words_stay(self):
        self.assertEqual(justify(" word ", 9), "word")
        self.assertEqual(justify("", 9), "")

    def test_too_long(self):
        with self.assertRaises(ValueError):
            justify("aaa bbb", 6)


class TestShorten(unittest.TestCase):
    def test_what_fits_stays(self):
        self.assertEqual(shorten("a  b", 3), "a b")

    def test_words_stay_whole(self):
        self.assertEqual(shorten(FOX, 12), "the quick...")
        self.assertEqual(shorten(FOX, 14), "the quick...")
        self.assertEqual(shorten(FOX, 11), "the...")

    def test_first_word_is_cut(self):
        self.assertEqual(shorten("incomprehensible", 8), "incom...")

    def test_mark(self):
        self.assertEqual(shorten("one two three", 9, mark="~"), "one two~")
        with self.assertRaises(ValueError):
            shorten("one two three", 2)


if __name__ == "__main__":
    unittest.main()
