"""Products of powers of base dimensions."""


class Dimension:
    """Immutable: what a unit measures, such as length per time."""

    __slots__ = ("_powers",)

    def __init__(self, **powers):
        self._powers = {name: power for name, power in powers.items() if power != 0}

    @property
    def is_plain(self):
        """Whether it is that of mere numbers."""
        return not self._powers

    def power_of(self, name):
        return self._powers.get(name, 0)

    def __mul__(self, other):
        powers = dict(self._powers)
        for name, power in other._powers.items():
            powers[name] = powers.get(name, 0) + power
        return Dimension(**powers)

    def __truediv__(self, other):
        return self * other ** -1

    def __pow__(self, exponent):
        return Dimension(**{name: power * exponent for name, power in self._powers.items()})

    def __eq__(self, other):
        return isinstance(other, Dimension) and self._powers == other._powers

    def __hash__(self):
        return hash(frozenset(self._powers.items()))

    def __repr__(self):
        if self.is_plain:
            return "1"
        parts = []
        for name in sorted(self._powers):
            power = self._powers[name]
            parts.append(name if power == 1 else f"{name}^{power}")
        return " ".join(parts)
