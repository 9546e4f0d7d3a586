"""Text to documents and back."""

from inifile.document import DEFAULT, Document
from inifile.errors import SyntaxProblem

COMMENTS = ("#", ";")


def _without_comment(line):
    """A comment within a line is set off by a blank; in a quoted value there is none."""
    quote = None
    for position, character in enumerate(line):
        if quote is not None:
            quote = None if character == quote else quote
        elif character in "\"'" and line[:position].rstrip().endswith(("=", ":")):
            quote = character if character in line[position + 1:] else None
        elif character in COMMENTS and (position == 0 or line[position - 1].isspace()):
            return line[:position]
    return line


def _unquoted(value):
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _split(line, number):
    """Key and value around the first ``=`` or ``:``."""
    places = [line.find(sign) for sign in "=:" if sign in line]
    if not places:
        raise SyntaxProblem(number, f"neither a section nor a value: {line.strip()!r}")
    at = min(places)
    key = line[:at].strip()
    if not key:
        raise SyntaxProblem(number, "a value without a key")
    return key, line[at + 1:].strip()


def loads(text):
    """Reads a document. Lines that begin with a blank go on with the value before."""
    document = Document()
    section = DEFAULT
    key = None
    for number, full in enumerate(text.splitlines(), start=1):
        line = _without_comment(full).rstrip()
        if not line:
            key = None if not full.strip() else key
            continue
        if line[0].isspace():
            if key is None:
                raise SyntaxProblem(number, "an indented line continues nothing")
            before = document.raw(section, key)
            joined = f"{before}\n{line.strip()}" if before else line.strip()
            document.set(section, key, joined)
            continue
        if line.startswith("["):
            if not line.endswith("]"):
                raise SyntaxProblem(number, "a section is not closed")
            section = line[1:-1].strip()
            if not section:
                raise SyntaxProblem(number, "a section without a name")
            document.add_section(section)
            key = None
            continue
        key, value = _split(line, number)
        document.set(section, key, _unquoted(value))
    return document


def dumps(document):
    """Writes a document so that it is read back as it is."""
    lines = []
    for section, values in document.items():
        if lines:
            lines.append("")
        lines.append(f"[{section}]")
        for key, value in values.items():
            first, *others = value.split("\n")
            if first != first.strip() or any(sign in first for sign in COMMENTS):
                first = f'"{first}"'
            lines.append(f"{key} = {first}".rstrip())
            lines.extend(f"    {other}" for other in others)
    return "\n".join(lines) + "\n"
