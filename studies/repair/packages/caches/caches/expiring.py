"""A cache whose entries live for some time."""

import heapq
import itertools
import time


class ExpiringCache:
    """Entries are there until their time to live is over. ``clock`` tells the seconds."""

    def __init__(self, lifetime, clock=time.monotonic, sliding=False):
        if lifetime <= 0:
            raise ValueError("the lifetime must be positive")
        self.lifetime = lifetime
        self.sliding = sliding
        self._clock = clock
        self._values = {}
        self._queue = []
        self._counter = itertools.count()

    def __len__(self):
        self.purge()
        return len(self._values)

    def __contains__(self, key):
        return self._alive(key) is not None

    def put(self, key, value, lifetime=None):
        end = self._clock() + (self.lifetime if lifetime is None else lifetime)
        self._values[key] = (value, end)
        heapq.heappush(self._queue, (end, next(self._counter), key))

    def get(self, key, default=None):
        found = self._alive(key)
        if found is None:
            return default
        value, _ = found
        if self.sliding:
            self.put(key, value)
        return value

    def remaining(self, key):
        """Seconds until the entry is gone; 0 where there is none."""
        found = self._alive(key)
        return 0 if found is None else found[1] - self._clock()

    def pop(self, key, default=None):
        found = self._alive(key)
        self._values.pop(key, None)
        return default if found is None else found[0]

    def purge(self):
        """Drops what is over, and says how many entries that were."""
        now = self._clock()
        dropped = 0
        while self._queue and self._queue[0][0] <= now:
            end, _, key = heapq.heappop(self._queue)
            current = self._values.get(key)
            # An entry that was put again has another end.
            if current is not None and current[1] == end:
                del self._values[key]
                dropped += 1
        return dropped

    def _alive(self, key):
        found = self._values.get(key)
        if found is None or found[1] <= self._clock():
            return None
        return found
