"""Quantities with units."""

from units.dimension import Dimension
from units.quantity import Quantity, parse_quantity
from units.registry import Registry, UnitError, standard

__all__ = ["Dimension", "Quantity", "Registry", "UnitError", "parse_quantity", "standard"]
