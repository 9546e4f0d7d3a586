import unittest

from caches import RecentCache, memoize


class TestRecentCache(unittest.TestCase):
    def setUp(self):
        self.evicted = []
        self.cache = RecentCache(3, on_evict=lambda key, value: self.evicted.append((key, value)))
        for key in "abc":
            self.cache.put(key, key.upper())

    def test_order(self):
        self.assertEqual(list(self.cache), ["c", "b", "a"])
        self.cache.get("a")
        self.assertEqual(list(self.cache), ["a", "c", "b"])
        self.cache.get("c")
        self.assertEqual(list(self.cache), ["c", "a", "b"])

    def test_the_oldest_goes(self):
        self.cache.get("a")
        self.cache.put("d", "D")
        self.assertEqual(self.evicted, [("b", "B")])
        self.assertEqual(list(self.cache), ["d", "a", "c"])
        self.assertEqual(len(self.cache), 3)

    def test_peek_is_no_use(self):
        self.assertEqual(self.cache.peek("a"), "A")
        self.assertEqual(self.cache.peek("x", 5), 5)
        self.cache.put("d", "D")
        self.assertNotIn("a", self.cache)
        self.assertEqual((self.cache.hits, self.cache.misses), (0, 0))

    def test_put_again(self):
        self.cache.put("a", "other")
        self.assertEqual(self.cache.get("a"), "other")
        self.assertEqual(len(self.cache), 3)
        self.assertEqual(list(self.cache)[0], "a")

    def test_costs(self):
        self.assertTrue(self.cache.put("d", "D", cost=2))
        self.assertEqual(list(self.cache), ["d", "c"])
        self.assertEqual(self.cache.cost, 3)
        self.cache.put("d", "D", cost=1)
        self.assertEqual(self.cache.cost, 2)
        self.assertFalse(self.cache.put("c", "C", cost=4))
        self.assertEqual(list(self.cache), ["d"])

    def test_discard(self):
        self.assertTrue(self.cache.discard("b"))
        self.assertFalse(self.cache.discard("b"))
        self.assertEqual(list(self.cache), ["c", "a"])
        self.assertEqual(self.cache.cost, 2)
        self.assertTrue(self.cache.discard("a"))
        self.assertTrue(self.cache.discard("c"))
        self.cache.put("z", 1)
        self.assertEqual(list(self.cache), ["z"])

    def test_resize(self):
        self.cache.resize(1)
        self.assertEqual(list(self.cache), ["c"])
        self.assertEqual([key for key, _ in self.evicted], ["a", "b"])
        with self.assertRaises(ValueError):
            self.cache.resize(0)

    def test_hit_rate(self):
        self.assertEqual(self.cache.hit_rate, 0.0)
        self.cache.get("a")
        self.cache.get("b")
        self.cache.get("x")
        self.cache.get("y")
        self.assertEqual(self.cache.hit_rate, 0.5)

    def test_clear(self):
        self.cache.clear()
        self.assertEqual(len(self.cache), 0)
        self.assertEqual(list(self.cache), [])
        self.cache.put("q", 1, cost=3)
        self.assertEqual(list(self.cache), ["q"])
        self.assertEqual(self.evicted, [])

    def test_capacity(self):
        for capacity in (0, -1):
            with self.assertRaises(ValueError):
                RecentCache(capacity)


class TestMemoize(unittest.TestCase):
    def test_results_are_kept(self):
        calls = []

        @memoize()
        def add(a, b=0):
            """Adds."""
            calls.append((a, b))
            return a + b

        self.assertEqual([add(1, 2), add(1, 2), add(1, b=2), add(1, b=2)], [3, 3, 3, 3])
        self.assertEqual(calls, [(1, 2), (1, 2)])
        self.assertEqual(add.__doc__, "Adds.")
        self.assertEqual(add.cache.hits, 2)

    def test_types(self):
        @memoize(typed=True)
        def kind(value, other=None):
            return type(value).__name__ + type(other).__name__

        self.assertEqual(kind(1), "intNoneType")
        self.assertEqual(kind(1.0), "floatNoneType")
        self.assertEqual(kind(1, other=2), "intint")
        self.assertEqual(kind(1, other=2.0), "intfloat")

    def test_capacity(self):
        calls = []

        @memoize(capacity=2)
        def square(x):
            calls.append(x)
            return x * x

        for x in (1, 2, 3, 1):
            square(x)
        self.assertEqual(calls, [1, 2, 3, 1])

    def test_none_is_a_result(self):
        calls = []

        @memoize()
        def nothing(x):
            calls.append(x)

        nothing(1)
        nothing(1)
        self.assertEqual(calls, [1])

    def test_ignored_arguments(self):
        calls = []

        @memoize(ignore=("verbose",))
        def double(x, verbose=False):
            calls.append(verbose)
            return 2 * x

        self.assertEqual(double(2, verbose=True), 4)
        self.assertEqual(double(2, verbose=False), 4)
        self.assertEqual(calls, [True])


if __name__ == "__main__":
    unittest.main()
