"""A cache that forgets what was not used for longest."""


class _Entry:
    __slots__ = ("key", "value", "cost", "newer", "older")

    def __init__(self, key, value, cost):
        self.key = key
        self.value = value
        self.cost = cost
        self.newer = None
        self.older = None


class RecentCache:
    """Holds entries up to a total cost; each entry costs 1 where nothing else is said."""

    def __init__(self, capacity, on_evict=None):
        if capacity <= 0:
            raise ValueError("the capacity must be positive")
        self.capacity = capacity
        self.cost = 0
        self.hits = 0
        self.misses = 0
        self._on_evict = on_evict
        self._entries = {}
        self._newest = None
        self._oldest = None

    def __len__(self):
        return len(self._entries)

    def __contains__(self, key):
        return key in self._entries

    def __iter__(self):
        """Keys from the most recent to the oldest."""
        entry = self._newest
        while entry is not None:
            yield entry.key
            entry = entry.older

    def get(self, key, default=None):
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return default
        self.hits += 1
        self._touch(entry)
        return entry.value

    def peek(self, key, default=None):
        """As :meth:`get`, without counting as a use."""
        entry = self._entries.get(key)
        return default if entry is None else entry.value

    def put(self, key, value, cost=1):
        """Whether the entry was taken: what costs more than the whole cache is not."""
        if cost > self.capacity:
            self.discard(key)
            return False
        entry = self._entries.get(key)
        if entry is not None:
            self.cost += cost - entry.cost
            entry.value = value
            entry.cost = cost
            self._touch(entry)
        else:
            entry = _Entry(key, value, cost)
            self._entries[key] = entry
            self.cost += cost
            self._link(entry)
        while self.cost > self.capacity:
            self._evict()
        return True

    def discard(self, key):
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self._unlink(entry)
        self.cost -= entry.cost
        return True

    def resize(self, capacity):
        if capacity <= 0:
            raise ValueError("the capacity must be positive")
        self.capacity = capacity
        while self.cost > self.capacity:
            self._evict()

    def clear(self):
        self._entries.clear()
        self._newest = self._oldest = None
        self.cost = 0

    @property
    def hit_rate(self):
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0

    def _evict(self):
        entry = self._oldest
        self.discard(entry.key)
        if self._on_evict is not None:
            self._on_evict(entry.key, entry.value)

    def _touch(self, entry):
        if entry is not self._newest:
            self._unlink(entry)
            self._link(entry)

    def _link(self, entry):
        entry.newer = None
        entry.older = self._newest
        if self._newest is not None:
            self._newest.newer = entry
        self._newest = entry
        if self._oldest is None:
            self._oldest = entry

    def _unlink(self, entry):
        if entry.newer is None:
            self._newest = entry.older
        else:
            entry.newer.older = entry.older
        if entry.older is None:
            self._oldest = entry.newer
        else:
            entry.older.newer = entry.newer
