"""Roman numerals from 1 to 3999."""

SYMBOLS = [
    ("M", 1000),
    ("CM", 900),
    ("D", 500),
    ("CD", 400),
    ("C", 100),
    ("XC", 90),
    ("L", 50),
    ("XL", 40),
    ("X", 10),
    ("IX", 9),
    ("V", 5),
    ("IV", 4),
    ("I", 1),
]
VALUES = {symbol: value for symbol, value in SYMBOLS if len(symbol) == 1}


def to_roman(number):
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError("Roman numerals are of whole numbers")
    if number < 1 or number > 3999:
        raise ValueError(f"no Roman numeral for {number}")
    numeral = []
    for symbol, value in SYMBOLS:
        count, number = divmod(number, value)
        numeral.append(symbol * count)
    return "".join(numeral)


def from_roman(text, strict=True):
    """The value of a numeral. Without ``strict``, forms such as ``IIII`` are read too."""
    numeral = text.strip().upper()
    if not numeral:
        raise ValueError("an empty numeral")
    total = 0
    highest = 0
    for symbol in reversed(numeral):
        value = VALUES.get(symbol)
        if value is None:
            raise ValueError(f"{symbol!r} is no Roman digit")
        if value < highest:
            total -= value
        else:
            total += value
            highest = value
    if strict and (not 0 < total < 4000 or to_roman(total) != numeral):
        raise ValueError(f"{text!r} is not well formed")
    return total
