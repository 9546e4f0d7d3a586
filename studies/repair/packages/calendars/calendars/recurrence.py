"""Dates that come again."""

import itertools
from datetime import date, timedelta

from .periods import month_of


def every_week(start, weekdays, interval=1, until=None):
    """Days on these weekdays from ``start`` on, in every ``interval``-th week."""
    if interval < 1:
        raise ValueError("the interval is a number of weeks")
    wanted = sorted(set(weekdays))
    monday = start - timedelta(days=start.weekday())
    for week in itertools.count(0, interval):
        for weekday in wanted:
            day = monday + timedelta(weeks=week, days=weekday)
            if day < start:
                continue
            if until is not None and day > until:
                return
            yield day
        if not wanted:
            return


def _add_months(year, month, count):
    index = year * 12 + month - 1 + count
    return index // 12, index % 12 + 1


def every_month(start, day=None, interval=1, count=None, short="last"):
    """The same day of every ``interval``-th month.

    Negative days are counted from the end. In months that are too short it is their last day,
    or none with ``short="skip"``.
    """
    if short not in ("last", "skip"):
        raise ValueError(f"unknown rule for short months: {short!r}")
    wanted = start.day if day is None else day
    made = 0
    for step in itertools.count(0, interval):
        if count is not None and made >= count:
            return
        year, month = _add_months(start.year, start.month, step)
        length = month_of(date(year, month, 1)).end.day
        number = wanted if wanted > 0 else length + 1 + wanted
        if number > length or number < 1:
            if short == "skip":
                continue
            number = max(1, min(number, length))
        found = date(year, month, number)
        if found < start:
            continue
        made += 1
        yield found


def nth_weekday(year, month, weekday, n):
    """The ``n``-th such weekday of a month; the last for -1."""
    month_days = month_of(date(year, month, 1))
    if n > 0:
        first = month_days.start
        offset = (weekday - first.weekday()) % 7
        day = first + timedelta(days=offset + 7 * (n - 1))
    elif n < 0:
        last = month_days.end
        offset = (last.weekday() - weekday) % 7
        day = last - timedelta(days=offset + 7 * (-n - 1))
    else:
        raise ValueError("weekdays are counted from 1 or from -1")
    if day not in month_days:
        raise ValueError(f"{year}-{month:02} has no such day")
    return day
