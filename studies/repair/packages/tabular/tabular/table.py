"""Tables with aligned columns."""

from tabular.wrap import shorten

ALIGNMENTS = {
    "left": str.ljust,
    "right": str.rjust,
    "center": str.center,
}


def _text(value, digits):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _alignment(column):
    """Numbers stand on the right."""
    values = [value for value in column if value is not None]
    return "right" if values and all(_is_number(value) for value in values) else "left"


def transpose(rows, missing=None):
    """Columns as rows; short rows are filled up."""
    width = max((len(row) for row in rows), default=0)
    columns = []
    for index in range(width):
        columns.append([row[index] if index < len(row) else missing for row in rows])
    return columns


def render(rows, header=None, align=None, gap=2, max_width=None, digits=2):
    """The rows as lines of text with a rule under the header.

    ``align`` has ``left``, ``right`` or ``center`` for each column; columns of numbers are on the
    right by themselves. Cells are shortened to ``max_width``.
    """
    rows = [list(row) for row in rows]
    columns = transpose(rows)
    if header is not None and len(header) < len(columns):
        raise ValueError(f"{len(header)} headings for {len(columns)} columns")
    if align is None:
        align = [_alignment(column) for column in columns]
    for name in align:
        if name not in ALIGNMENTS:
            raise ValueError(f"unknown alignment {name!r}")
    cells = [[_text(value, digits) for value in column] for column in columns]
    if max_width is not None:
        cells = [[shorten(cell, max_width) for cell in column] for column in cells]
    widths = []
    for index, column in enumerate(cells):
        lengths = [len(cell) for cell in column]
        if header is not None:
            lengths.append(len(header[index]))
        widths.append(max(lengths))
    space = " " * gap

    def line(texts):
        padded = [
            ALIGNMENTS[name](text, width) for text, width, name in zip(texts, widths, align)
        ]
        return space.join(padded).rstrip()

    lines = []
    if header is not None:
        lines.append(line(header))
        lines.append(space.join("-" * width for width in widths))
    for row in zip(*cells):
        lines.append(line(row))
    return "\n".join(lines)


def render_records(records, fields=None, **options):
    """A table of dictionaries; without ``fields`` their keys in the order of appearance."""
    if fields is None:
        fields = []
        for record in records:
            for key in record:
                if key not in fields:
                    fields.append(key)
    rows = [[record.get(field) for field in fields] for record in records]
    return render(rows, header=[str(field) for field in fields], **options)
