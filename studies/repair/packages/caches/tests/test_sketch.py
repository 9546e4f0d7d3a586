import unittest

from caches import FrequencySketch


class TestFrequencySketch(unittest.TestCase):
    def test_counts(self):
        sketch = FrequencySketch()
        for _ in range(5):
            sketch.add("often")
        sketch.add("once")
        self.assertEqual(sketch.estimate("often"), 5)
        self.assertEqual(sketch.estimate("once"), 1)
        self.assertEqual(sketch.estimate("never"), 0)
        self.assertEqual(sketch.seen, 6)

    def test_never_too_low(self):
        sketch = FrequencySketch(width=8, depth=2)
        for number in range(20):
            for _ in range(number % 4):
                sketch.add(number)
        for number in range(20):
            self.assertGreaterEqual(sketch.estimate(number), number % 4)

    def test_limit(self):
        sketch = FrequencySketch(limit=3)
        for _ in range(9):
            sketch.add("a")
        self.assertEqual(sketch.estimate("a"), 3)

    def test_age(self):
        sketch = FrequencySketch()
        for _ in range(7):
            sketch.add("a")
        sketch.age()
        self.assertEqual(sketch.estimate("a"), 3)
        self.assertEqual(sketch.seen, 3)

    def test_ages_by_itself(self):
        sketch = FrequencySketch(width=1, depth=1)
        for _ in range(9):
            sketch.add("a")
        self.assertEqual(sketch.estimate("a"), 9)
        sketch.add("a")
        self.assertEqual(sketch.estimate("a"), 5)
        self.assertEqual(sketch.seen, 5)

    def test_more_popular(self):
        sketch = FrequencySketch()
        sketch.add("b")
        self.assertEqual(sketch.more_popular("a", "b"), "b")
        self.assertEqual(sketch.more_popular("b", "a"), "b")
        self.assertEqual(sketch.more_popular("x", "y"), "x")

    def test_shape(self):
        for width, depth in [(0, 1), (1, 0)]:
            with self.assertRaises(ValueError):
                FrequencySketch(width, depth)


if __name__ == "__main__":
    unittest.main()
