"""How often something was seen, roughly, in little memory."""

import zlib


class FrequencySketch:
    """Counters in rows; a key has one counter a row, and the least of them is its estimate."""

    def __init__(self, width=64, depth=4, limit=15):
        if width < 1 or depth < 1:
            raise ValueError("the sketch needs a width and a depth")
        self.width = width
        self.depth = depth
        self.limit = limit
        self.seen = 0
        self._rows = [[0] * width for _ in range(depth)]

    def _places(self, key):
        data = repr(key).encode()
        for row in range(self.depth):
            yield row, zlib.crc32(data, row * 0x9E37) % self.width

    def add(self, key):
        """Counts a key; only its smallest counters grow, and none above the limit."""
        estimate = self.estimate(key)
        if estimate < self.limit:
            for row, place in self._places(key):
                if self._rows[row][place] == estimate:
                    self._rows[row][place] += 1
        self.seen += 1
        if self.seen >= 10 * self.width:
            self.age()

    def estimate(self, key):
        return min(self._rows[row][place] for row, place in self._places(key))

    def age(self):
        """Halves everything, so that what was popular long ago is forgotten."""
        for row in self._rows:
            for place, count in enumerate(row):
                row[place] = count // 2
        self.seen //= 2

    def more_popular(self, first, second):
        """The one of two keys that was seen more often; the first when they are equal."""
        return second if self.estimate(second) > self.estimate(first) else first
