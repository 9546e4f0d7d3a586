"""Breaking text into lines."""


def _pieces(word, width):
    """A word that is longer than a line, cut."""
    while len(word) > width:
        yield word[:width - 1] + "-"
        word = word[width - 1:]
    if word:
        yield word


def wrap(text, width, indent="", hanging=""):
    """The lines of ``text``, at most ``width`` characters each.

    The first line begins with ``indent``, the others with ``hanging``.
    """
    if width - max(len(indent), len(hanging)) < 2:
        raise ValueError("the lines are too narrow")
    lines = []
    current = indent
    is_fresh = True
    for word in text.split():
        prefix = indent if not lines else hanging
        room = width - len(current) - (0 if is_fresh else 1)
        if len(word) > room and not is_fresh:
            lines.append(current)
            current, is_fresh = hanging, True
            prefix = hanging
        if len(word) > width - len(prefix):
            *full, word = _pieces(word, width - max(len(prefix), len(hanging)))
            for piece in full:
                lines.append(current + piece)
                current = hanging
        current += word if is_fresh else " " + word
        is_fresh = False
    if not is_fresh:
        lines.append(current)
    return lines


def fill(text, width, **options):
    """Every paragraph of ``text`` wrapped; paragraphs are set apart by empty lines."""
    paragraphs = []
    current = []
    for line in text.splitlines() + [""]:
        if line.strip():
            current.append(line)
        elif current:
            paragraphs.append(" ".join(current))
            current = []
    wrapped = ("\n".join(wrap(paragraph, width, **options)) for paragraph in paragraphs)
    return "\n\n".join(wrapped)


def justify(line, width):
    """Widens the blanks of a line, those on the left first, until it has ``width`` characters."""
    words = line.split()
    if len(words) < 2:
        return line.strip()
    blanks = width - sum(len(word) for word in words)
    gaps = len(words) - 1
    if blanks < gaps:
        raise ValueError(f"the line does not fit {width} characters")
    each, more = divmod(blanks, gaps)
    result = words[0]
    for number, word in enumerate(words[1:]):
        result += " " * (each + (1 if number < more else 0)) + word
    return result


def shorten(text, width, mark="..."):
    """The first words of ``text`` with ``mark`` behind them, or all of it where it fits."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    if width < len(mark):
        raise ValueError("the mark is wider than the line")
    kept = text[:width - len(mark)]
    if text[len(kept)] != " " and " " in kept:
        kept = kept[:kept.rindex(" ")]
    return kept.rstrip() + mark
