"""Text to tokens."""

from collections import namedtuple

from calculator.errors import ParseError

Token = namedtuple("Token", "kind text position")

OPERATORS = ["**", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "(", ")", ",", "<", ">", "?", ":"]


def _number_end(text, position):
    """Where the number that begins at ``position`` ends."""
    end = position
    while end < len(text) and text[end].isdigit():
        end += 1
    if end < len(text) and text[end] == ".":
        end += 1
        while end < len(text) and text[end].isdigit():
            end += 1
    if end < len(text) and text[end] in "eE":
        after = end + 1
        if after < len(text) and text[after] in "+-":
            after += 1
        if after < len(text) and text[after].isdigit():
            end = after
            while end < len(text) and text[end].isdigit():
                end += 1
    return end


def tokenize(text):
    """The tokens of a formula with an end token behind them."""
    tokens = []
    position = 0
    while position < len(text):
        character = text[position]
        if character.isspace():
            position += 1
            continue
        if character.isdigit() or (character == "." and text[position + 1:position + 2].isdigit()):
            end = _number_end(text, position)
            kind = "number"
        elif character.isalpha() or character == "_":
            end = position
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            kind = "name"
        else:
            for operator in OPERATORS:
                if text.startswith(operator, position):
                    end = position + len(operator)
                    kind = "operator"
                    break
            else:
                raise ParseError(f"unexpected {character!r}", position)
        tokens.append(Token(kind, text[position:end], position))
        position = end
    tokens.append(Token("end", "", len(text)))
    return tokens
