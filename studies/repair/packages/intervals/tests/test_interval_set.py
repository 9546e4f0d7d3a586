import unittest

from intervals import Interval, IntervalSet


class TestIntervalSet(unittest.TestCase):
    def setUp(self):
        self.numbers = IntervalSet.parse("[1, 3) u [5, 8]")

    def test_text_is_read_back(self):
        self.assertEqual(str(self.numbers), "[1, 3) u [5, 8]")
        self.assertEqual(str(IntervalSet.parse("")), "{}")

    def test_membership(self):
        for inside in (1, 2.5, 5, 8):
            self.assertIn(inside, self.numbers)
        for outside in (0, 3, 4, 8.5):
            self.assertNotIn(outside, self.numbers)

    def test_size(self):
        self.assertEqual(len(self.numbers), 2)
        self.assertEqual(self.numbers.measure, 5)
        self.assertTrue(self.numbers)
        self.assertFalse(IntervalSet())
        self.assertEqual(IntervalSet().measure, 0)

    def test_adding_joins_what_touches(self):
        self.numbers.add(Interval(3, 5))
        self.assertEqual(str(self.numbers), "[1, 8]")
        self.numbers.add(Interval(10, 11))
        self.numbers.add(Interval(-2, -1))
        self.assertEqual(str(self.numbers), "[-2, -1) u [1, 8] u [10, 11)")

    def test_adding_nothing(self):
        self.numbers.add(Interval(4, 4))
        self.assertEqual(len(self.numbers), 2)

    def test_removing_from_the_middle(self):
        self.numbers.remove(Interval(6, 7))
        self.assertEqual(str(self.numbers), "[1, 3) u [5, 6) u [7, 8]")

    def test_removing_a_point(self):
        self.numbers.remove(Interval(2, 2, True, True))
        self.assertEqual(str(self.numbers), "[1, 2) u (2, 3) u [5, 8]")

    def test_removing_everything(self):
        self.numbers.remove(Interval(0, 10))
        self.assertEqual(str(self.numbers), "{}")

    def test_union_and_equality(self):
        other = IntervalSet.parse("[2, 5)")
        self.assertEqual(self.numbers.union(other), IntervalSet.parse("[1, 8]"))
        self.assertEqual(str(self.numbers), "[1, 3) u [5, 8]")
        self.assertNotEqual(self.numbers, other)
        self.assertNotEqual(self.numbers, "text")

    def test_intersection(self):
        other = IntervalSet.parse("[2, 6) u [7, 9]")
        self.assertEqual(str(self.numbers.intersection(other)), "[2, 3) u [5, 6) u [7, 8]")

    def test_difference(self):
        other = IntervalSet.parse("[2, 6)")
        self.assertEqual(str(self.numbers.difference(other)), "[1, 2) u [6, 8]")

    def test_complement(self):
        self.assertEqual(str(self.numbers.complement()), "(-inf, 1) u [3, 5) u (8, inf)")
        self.assertEqual(self.numbers.complement().complement(), self.numbers)

    def test_gaps(self):
        self.numbers.add(Interval(10, 11, False))
        self.assertEqual([str(gap) for gap in self.numbers.gaps()], ["[3, 5)", "(8, 10]"])
        self.assertEqual(list(IntervalSet().gaps()), [])

    def test_nearest(self):
        self.assertEqual(self.numbers.nearest(2), 2)
        self.assertEqual(self.numbers.nearest(3.5), 3)
        self.assertEqual(self.numbers.nearest(4), 3)
        self.assertEqual(self.numbers.nearest(4.5), 5)
        self.assertEqual(self.numbers.nearest(100), 8)
        with self.assertRaises(ValueError):
            IntervalSet().nearest(1)


if __name__ == "__main__":
    unittest.main()
