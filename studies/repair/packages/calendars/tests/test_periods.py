import unittest
from datetime import date

from calendars import Period, month_of, quarter_of, week_of
from calendars.periods import merge


def period(first, last, month=3):
    return Period(date(2024, month, first), date(2024, month, last))


class TestPeriod(unittest.TestCase):
    def test_days(self):
        days = period(1, 3)
        self.assertEqual(len(days), 3)
        self.assertEqual([day.day for day in days], [1, 2, 3])
        self.assertIn(date(2024, 3, 1), days)
        self.assertIn(date(2024, 3, 3), days)
        self.assertNotIn(date(2024, 3, 4), days)
        self.assertNotIn(date(2024, 2, 29), days)

    def test_single_day(self):
        self.assertEqual(len(period(5, 5)), 1)

    def test_order(self):
        with self.assertRaises(ValueError):
            period(3, 1)

    def test_equality(self):
        self.assertEqual(period(1, 3), period(1, 3))
        self.assertNotEqual(period(1, 3), period(1, 4))
        self.assertNotEqual(period(1, 3), 5)
        self.assertEqual(len({period(1, 3), period(1, 3), period(2, 3)}), 2)

    def test_text(self):
        self.assertEqual(repr(period(1, 3)), "Period(2024-03-01..2024-03-03)")

    def test_overlap(self):
        self.assertEqual(period(1, 5).overlap(period(4, 9)), period(4, 5))
        self.assertEqual(period(1, 5).overlap(period(5, 9)), period(5, 5))
        self.assertIsNone(period(1, 5).overlap(period(6, 9)))
        self.assertEqual(period(1, 9).overlap(period(3, 4)), period(3, 4))

    def test_moves(self):
        self.assertEqual(period(1, 3).shift(2), period(3, 5))
        self.assertEqual(period(1, 3).shift(-1).start, date(2024, 2, 29))
        self.assertEqual(period(1, 3).following(), period(4, 6))

    def test_split(self):
        self.assertEqual(list(period(1, 7).split(3)), [period(1, 3), period(4, 6), period(7, 7)])
        self.assertEqual(list(period(1, 2).split(5)), [period(1, 2)])
        with self.assertRaises(ValueError):
            list(period(1, 2).split(0))


class TestNamedPeriods(unittest.TestCase):
    def test_weeks(self):
        wednesday = date(2024, 3, 6)
        self.assertEqual(week_of(wednesday), period(4, 10))
        self.assertEqual(week_of(date(2024, 3, 4)), period(4, 10))
        self.assertEqual(week_of(wednesday, first_weekday=6), period(3, 9))
        self.assertEqual(week_of(date(2024, 3, 10), first_weekday=6), period(10, 16))

    def test_months(self):
        self.assertEqual(month_of(date(2024, 2, 10)), period(1, 29, month=2))
        self.assertEqual(len(month_of(date(2023, 2, 1))), 28)
        self.assertEqual(month_of(date(2024, 12, 31)), period(1, 31, month=12))

    def test_quarters(self):
        self.assertEqual(
            quarter_of(date(2024, 5, 9)), Period(date(2024, 4, 1), date(2024, 6, 30))
        )
        self.assertEqual(
            quarter_of(date(2024, 12, 31)), Period(date(2024, 10, 1), date(2024, 12, 31))
        )

    def test_quarters_of_other_years(self):
        january = date(2024, 1, 15)
        self.assertEqual(
            quarter_of(january, first_month=2), Period(date(2023, 11, 1), date(2024, 1, 31))
        )
        self.assertEqual(
            quarter_of(january, first_month=12), Period(date(2023, 12, 1), date(2024, 2, 29))
        )


class TestMerge(unittest.TestCase):
    def test_neighbours_and_overlaps_become_one(self):
        merged = merge([period(10, 12), period(1, 3), period(4, 6), period(5, 5), period(8, 8)])
        self.assertEqual(merged, [period(1, 6), period(8, 8), period(10, 12)])

    def test_nothing(self):
        self.assertEqual(merge([]), [])


if __name__ == "__main__":
    unittest.main()
