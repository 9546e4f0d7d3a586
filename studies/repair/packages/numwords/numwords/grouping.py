"""Digits for people."""


def ordinal(number):
    """``1st``, ``2nd``, ``11th``."""
    if 10 <= abs(number) % 100 <= 20:
        suffix = "th"
    else:
        suffix = {1: "st", 2: "nd", 3: "rd"}.get(abs(number) % 10, "th")
    return f"{number}{suffix}"


def group_digits(number, separator=",", size=3, point="."):
    """Separates the digits before the point into groups."""
    text = str(number)
    sign = ""
    if text.startswith("-"):
        sign, text = "-", text[1:]
    whole, dot, fraction = text.partition(".")
    groups = []
    while len(whole) > size:
        groups.insert(0, whole[-size:])
        whole = whole[:-size]
    groups.insert(0, whole)
    return sign + separator.join(groups) + (point + fraction if dot else "")


def human_size(size, binary=True, digits=1):
    """Bytes with a unit that leaves the number below the next one."""
    if size < 0:
        return "-" + human_size(-size, binary, digits)
    base = 1024 if binary else 1000
    units = ["B", "KiB", "MiB", "GiB", "TiB"] if binary else ["B", "kB", "MB", "GB", "TB"]
    index = 0
    while size >= base and index < len(units) - 1:
        size /= base
        index += 1
    if index == 0:
        return f"{size} B"
    return f"{size:.{digits}f} {units[index]}"
