"""Unions of intervals, kept sorted and without overlaps."""

from bisect import bisect_right

from intervals.interval import INFINITY, Interval, parse_interval


class IntervalSet:
    """A set of numbers. Its intervals are disjoint, in order, and never touch."""

    def __init__(self, intervals=()):
        self._parts = []
        for interval in intervals:
            self.add(interval)

    @classmethod
    def parse(cls, text):
        """Reads ``[1, 2) u [4, 5]``; an empty text is the empty set."""
        pieces = [piece for piece in text.split("u") if piece.strip()]
        return cls(parse_interval(piece) for piece in pieces)

    def __iter__(self):
        return iter(self._parts)

    def __len__(self):
        return len(self._parts)

    def __bool__(self):
        return bool(self._parts)

    def __eq__(self, other):
        if not isinstance(other, IntervalSet):
            return NotImplemented
        return self._parts == other._parts

    def __contains__(self, number):
        place = bisect_right([part.low for part in self._parts], number)
        around = self._parts[max(place - 2, 0):place]
        return any(number in part for part in around)

    def __str__(self):
        return " u ".join(str(part) for part in self._parts) or "{}"

    @property
    def measure(self):
        """The lengths of all intervals together."""
        return sum(part.length for part in self._parts)

    def add(self, interval):
        """Adds the numbers of an interval."""
        if interval.is_empty:
            return
        before, after = [], []
        for part in self._parts:
            if part.touches(interval):
                interval = part.hull(interval)
            elif part.low < interval.low:
                before.append(part)
            else:
                after.append(part)
        self._parts = before + [interval] + after

    def remove(self, interval):
        """Removes the numbers of an interval."""
        if interval.is_empty:
            return
        left = []
        for part in self._parts:
            common = part.intersection(interval)
            if common.is_empty:
                left.append(part)
                continue
            below = Interval(part.low, common.low, part.closed_low, not common.closed_low)
            above = Interval(common.high, part.high, not common.closed_high, part.closed_high)
            left.extend(piece for piece in (below, above) if not piece.is_empty)
        self._parts = left

    def union(self, other):
        result = IntervalSet(self)
        for interval in other:
            result.add(interval)
        return result

    def intersection(self, other):
        result = IntervalSet()
        for mine in self:
            for theirs in other:
                result.add(mine.intersection(theirs))
        return result

    def difference(self, other):
        result = IntervalSet(self)
        for interval in other:
            result.remove(interval)
        return result

    def complement(self):
        """All other numbers."""
        everything = IntervalSet([Interval(-INFINITY, INFINITY, False, False)])
        return everything.difference(self)

    def gaps(self):
        """The intervals between neighbours, in order."""
        for left, right in zip(self._parts, self._parts[1:]):
            yield Interval(left.high, right.low, not left.closed_high, not right.closed_low)

    def nearest(self, number):
        """The closest number at an end of an interval, or ``number`` itself when it is in the set."""
        if not self._parts:
            raise ValueError("the set is empty")
        if number in self:
            return number
        ends = [end for part in self._parts for end in (part.low, part.high)]
        return min(ends, key=lambda end: (abs(end - number), end))
