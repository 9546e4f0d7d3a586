import unittest
from datetime import date

from calendars import BusinessCalendar
from calendars.business import easter


class TestBusinessCalendar(unittest.TestCase):
    def setUp(self):
        # 1 May 2025 is a Thursday.
        self.calendar = BusinessCalendar(
            holidays=[date(2025, 5, 1), date(2025, 5, 29)], extra=[date(2025, 5, 10)]
        )

    def test_working_days(self):
        working = [day for day in range(1, 13) if self.calendar.is_working(date(2025, 5, day))]
        self.assertEqual(working, [2, 5, 6, 7, 8, 9, 10, 12])

    def test_other_weekends(self):
        calendar = BusinessCalendar(weekend=[4])
        self.assertFalse(calendar.is_working(date(2025, 5, 2)))
        self.assertTrue(calendar.is_working(date(2025, 5, 3)))
        with self.assertRaises(ValueError):
            BusinessCalendar(weekend=range(7))

    def test_neighbours(self):
        self.assertEqual(self.calendar.next_working(date(2025, 5, 1)), date(2025, 5, 2))
        self.assertEqual(self.calendar.next_working(date(2025, 5, 2)), date(2025, 5, 2))
        self.assertEqual(self.calendar.next_working(date(2025, 5, 3)), date(2025, 5, 5))
        self.assertEqual(self.calendar.previous_working(date(2025, 5, 4)), date(2025, 5, 2))
        self.assertEqual(self.calendar.previous_working(date(2025, 5, 5)), date(2025, 5, 5))

    def test_add(self):
        self.assertEqual(self.calendar.add(date(2025, 5, 2), 1), date(2025, 5, 5))
        self.assertEqual(self.calendar.add(date(2025, 5, 2), 5), date(2025, 5, 9))
        self.assertEqual(self.calendar.add(date(2025, 5, 9), 2), date(2025, 5, 12))
        self.assertEqual(self.calendar.add(date(2025, 5, 3), 0), date(2025, 5, 5))

    def test_subtract(self):
        self.assertEqual(self.calendar.add(date(2025, 5, 5), -1), date(2025, 5, 2))
        self.assertEqual(self.calendar.add(date(2025, 5, 5), -2), date(2025, 4, 30))

    def test_between(self):
        self.assertEqual(self.calendar.between(date(2025, 5, 1), date(2025, 5, 6)), 2)
        self.assertEqual(self.calendar.between(date(2025, 5, 6), date(2025, 5, 1)), -2)
        self.assertEqual(self.calendar.between(date(2025, 5, 2), date(2025, 5, 2)), 0)

    def test_last_of_month(self):
        self.assertEqual(self.calendar.last_of_month(2025, 5), date(2025, 5, 30))
        self.assertEqual(self.calendar.last_of_month(2025, 8), date(2025, 8, 29))
        self.assertEqual(self.calendar.last_of_month(2025, 12), date(2025, 12, 31))

    def test_bridges(self):
        self.assertEqual(self.calendar.bridges(2025), [date(2025, 5, 2), date(2025, 5, 30)])


class TestEaster(unittest.TestCase):
    def test_known_years(self):
        known = {1961: (4, 2), 2000: (4, 23), 2019: (4, 21), 2024: (3, 31), 2025: (4, 20), 2038: (4, 25)}
        for year, (month, day) in known.items():
            self.assertEqual(easter(year), date(year, month, day))


if __name__ == "__main__":
    unittest.main()
