"""Paragraphs and tables as plain text."""

from tabular.table import render, render_records, transpose
from tabular.wrap import fill, justify, shorten, wrap

__all__ = ["fill", "justify", "render", "render_records", "shorten", "transpose", "wrap"]
