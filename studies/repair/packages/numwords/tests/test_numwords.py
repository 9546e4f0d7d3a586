from unittest import TestCase, main

from numwords import (
    from_roman,
    from_words,
    group_digits,
    human_size,
    ordinal,
    to_roman,
    to_words,
)


class RomanTest(TestCase):
    PAIRS = [
        (1, "I"),
        (4, "IV"),
        (9, "IX"),
        (14, "XIV"),
        (40, "XL"),
        (90, "XC"),
        (400, "CD"),
        (944, "CMXLIV"),
        (1987, "MCMLXXXVII"),
        (3999, "MMMCMXCIX"),
    ]

    def test_to_roman(self):
        for number, numeral in self.PAIRS:
            self.assertEqual(to_roman(number), numeral)

    def test_from_roman(self):
        for number, numeral in self.PAIRS:
            self.assertEqual(from_roman(numeral), number)

    def test_there_and_back(self):
        for number in range(1, 4000, 7):
            self.assertEqual(from_roman(to_roman(number)), number)

    def test_case_and_blanks(self):
        self.assertEqual(from_roman(" xiv\n"), 14)

    def test_limits(self):
        for number in (0, -1, 4000):
            self.assertRaises(ValueError, to_roman, number)
        for number in (1.5, "1", True):
            self.assertRaises(TypeError, to_roman, number)

    def test_malformed(self):
        for text in ("", "IIII", "IC", "VX", "ABC", "XXXX", "IXI"):
            self.assertRaises(ValueError, from_roman, text)

    def test_lenient(self):
        self.assertEqual(from_roman("IIII", strict=False), 4)
        self.assertEqual(from_roman("IC", strict=False), 99)
        self.assertEqual(from_roman("MMMM", strict=False), 4000)
        self.assertRaises(ValueError, from_roman, "IZ", strict=False)


class WordsTest(TestCase):
    PAIRS = [
        (0, "zero"),
        (7, "seven"),
        (13, "thirteen"),
        (20, "twenty"),
        (21, "twenty-one"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (342, "three hundred forty-two"),
        (1000, "one thousand"),
        (1001, "one thousand one"),
        (20500, "twenty thousand five hundred"),
        (1000000, "one million"),
        (7000012, "seven million twelve"),
        (-5, "minus five"),
    ]

    def test_to_words(self):
        for number, words in self.PAIRS:
            self.assertEqual(to_words(number), words)

    def test_from_words(self):
        for number, words in self.PAIRS:
            self.assertEqual(from_words(words), number)

    def test_british(self):
        self.assertEqual(to_words(342, british=True), "three hundred and forty-two")
        self.assertEqual(to_words(1001, british=True), "one thousand and one")
        self.assertEqual(to_words(1100, british=True), "one thousand one hundred")
        self.assertEqual(to_words(-101, british=True), "minus one hundred and one")
        self.assertEqual(to_words(5, british=True), "five")

    def test_variations(self):
        self.assertEqual(from_words("A hundred and One"), 101)
        self.assertEqual(from_words("two million, three thousand"), 2003000)
        self.assertEqual(from_words("hundred"), 100)
        self.assertEqual(from_words("thousand"), 1000)
        self.assertEqual(from_words("negative two"), -2)

    def test_limits(self):
        self.assertEqual(to_words(10 ** 15 - 1).split()[0], "nine")
        self.assertRaises(OverflowError, to_words, 10 ** 15)

    def test_what_is_no_number(self):
        for text in ("", "minus", "one elephant", "one thousand million", "two thousand thousand"):
            self.assertRaises(ValueError, from_words, text)


class GroupingTest(TestCase):
    def test_ordinals(self):
        expected = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 10: "10th", 11: "11th", 12: "12th"}
        expected.update({13: "13th", 20: "20th", 21: "21st", 112: "112th", 122: "122nd", 0: "0th"})
        for number, text in expected.items():
            self.assertEqual(ordinal(number), text)
        self.assertEqual(ordinal(-3), "-3rd")

    def test_groups(self):
        self.assertEqual(group_digits(0), "0")
        self.assertEqual(group_digits(999), "999")
        self.assertEqual(group_digits(1000), "1,000")
        self.assertEqual(group_digits(-1234567), "-1,234,567")
        self.assertEqual(group_digits(-123), "-123")
        self.assertEqual(group_digits(1234.5), "1,234.5")

    def test_other_groups(self):
        self.assertEqual(group_digits(1234567.25, separator=".", point=","), "1.234.567,25")
        self.assertEqual(group_digits(123456, separator=" ", size=4), "12 3456")

    def test_sizes(self):
        self.assertEqual(human_size(0), "0 B")
        self.assertEqual(human_size(1023), "1023 B")
        self.assertEqual(human_size(1024), "1.0 KiB")
        self.assertEqual(human_size(1536 * 1024), "1.5 MiB")
        self.assertEqual(human_size(-2048), "-2.0 KiB")
        self.assertEqual(human_size(5 * 1024 ** 5), "5120.0 TiB")

    def test_decimal_sizes(self):
        self.assertEqual(human_size(1000, binary=False), "1.0 kB")
        self.assertEqual(human_size(999, binary=False), "999 B")
        self.assertEqual(human_size(1234567, binary=False, digits=2), "1.23 MB")


if __name__ == "__main__":
    main()
