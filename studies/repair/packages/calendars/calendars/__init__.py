"""Working days, periods and repetitions of dates."""

from .business import BusinessCalendar
from .periods import Period, month_of, quarter_of, week_of
from .recurrence import every_month, every_week, nth_weekday

__all__ = [
    "BusinessCalendar",
    "Period",
    "every_month",
    "every_week",
    "month_of",
    "nth_weekday",
    "quarter_of",
    "week_of",
]
