"""Units by name."""

from fractions import Fraction

from units.dimension import Dimension

PREFIXES = {
    "n": Fraction(1, 10 ** 9),
    "u": Fraction(1, 10 ** 6),
    "m": Fraction(1, 1000),
    "c": Fraction(1, 100),
    "k": Fraction(1000),
    "M": Fraction(10 ** 6),
    "G": Fraction(10 ** 9),
}


class UnitError(ValueError):
    """A unit that is unknown, or does not fit."""


class Unit:
    """A factor to the base units of a dimension, and where its zero is."""

    def __init__(self, name, dimension, factor, offset=0):
        self.name = name
        self.dimension = dimension
        self.factor = Fraction(factor)
        self.offset = Fraction(offset)

    def to_base(self, value):
        return (value + self.offset) * self.factor

    def from_base(self, value):
        return value / self.factor - self.offset


class Registry:
    """Known units; those that take prefixes are known with all of them."""

    def __init__(self):
        self._units = {}
        self._prefixed = set()

    def add(self, name, dimension, factor=1, offset=0, prefixes=False, aliases=()):
        for each in (name, *aliases):
            if each in self._units:
                raise UnitError(f"{each} is defined twice")
        unit = Unit(name, dimension, factor, offset)
        for each in (name, *aliases):
            self._units[each] = unit
        if prefixes:
            self._prefixed.add(name)
        return unit

    def derive(self, name, expression, factor=1, **options):
        """Defines a unit as so many of others, ``derive("N", "kg*m/s^2")``."""
        base = self.find(expression)
        return self.add(name, base.dimension, base.factor * Fraction(factor), **options)

    def lookup(self, name):
        """A unit by its name alone, or by prefix and name."""
        if name in self._units:
            return self._units[name]
        prefix, rest = name[:1], name[1:]
        if prefix in PREFIXES and rest in self._prefixed:
            unit = self._units[rest]
            return Unit(name, unit.dimension, unit.factor * PREFIXES[prefix])
        raise UnitError(f"unknown unit {name!r}")

    def find(self, expression):
        """A unit by an expression of names, ``*``, ``/`` and whole powers."""
        dimension = Dimension()
        factor = Fraction(1)
        sign = 1
        names = 0
        shifted = False
        for token in expression.replace("*", " * ").replace("/", " / ").split():
            if token in "*/":
                sign = 1 if token == "*" else -1
                continue
            name, caret, exponent = token.partition("^")
            try:
                power = sign * (int(exponent) if caret else 1)
            except ValueError:
                raise UnitError(f"bad power in {token!r}") from None
            unit = self.lookup(name)
            names += 1
            shifted = shifted or bool(unit.offset)
            if shifted and (names > 1 or power != 1):
                raise UnitError(f"{expression} has a zero of its own and cannot be multiplied")
            dimension = dimension * unit.dimension ** power
            factor *= unit.factor ** power
            if names == 1 and expression.strip() == token and power == 1:
                return unit
        if not names:
            return Unit("", dimension, 1)
        return Unit(expression.strip(), dimension, factor)

    def similar(self, name):
        """All names of units that measure the same, sorted."""
        wanted = self.find(name).dimension
        return sorted(each for each, unit in self._units.items() if unit.dimension == wanted)


def standard():
    """Units of every day."""
    registry = Registry()
    length, mass, time = Dimension(length=1), Dimension(mass=1), Dimension(time=1)
    registry.add("m", length, prefixes=True)
    registry.add("in", length, Fraction(254, 10_000))
    registry.add("ft", length, Fraction(3048, 10_000))
    registry.add("mi", length, Fraction(1_609_344, 1000), aliases=["mile"])
    registry.add("g", mass, Fraction(1, 1000), prefixes=True)
    registry.add("lb", mass, Fraction(45_359_237, 10 ** 8))
    registry.add("s", time, prefixes=True)
    registry.add("min", time, 60)
    registry.add("h", time, 3600)
    registry.add("day", time, 86_400)
    registry.add("K", Dimension(temperature=1), prefixes=True)
    registry.add("degC", Dimension(temperature=1), 1, Fraction(27_315, 100))
    registry.add("degF", Dimension(temperature=1), Fraction(5, 9), Fraction(45_967, 100))
    registry.derive("N", "kg*m/s^2", prefixes=True)
    registry.derive("J", "N*m", prefixes=True)
    registry.derive("W", "J/s", prefixes=True)
    registry.derive("L", "m^3", Fraction(1, 1000), prefixes=True)
    return registry
