"""Sets of numbers as unions of intervals."""

from intervals.interval import Interval, parse_interval
from intervals.interval_set import IntervalSet

__all__ = ["Interval", "IntervalSet", "parse_interval"]
