import unittest

from tabular import render, render_records, transpose


class TestTranspose(unittest.TestCase):
    def test_short_rows_are_filled_up(self):
        self.assertEqual(transpose([[1, 2], [3]]), [[1, 3], [2, None]])
        self.assertEqual(transpose([[1], [2, 3]], missing=0), [[1, 2], [0, 3]])
        self.assertEqual(transpose([]), [])


class TestRender(unittest.TestCase):
    def test_numbers_stand_on_the_right(self):
        self.assertEqual(render([["a", 1], ["bcd", 100]]), "a      1\nbcd  100")

    def test_header_and_rule(self):
        expected = "name  n\n----  -\nx     1"
        self.assertEqual(render([["x", 1]], header=["name", "n"]), expected)

    def test_values(self):
        text = render([[None, True, 0.5], ["a", False, 12.345]])
        self.assertEqual(text, "   yes   0.50\na  no   12.35".replace("12.35", "12.35"))

    def test_digits(self):
        self.assertEqual(render([[1.25]], digits=1), "1.2")
        self.assertEqual(render([[2.0]], digits=0), "2")

    def test_alignment(self):
        rows = [["a", "b"], ["ccc", "ddd"]]
        self.assertEqual(render(rows, align=["right", "center"]), "  a   b\nccc  ddd")
        with self.assertRaises(ValueError):
            render(rows, align=["right", "up"])

    def test_gap(self):
        self.assertEqual(render([["a", "b"]], gap=4), "a    b")

    def test_cells_are_shortened(self):
        self.assertEqual(render([["one two three", 1]], max_width=10), "one two...  1")

    def test_headings_for_all_columns(self):
        with self.assertRaises(ValueError):
            render([[1, 2]], header=["only"])

    def test_flags_are_no_numbers(self):
        self.assertEqual(render([[True], [False]]), "yes\nno")

    def test_empty_cells_do_not_count(self):
        self.assertEqual(render([[None], [5], [10]]), "\n 5\n10")


class TestRecords(unittest.TestCase):
    def test_fields_in_order_of_appearance(self):
        records = [{"b": 1}, {"a": "x", "b": 22}]
        self.assertEqual(render_records(records), " b  a\n--  -\n 1\n22  x")

    def test_chosen_fields(self):
        records = [{"a": 1, "b": 2}]
        self.assertEqual(render_records(records, fields=["b"]), "b\n-\n2")


if __name__ == "__main__":
    unittest.main()
