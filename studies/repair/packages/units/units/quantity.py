"""Numbers with units."""

import re
from fractions import Fraction

from units.registry import UnitError, standard

_STANDARD = standard()
_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)


class Quantity:
    """A value in a unit. Arithmetic is exact."""

    def __init__(self, value, unit="", registry=_STANDARD):
        self.value = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
        self.unit = unit
        self._registry = registry
        self._found = registry.find(unit)

    @property
    def dimension(self):
        return self._found.dimension

    @property
    def base(self):
        """The value in base units."""
        return self._found.to_base(self.value)

    def to(self, unit):
        """The same quantity in another unit."""
        other = self._registry.find(unit)
        if other.dimension != self.dimension:
            raise UnitError(f"{self.unit or 'a number'} cannot be told in {unit or 'numbers'}")
        return Quantity(other.from_base(self.base), unit, self._registry)

    def __add__(self, other):
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.value + other.to(self.unit).value, self.unit, self._registry)

    def __sub__(self, other):
        if not isinstance(other, Quantity):
            return NotImplemented
        return self + -other

    def __neg__(self):
        return Quantity(-self.value, self.unit, self._registry)

    def __mul__(self, other):
        if isinstance(other, Quantity):
            unit = _joined(self.unit, other.unit, "*")
            return Quantity(self.value * other.value, unit, self._registry)
        return Quantity(self.value * Fraction(other), self.unit, self._registry)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, Quantity):
            if other.value == 0:
                raise ZeroDivisionError("the divisor is zero")
            if other.unit == self.unit:
                return Quantity(self.value / other.value, "", self._registry)
            unit = _joined(self.unit, _inverted(other.unit), "*")
            return Quantity(self.value / other.value, unit, self._registry)
        return Quantity(self.value / Fraction(other), self.unit, self._registry)

    def __eq__(self, other):
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.dimension == other.dimension and self.base == other.base

    def __lt__(self, other):
        if self.dimension != other.dimension:
            raise UnitError(f"{self.unit} and {other.unit} cannot be compared")
        return self.base < other.base

    def __hash__(self):
        return hash((self.dimension, self.base))

    def __str__(self):
        return self.text()

    def text(self, digits=3):
        """Rounded to some digits behind the point, without zeros at the end."""
        value = round(self.value, digits)
        if value.denominator == 1:
            number = str(value.numerator)
        else:
            number = f"{float(value):.{digits}f}".rstrip("0").rstrip(".")
        return f"{number} {self.unit}".strip()

    def best(self, units):
        """In the largest of some units in which the value is at least 1, else in the smallest."""
        told = sorted((self.to(unit) for unit in units), key=lambda one: abs(one.value))
        for quantity in told:
            if abs(quantity.value) >= 1:
                return quantity
        return told[-1]


def _inverted(unit):
    """The unit with all its powers turned around."""
    parts = []
    sign = 1
    for token in unit.replace("*", " * ").replace("/", " / ").split():
        if token in "*/":
            sign = 1 if token == "*" else -1
        else:
            name, _, exponent = token.partition("^")
            power = -sign * int(exponent or 1)
            parts.append(name if power == 1 else f"{name}^{power}")
    return "*".join(parts)


def _joined(first, second, sign):
    if not first or not second:
        return first or second
    if "/" in first:
        first = _inverted(_inverted(first))
    if "/" in second:
        second = _inverted(_inverted(second))
    return f"{first}{sign}{second}"


def parse_quantity(text, registry=_STANDARD):
    """Reads ``3.5 km/h``, and sums such as ``5 ft 11 in``."""
    total = None
    rest = text
    while rest.strip():
        match = _NUMBER.match(rest)
        if match is None:
            raise UnitError(f"expected a number at {rest.strip()!r}")
        number, rest = match.groups()
        end = re.search(r"(?<=[\w\s])\s(?=[+-]?[\d.])", rest)
        unit = rest if end is None else rest[:end.start()]
        rest = "" if end is None else rest[end.end():]
        quantity = Quantity(Fraction(number), unit.strip(), registry)
        total = quantity if total is None else total + quantity
    if total is None:
        raise UnitError("an empty quantity")
    return total
