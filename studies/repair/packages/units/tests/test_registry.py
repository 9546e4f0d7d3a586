import unittest
from fractions import Fraction

from units import Dimension, Registry, UnitError, standard

LENGTH = Dimension(length=1)
TIME = Dimension(time=1)


class TestDimension(unittest.TestCase):
    def test_products(self):
        speed = LENGTH / TIME
        self.assertEqual(speed, Dimension(length=1, time=-1))
        self.assertEqual(speed * TIME, LENGTH)
        self.assertTrue((LENGTH / LENGTH).is_plain)
        self.assertFalse(LENGTH.is_plain)

    def test_powers(self):
        self.assertEqual((LENGTH ** 3).power_of("length"), 3)
        self.assertEqual((LENGTH ** 3).power_of("time"), 0)
        self.assertEqual(LENGTH ** 0, Dimension())

    def test_text(self):
        self.assertEqual(repr(LENGTH / TIME ** 2), "length time^-2")
        self.assertEqual(repr(Dimension()), "1")

    def test_as_keys(self):
        self.assertEqual(len({LENGTH / TIME, Dimension(time=-1, length=1), LENGTH}), 2)
        self.assertNotEqual(LENGTH, "length")


class TestRegistry(unittest.TestCase):
    def setUp(self):
        self.registry = standard()

    def test_prefixes(self):
        self.assertEqual(self.registry.lookup("km").factor, 1000)
        self.assertEqual(self.registry.lookup("ms").factor, Fraction(1, 1000))
        self.assertEqual(self.registry.lookup("kg").factor, 1)

    def test_names_before_prefixes(self):
        self.assertEqual(self.registry.lookup("min").factor, 60)

    def test_units_without_prefixes(self):
        for name in ("kft", "mday", "xm", "", "k"):
            with self.assertRaises(UnitError, msg=name):
                self.registry.lookup(name)

    def test_expressions(self):
        speed = self.registry.find("km/h")
        self.assertEqual(speed.factor, Fraction(1000, 3600))
        self.assertEqual(speed.dimension, LENGTH / TIME)
        self.assertEqual(self.registry.find("m^2").dimension, LENGTH ** 2)
        self.assertEqual(self.registry.find("m / s / s").dimension, LENGTH / TIME ** 2)
        self.assertEqual(self.registry.find("s^-1").dimension, Dimension(time=-1))
        self.assertEqual(self.registry.find("m/s*s").dimension, LENGTH)
        self.assertTrue(self.registry.find("").dimension.is_plain)

    def test_bad_expressions(self):
        for text in ("m^x", "m^", "m*y", "degC*m", "degC^2", "m/degF"):
            with self.assertRaises(UnitError, msg=text):
                self.registry.find(text)

    def test_derived(self):
        self.assertEqual(self.registry.find("N").dimension, self.registry.find("kg*m/s^2").dimension)
        self.assertEqual(self.registry.find("W*h").factor, 3600)
        self.assertEqual(self.registry.find("mL").factor, Fraction(1, 10 ** 6))

    def test_aliases(self):
        self.assertIs(self.registry.lookup("mile"), self.registry.lookup("mi"))

    def test_twice(self):
        with self.assertRaises(UnitError):
            self.registry.add("m", LENGTH)
        with self.assertRaises(UnitError):
            self.registry.add("metre", LENGTH, aliases=["m"])
        with self.assertRaises(UnitError):
            self.registry.lookup("metre")

    def test_own_units(self):
        registry = Registry()
        registry.add("cell", LENGTH, 3)
        registry.derive("block", "cell^2", 5)
        self.assertEqual(registry.lookup("block").factor, 45)

    def test_similar(self):
        self.assertEqual(self.registry.similar("km"), ["ft", "in", "m", "mi", "mile"])
        self.assertEqual(self.registry.similar("kg*m/s^2"), ["N"])


if __name__ == "__main__":
    unittest.main()
