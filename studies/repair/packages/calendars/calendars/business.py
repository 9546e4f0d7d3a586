"""Days on which people work."""

from datetime import date, timedelta

ONE_DAY = timedelta(days=1)
SATURDAY, SUNDAY = 5, 6


class BusinessCalendar:
    """Weekends and holidays are free; ``extra`` days are worked although they would be."""

    def __init__(self, holidays=(), weekend=(SATURDAY, SUNDAY), extra=()):
        self.holidays = set(holidays)
        self.weekend = frozenset(weekend)
        self.extra = set(extra)
        if len(self.weekend) >= 7:
            raise ValueError("a week needs a working day")

    def is_working(self, day):
        if day in self.extra:
            return True
        return day.weekday() not in self.weekend and day not in self.holidays

    def next_working(self, day):
        """The day itself when it is worked, else the first one after it."""
        while not self.is_working(day):
            day += ONE_DAY
        return day

    def previous_working(self, day):
        while not self.is_working(day):
            day -= ONE_DAY
        return day

    def add(self, day, count):
        """The day that is ``count`` working days later, or earlier when it is negative."""
        step = ONE_DAY if count >= 0 else -ONE_DAY
        left = abs(count)
        while left > 0:
            day += step
            if self.is_working(day):
                left -= 1
        return self.next_working(day) if count >= 0 else day

    def between(self, start, end):
        """Working days from ``start`` up to, and without, ``end``."""
        if end < start:
            return -self.between(end, start)
        count = 0
        day = start
        while day < end:
            if self.is_working(day):
                count += 1
            day += ONE_DAY
        return count

    def last_of_month(self, year, month):
        if month == 12:
            following = date(year + 1, 1, 1)
        else:
            following = date(year, month + 1, 1)
        return self.previous_working(following - ONE_DAY)

    def bridges(self, year):
        """Single working days between two free ones."""
        day = date(year, 1, 1)
        found = []
        while day.year == year:
            before, after = day - ONE_DAY, day + ONE_DAY
            if self.is_working(day) and not self.is_working(before) and not self.is_working(after):
                found.append(day)
            day += ONE_DAY
        return found


def easter(year):
    """Easter Sunday of the Gregorian calendar."""
    golden = year % 19
    century, rest = divmod(year, 100)
    leaps, odd = divmod(century, 4)
    shift = (century + 8) // 25
    moon = (19 * golden + century - leaps - (century - shift + 1) // 3 + 15) % 30
    quarter, left = divmod(rest, 4)
    weekday = (32 + 2 * odd + 2 * quarter - moon - left) % 7
    correction = (golden + 11 * moon + 22 * weekday) // 451
    month, day = divmod(moon + weekday - 7 * correction + 114, 31)
    return date(year, month, day + 1)
