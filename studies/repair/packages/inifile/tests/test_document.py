import unittest

from inifile import Document, MissingKey, SettingsError


class TestDocument(unittest.TestCase):
    def setUp(self):
        self.document = Document()
        self.document.set("default", "root", "/srv")
        self.document.set("web", "home", "${root}/www")
        self.document.set("web", "port", 0x50)
        self.document.set("mail", "box", "${web:home}/mail")

    def test_defaults(self):
        self.assertEqual(self.document.get("web", "root"), "/srv")
        self.document.set("web", "root", "/other")
        self.assertEqual(self.document.get("web", "root"), "/other")
        self.assertEqual(self.document.get("mail", "root"), "/srv")

    def test_keys(self):
        self.assertEqual(self.document.keys("web"), ["home", "port", "root"])
        self.document.set("web", "root", "/other")
        self.assertEqual(self.document.keys("web"), ["home", "port", "root"])

    def test_references(self):
        self.assertEqual(self.document.get("web", "home"), "/srv/www")
        self.assertEqual(self.document.get("mail", "box"), "/srv/www/mail")
        self.assertEqual(self.document.raw("web", "home"), "${root}/www")

    def test_dollars(self):
        self.document.set("web", "price", "5$$ ${port}$$$$")
        self.assertEqual(self.document.get("web", "price"), "5$ 80$$")

    def test_bad_references(self):
        for value in ("$", "a$b", "${root", "${web:port"):
            self.document.set("web", "bad", value)
            with self.assertRaises(SettingsError, msg=value):
                self.document.get("web", "bad")

    def test_circles(self):
        self.document.set("a", "x", "${y}")
        self.document.set("a", "y", "${x}")
        with self.assertRaisesRegex(SettingsError, "circle"):
            self.document.get("a", "x")

    def test_long_chains_are_no_circles(self):
        self.document.set("a", "x0", "end")
        for number in range(8):
            self.document.set("a", f"x{number + 1}", f"${{x{number}}}")
        self.assertEqual(self.document.get("a", "x8"), "end")

    def test_missing(self):
        with self.assertRaises(MissingKey) as caught:
            self.document.get("web", "absent")
        self.assertEqual(str(caught.exception), "web.absent is not set")
        self.assertEqual(caught.exception.key, "absent")
        self.assertEqual(self.document.get("web", "absent", "else"), "else")
        self.assertEqual(self.document.get("web", "port", "else"), "80")
        self.assertFalse(self.document.has("nowhere", "absent"))
        self.assertTrue(self.document.has("nowhere", "root"))

    def test_remove(self):
        self.assertTrue(self.document.remove("WEB", "Port"))
        self.assertFalse(self.document.remove("web", "port"))
        self.assertFalse(self.document.remove("nowhere", "port"))
        self.assertFalse(self.document.has("web", "port"))

    def test_numbers(self):
        self.assertEqual(self.document.get_int("web", "port"), 80)
        self.document.set("web", "big", "1_000")
        self.document.set("web", "hex", "0x1F")
        self.assertEqual(self.document.get_int("web", "big"), 1000)
        self.assertEqual(self.document.get_int("web", "hex"), 31)
        self.assertEqual(self.document.get_int("web", "absent", 7), 7)
        with self.assertRaisesRegex(SettingsError, "whole number"):
            self.document.get_int("web", "home")

    def test_flags(self):
        for text, expected in [("Yes", True), ("1", True), ("off", False), ("FALSE", False)]:
            self.document.set("web", "flag", text)
            self.assertIs(self.document.get_bool("web", "flag"), expected)
        self.assertIs(self.document.get_bool("web", "absent", "on"), True)
        with self.assertRaises(SettingsError):
            self.document.get_bool("web", "port")

    def test_lists(self):
        self.document.set("web", "names", " a, b ,,c,")
        self.assertEqual(self.document.get_list("web", "names"), ["a", "b", "c"])
        self.document.set("web", "names", "a b;c")
        self.assertEqual(self.document.get_list("web", "names", ";"), ["a b", "c"])

    def test_merge(self):
        other = Document()
        other.set("web", "port", 443)
        other.set("new", "key", "value")
        self.document.merge(other)
        self.assertEqual(self.document.get("web", "port"), "443")
        self.assertEqual(self.document.get("web", "home"), "/srv/www")
        self.assertEqual(self.document.sections(), ["web", "mail", "new"])


if __name__ == "__main__":
    unittest.main()
