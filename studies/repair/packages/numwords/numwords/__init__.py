"""Numbers as words, as Roman numerals and in other notations."""

from .grouping import group_digits, human_size, ordinal
from .roman import from_roman, to_roman
from .words import from_words, to_words

__all__ = [
    "from_roman",
    "from_words",
    "group_digits",
    "human_size",
    "ordinal",
    "to_roman",
    "to_words",
]
