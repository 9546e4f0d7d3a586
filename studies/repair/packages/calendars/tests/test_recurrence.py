import unittest
from datetime import date
from itertools import islice

from calendars import every_month, every_week, nth_weekday

MONDAY, WEDNESDAY, FRIDAY = 0, 2, 4


class TestEveryWeek(unittest.TestCase):
    def test_weekdays_in_order(self):
        # 1 January 2025 is a Wednesday.
        days = every_week(date(2025, 1, 1), [FRIDAY, MONDAY])
        self.assertEqual([day.day for day in islice(days, 4)], [3, 6, 10, 13])

    def test_start_counts(self):
        days = every_week(date(2025, 1, 1), [WEDNESDAY])
        self.assertEqual(next(days), date(2025, 1, 1))

    def test_interval(self):
        days = every_week(date(2025, 1, 1), [MONDAY, WEDNESDAY], interval=2)
        self.assertEqual([day.day for day in islice(days, 4)], [1, 13, 15, 27])

    def test_until(self):
        days = every_week(date(2025, 1, 1), [WEDNESDAY], until=date(2025, 1, 15))
        self.assertEqual([day.day for day in days], [1, 8, 15])

    def test_no_weekdays(self):
        self.assertEqual(list(every_week(date(2025, 1, 1), [])), [])

    def test_bad_interval(self):
        with self.assertRaises(ValueError):
            next(every_week(date(2025, 1, 1), [MONDAY], interval=0))


class TestEveryMonth(unittest.TestCase):
    def test_same_day(self):
        days = list(every_month(date(2024, 11, 5), count=3))
        self.assertEqual(days, [date(2024, 11, 5), date(2024, 12, 5), date(2025, 1, 5)])

    def test_other_day(self):
        days = list(every_month(date(2024, 11, 5), day=3, count=2))
        self.assertEqual(days, [date(2024, 12, 3), date(2025, 1, 3)])

    def test_interval(self):
        days = list(every_month(date(2024, 11, 5), interval=6, count=2))
        self.assertEqual(days[1], date(2025, 5, 5))

    def test_short_months(self):
        days = list(every_month(date(2025, 1, 31), count=4))
        self.assertEqual([(day.month, day.day) for day in days], [(1, 31), (2, 28), (3, 31), (4, 30)])
        days = list(every_month(date(2025, 1, 31), count=3, short="skip"))
        self.assertEqual([day.month for day in days], [1, 3, 5])

    def test_from_the_end(self):
        days = list(every_month(date(2024, 1, 10), day=-1, count=2))
        self.assertEqual([day.day for day in days], [31, 29])
        days = list(every_month(date(2024, 1, 10), day=-31, count=2))
        self.assertEqual(days, [date(2024, 2, 1), date(2024, 3, 1)])

    def test_rules(self):
        with self.assertRaises(ValueError):
            next(every_month(date(2024, 1, 1), short="never"))


class TestNthWeekday(unittest.TestCase):
    def test_from_the_beginning(self):
        self.assertEqual(nth_weekday(2025, 1, WEDNESDAY, 1), date(2025, 1, 1))
        self.assertEqual(nth_weekday(2025, 1, MONDAY, 3), date(2025, 1, 20))
        self.assertEqual(nth_weekday(2025, 1, FRIDAY, 5), date(2025, 1, 31))

    def test_from_the_end(self):
        self.assertEqual(nth_weekday(2025, 1, FRIDAY, -1), date(2025, 1, 31))
        self.assertEqual(nth_weekday(2025, 1, MONDAY, -2), date(2025, 1, 20))

    def test_no_such_day(self):
        for n in (0, 5, -5):
            with self.assertRaises(ValueError):
                nth_weekday(2025, 1, MONDAY, n)


if __name__ == "__main__":
    unittest.main()
