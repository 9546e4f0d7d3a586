"""One interval with open or closed ends."""

from dataclasses import dataclass

INFINITY = float("inf")


@dataclass(frozen=True)
class Interval:
    """The numbers from ``low`` to ``high``; each end belongs to it or not."""

    low: float
    high: float
    closed_low: bool = True
    closed_high: bool = False

    def __post_init__(self):
        if self.low > self.high:
            raise ValueError(f"low end {self.low} is above high end {self.high}")

    @property
    def is_empty(self):
        return self.low == self.high and not (self.closed_low and self.closed_high)

    @property
    def length(self):
        return self.high - self.low

    def __contains__(self, number):
        if number == self.low and number == self.high:
            return self.closed_low and self.closed_high
        if number == self.low:
            return self.closed_low
        if number == self.high:
            return self.closed_high
        return self.low < number < self.high

    def __str__(self):
        left = "[" if self.closed_low else "("
        right = "]" if self.closed_high else ")"
        return f"{left}{self.low}, {self.high}{right}"

    def overlaps(self, other):
        """Whether the two have a number in common."""
        return not self.intersection(other).is_empty

    def touches(self, other):
        """Whether the union of the two has no gap."""
        first, second = sorted([self, other], key=lambda one: (one.low, not one.closed_low))
        if first.high > second.low:
            return True
        if first.high == second.low:
            return first.closed_high or second.closed_low
        return False

    def intersection(self, other):
        """What both contain; an empty interval where there is nothing."""
        if self.low > other.low:
            low, closed_low = self.low, self.closed_low
        elif self.low < other.low:
            low, closed_low = other.low, other.closed_low
        else:
            low, closed_low = self.low, self.closed_low and other.closed_low
        if self.high < other.high:
            high, closed_high = self.high, self.closed_high
        elif self.high > other.high:
            high, closed_high = other.high, other.closed_high
        else:
            high, closed_high = self.high, self.closed_high and other.closed_high
        if low > high:
            return Interval(low, low, False, False)
        return Interval(low, high, closed_low, closed_high)

    def hull(self, other):
        """The smallest interval that contains both."""
        if self.is_empty:
            return other
        if other.is_empty:
            return self
        low = min(self.low, other.low)
        high = max(self.high, other.high)
        closed_low = low in self or low in other
        closed_high = high in self or high in other
        return Interval(low, high, closed_low, closed_high)

    def shifted(self, by):
        return Interval(self.low + by, self.high + by, self.closed_low, self.closed_high)

    def split(self, at):
        """The parts below ``at`` and from ``at`` on."""
        if not self.low < at < self.high:
            raise ValueError(f"{at} is not inside of {self}")
        below = Interval(self.low, at, self.closed_low, False)
        above = Interval(at, self.high, True, self.closed_high)
        return below, above


def _end(text):
    text = text.strip()
    if text in ("inf", "+inf"):
        return INFINITY
    if text == "-inf":
        return -INFINITY
    number = float(text)
    return int(number) if number == int(number) else number


def parse_interval(text):
    """Reads ``[1, 3)`` and the like."""
    text = text.strip()
    if len(text) < 5 or text[0] not in "[(" or text[-1] not in "])":
        raise ValueError(f"no interval: {text!r}")
    parts = text[1:-1].split(",")
    if len(parts) != 2:
        raise ValueError(f"an interval has two ends: {text!r}")
    low, high = _end(parts[0]), _end(parts[1])
    closed_low = text[0] == "[" and low != -INFINITY
    closed_high = text[-1] == "]" and high != INFINITY
    return Interval(low, high, closed_low, closed_high)
