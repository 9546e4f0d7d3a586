import unittest

from caches import ExpiringCache


class Clock:
    def __init__(self):
        self.now = 100

    def __call__(self):
        return self.now


class TestExpiringCache(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.cache = ExpiringCache(10, clock=self.clock)
        self.cache.put("a", 1)

    def test_entries_end(self):
        self.clock.now += 9
        self.assertEqual(self.cache.get("a"), 1)
        self.assertIn("a", self.cache)
        self.clock.now += 1
        self.assertIsNone(self.cache.get("a"))
        self.assertNotIn("a", self.cache)
        self.assertEqual(self.cache.get("a", "gone"), "gone")

    def test_own_lifetimes(self):
        self.cache.put("b", 2, lifetime=3)
        self.cache.put("c", 3, lifetime=30)
        self.clock.now += 5
        self.assertEqual([key in self.cache for key in "abc"], [True, False, True])
        self.assertEqual(self.cache.remaining("a"), 5)
        self.assertEqual(self.cache.remaining("b"), 0)
        self.assertEqual(self.cache.remaining("c"), 25)

    def test_purge(self):
        self.cache.put("b", 2, lifetime=3)
        self.cache.put("c", 3)
        self.assertEqual(self.cache.purge(), 0)
        self.clock.now += 4
        self.assertEqual(self.cache.purge(), 1)
        self.assertEqual(len(self.cache), 2)
        self.clock.now += 6
        self.assertEqual(self.cache.purge(), 2)
        self.assertEqual(len(self.cache), 0)

    def test_put_again(self):
        self.clock.now += 8
        self.cache.put("a", 5)
        self.clock.now += 8
        self.assertEqual(len(self.cache), 1)
        self.assertEqual(self.cache.get("a"), 5)

    def test_sliding(self):
        cache = ExpiringCache(10, clock=self.clock, sliding=True)
        cache.put("a", 1)
        for _ in range(4):
            self.clock.now += 6
            self.assertEqual(cache.get("a"), 1)
        self.clock.now += 10
        self.assertIsNone(cache.get("a"))

    def test_pop(self):
        self.assertEqual(self.cache.pop("a"), 1)
        self.assertEqual(self.cache.pop("a", 7), 7)
        self.cache.put("b", 2)
        self.clock.now += 10
        self.assertIsNone(self.cache.pop("b"))

    def test_lifetime(self):
        with self.assertRaises(ValueError):
            ExpiringCache(0)


if __name__ == "__main__":
    unittest.main()
