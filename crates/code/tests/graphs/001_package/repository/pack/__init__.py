"""A package."""
from .shapes import Square as Box, make
from . import sub
