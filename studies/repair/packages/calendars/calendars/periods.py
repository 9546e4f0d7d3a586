"""Spans of days."""

from datetime import date, timedelta


class Period:
    """All days from ``start`` to ``end``, both included."""

    def __init__(self, start, end):
        if end < start:
            raise ValueError("a period ends on its first day or later")
        self.start = start
        self.end = end

    def __repr__(self):
        return f"Period({self.start.isoformat()}..{self.end.isoformat()})"

    def __eq__(self, other):
        if not isinstance(other, Period):
            return NotImplemented
        return (self.start, self.end) == (other.start, other.end)

    def __hash__(self):
        return hash((self.start, self.end))

    def __len__(self):
        return (self.end - self.start).days + 1

    def __contains__(self, day):
        return self.start <= day <= self.end

    def __iter__(self):
        for offset in range(len(self)):
            yield self.start + timedelta(days=offset)

    def overlap(self, other):
        """The days of both, or ``None``."""
        start = max(self.start, other.start)
        end = min(self.end, other.end)
        return Period(start, end) if start <= end else None

    def shift(self, days):
        return Period(self.start + timedelta(days=days), self.end + timedelta(days=days))

    def following(self):
        """The period of the same length that begins on the day after."""
        return self.shift(len(self))

    def split(self, length):
        """Pieces of ``length`` days; the last may be shorter."""
        if length < 1:
            raise ValueError("a piece has a day at least")
        start = self.start
        while start <= self.end:
            end = min(start + timedelta(days=length - 1), self.end)
            yield Period(start, end)
            start = end + timedelta(days=1)


def week_of(day, first_weekday=0):
    """The week that a day is in; weeks begin on Monday unless another weekday is given."""
    back = (day.weekday() - first_weekday) % 7
    start = day - timedelta(days=back)
    return Period(start, start + timedelta(days=6))


def month_of(day):
    start = day.replace(day=1)
    following = (start + timedelta(days=32)).replace(day=1)
    return Period(start, following - timedelta(days=1))


def quarter_of(day, first_month=1):
    """The quarter that a day is in, of a year that begins with ``first_month``."""
    back = (day.month - first_month) % 3
    month = day.month - back
    year = day.year
    if month < 1:
        month += 12
        year -= 1
    start = date(year, month, 1)
    last = start
    for _ in range(3):
        end = month_of(last).end
        last = end + timedelta(days=1)
    return Period(start, end)


def merge(periods):
    """As few periods as have the same days, in order."""
    merged = []
    for period in sorted(periods, key=lambda one: one.start):
        if merged and period.start <= merged[-1].end + timedelta(days=1):
            previous = merged.pop()
            period = Period(previous.start, max(previous.end, period.end))
        merged.append(period)
    return merged
