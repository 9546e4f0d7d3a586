"""Trees to text with as few brackets as the meaning allows."""

from calculator.parse import BINDING, CHOICE, UNARY

ATOM = 100


def _level(tree):
    """How tightly a tree holds together."""
    kind = tree[0]
    if kind == "binary":
        return min(BINDING[tree[1]])
    if kind == "unary" or (kind == "number" and tree[1] < 0):
        return UNARY
    return CHOICE if kind == "choice" else ATOM


def show(tree):
    kind = tree[0]
    if kind == "number":
        return f"{tree[1]:g}" if isinstance(tree[1], float) else str(tree[1])
    if kind == "name":
        return tree[1]
    if kind == "call":
        return f"{tree[1]}({', '.join(show(part) for part in tree[2])})"
    if kind == "unary":
        return "-" + _within(tree[2], UNARY)
    if kind == "choice":
        _, condition, yes, no = tree
        return f"{_within(condition, CHOICE + 1)} ? {show(yes)} : {_within(no, CHOICE)}"
    _, sign, left, right = tree
    before, after = BINDING[sign]
    return f"{_within(left, before)} {sign} {_within(right, after)}"


def _within(tree, least):
    text = show(tree)
    return text if _level(tree) >= least else f"({text})"
