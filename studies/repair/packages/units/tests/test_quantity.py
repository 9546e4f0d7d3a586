import unittest
from fractions import Fraction

from units import Quantity, UnitError, parse_quantity


class TestConversion(unittest.TestCase):
    def test_lengths(self):
        self.assertEqual(Quantity(1, "mi").to("km").value, Fraction(1_609_344, 10 ** 6))
        self.assertEqual(Quantity(12, "in").to("ft").value, 1)

    def test_speeds(self):
        self.assertEqual(str(Quantity(36, "km/h").to("m/s")), "10 m/s")

    def test_temperatures(self):
        self.assertEqual(Quantity(100, "degC").to("degF").value, 212)
        self.assertEqual(Quantity(-40, "degF").to("degC").value, -40)
        self.assertEqual(Quantity(0, "degC").to("K").text(2), "273.15 K")

    def test_what_does_not_fit(self):
        with self.assertRaisesRegex(UnitError, "m cannot be told in s"):
            Quantity(1, "m").to("s")
        with self.assertRaisesRegex(UnitError, "a number"):
            Quantity(1).to("s")

    def test_floats_mean_what_they_show(self):
        self.assertEqual(Quantity(0.1, "m"), Quantity(10, "cm"))


class TestArithmetic(unittest.TestCase):
    def test_sums_keep_the_first_unit(self):
        self.assertEqual(str(Quantity(1, "km") + Quantity(500, "m")), "1.5 km")
        self.assertEqual(str(Quantity(1, "km") - Quantity(1, "m")), "0.999 km")
        with self.assertRaises(UnitError):
            Quantity(1, "m") + Quantity(1, "s")
        with self.assertRaises(TypeError):
            Quantity(1, "m") + 1
        with self.assertRaises(TypeError):
            Quantity(1, "m") - 1

    def test_products(self):
        area = Quantity(2, "m") * Quantity(3, "m")
        self.assertEqual(area, Quantity(6, "m^2"))
        self.assertEqual(3 * Quantity(2, "m"), Quantity(6, "m"))
        self.assertEqual(Quantity(2, "m") * Quantity(3), Quantity(6, "m"))

    def test_products_of_fractions(self):
        way = Quantity(50, "km/h") * Quantity(2, "h")
        self.assertEqual(way, Quantity(100, "km"))
        self.assertEqual(Quantity(2, "h") * Quantity(50, "km/h"), Quantity(100, "km"))

    def test_quotients(self):
        self.assertEqual(Quantity(100, "km") / Quantity(2, "h"), Quantity(50, "km/h"))
        self.assertEqual(Quantity(6, "m") / 4, Quantity(1.5, "m"))
        self.assertEqual(Quantity(6, "m") / Quantity(3, "m"), Quantity(2))
        self.assertEqual(Quantity(6, "m/s") / Quantity(2, "m/h"), Quantity(10_800))
        with self.assertRaises(ZeroDivisionError):
            Quantity(1, "m") / Quantity(0, "s")

    def test_comparison(self):
        self.assertLess(Quantity(1, "m"), Quantity(1, "ft") * 4)
        self.assertEqual(Quantity(60, "min"), Quantity(1, "h"))
        self.assertNotEqual(Quantity(1, "m"), Quantity(1, "s"))
        self.assertNotEqual(Quantity(1, "m"), 1)
        with self.assertRaises(UnitError):
            Quantity(1, "m") < Quantity(2, "s")
        self.assertEqual(len({Quantity(60, "min"), Quantity(1, "h")}), 1)


class TestText(unittest.TestCase):
    def test_rounding(self):
        self.assertEqual(Quantity(Fraction(2, 3), "m").text(), "0.667 m")
        self.assertEqual(Quantity(Fraction(2, 3), "m").text(1), "0.7 m")
        self.assertEqual(Quantity(Fraction(1, 2)).text(), "0.5")
        self.assertEqual(Quantity(3, "m").text(), "3 m")

    def test_best_unit(self):
        units = ["m", "km", "cm"]
        self.assertEqual(str(Quantity(1500, "m").best(units)), "1.5 km")
        self.assertEqual(str(Quantity(0.5, "m").best(units)), "50 cm")
        self.assertEqual(str(Quantity(0.001, "m").best(units)), "0.1 cm")
        self.assertEqual(str(Quantity(-2, "m").best(units)), "-2 m")


class TestParse(unittest.TestCase):
    def test_number_and_unit(self):
        self.assertEqual(str(parse_quantity("3.5 km/h")), "3.5 km/h")
        self.assertEqual(parse_quantity("1e3m"), Quantity(1, "km"))
        self.assertEqual(parse_quantity("-.5 s").value, Fraction(-1, 2))
        self.assertEqual(parse_quantity(" 7 "), Quantity(7))

    def test_sums(self):
        self.assertEqual(parse_quantity("5 ft 11 in"), Quantity(71, "in"))
        self.assertEqual(str(parse_quantity("1 h 30 min")), "1.5 h")
        self.assertEqual(parse_quantity("2 m^2 50 m^2"), Quantity(52, "m^2"))

    def test_faults(self):
        for text in ("", "m", "3 parsec", "1 m + 2 s", "1 m 2 s"):
            with self.assertRaises(UnitError, msg=text):
                parse_quantity(text)


if __name__ == "__main__":
    unittest.main()
