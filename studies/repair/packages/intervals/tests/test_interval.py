import unittest

from intervals import Interval, parse_interval


class TestInterval(unittest.TestCase):
    def test_ends_belong_as_told(self):
        half_open = Interval(1, 3)
        self.assertIn(1, half_open)
        self.assertIn(2, half_open)
        self.assertNotIn(3, half_open)
        self.assertNotIn(0, half_open)
        self.assertIn(3, Interval(1, 3, False, True))
        self.assertNotIn(1, Interval(1, 3, False, True))

    def test_single_points(self):
        self.assertIn(2, Interval(2, 2, True, True))
        self.assertFalse(Interval(2, 2, True, True).is_empty)
        self.assertNotIn(2, Interval(2, 2))
        self.assertTrue(Interval(2, 2).is_empty)

    def test_ends_in_the_wrong_order_are_refused(self):
        with self.assertRaises(ValueError):
            Interval(3, 1)

    def test_text(self):
        self.assertEqual(str(Interval(1, 2)), "[1, 2)")
        self.assertEqual(str(Interval(1, 2, False, True)), "(1, 2]")

    def test_length(self):
        self.assertEqual(Interval(2, 7).length, 5)

    def test_overlap_and_touch(self):
        self.assertTrue(Interval(1, 3).overlaps(Interval(2, 4)))
        self.assertFalse(Interval(1, 3).overlaps(Interval(3, 4)))
        self.assertTrue(Interval(1, 3).touches(Interval(3, 4)))
        self.assertTrue(Interval(3, 4).touches(Interval(1, 3)))
        self.assertFalse(Interval(1, 3).touches(Interval(3, 4, False)))
        self.assertFalse(Interval(1, 3).touches(Interval(4, 5)))
        self.assertTrue(Interval(1, 5).touches(Interval(2, 3)))

    def test_intersection(self):
        self.assertEqual(Interval(1, 4).intersection(Interval(2, 6)), Interval(2, 4))
        self.assertEqual(Interval(2, 6).intersection(Interval(1, 4)), Interval(2, 4))
        same_ends = Interval(1, 4, True, True).intersection(Interval(1, 4, False, False))
        self.assertEqual(same_ends, Interval(1, 4, False, False))
        self.assertTrue(Interval(1, 2).intersection(Interval(5, 6)).is_empty)

    def test_hull(self):
        self.assertEqual(Interval(1, 2).hull(Interval(4, 5)), Interval(1, 5))
        closed = Interval(1, 5, False, True).hull(Interval(1, 5))
        self.assertEqual(closed, Interval(1, 5, True, True))
        self.assertEqual(Interval(7, 7).hull(Interval(1, 2)), Interval(1, 2))
        self.assertEqual(Interval(1, 2).hull(Interval(7, 7)), Interval(1, 2))

    def test_shift(self):
        self.assertEqual(Interval(1, 2, False, True).shifted(3), Interval(4, 5, False, True))

    def test_split(self):
        below, above = Interval(1, 5, False, True).split(3)
        self.assertEqual(below, Interval(1, 3, False, False))
        self.assertEqual(above, Interval(3, 5, True, True))
        for outside in (1, 5, 9):
            with self.assertRaises(ValueError):
                Interval(1, 5).split(outside)


class TestParse(unittest.TestCase):
    def test_brackets_tell_the_ends(self):
        self.assertEqual(parse_interval("[1, 3)"), Interval(1, 3))
        self.assertEqual(parse_interval(" (1,3] "), Interval(1, 3, False, True))

    def test_fractions_and_infinity(self):
        self.assertEqual(parse_interval("[0.5, 2]"), Interval(0.5, 2, True, True))
        self.assertEqual(str(parse_interval("[-inf, 2]")), "(-inf, 2]")
        self.assertEqual(str(parse_interval("[1, inf]")), "[1, inf)")

    def test_what_is_no_interval(self):
        for text in ("", "1, 2", "[1]", "[1, 2, 3]", "{1, 2}", "[1, 2"):
            with self.assertRaises(ValueError, msg=text):
                parse_interval(text)


if __name__ == "__main__":
    unittest.main()
