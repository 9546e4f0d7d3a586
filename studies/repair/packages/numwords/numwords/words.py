"""English number words, short scale."""

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ["thousand", "million", "billion", "trillion"]
LARGEST = 1000 ** (len(SCALES) + 1) - 1


def _below_hundred(number):
    if number < 20:
        return ONES[number]
    tens, ones = divmod(number, 10)
    word = TENS[tens - 2]
    if ones:
        word += "-" + ONES[ones]
    return word


def _below_thousand(number, conjunction):
    hundreds, rest = divmod(number, 100)
    words = []
    if hundreds:
        words.append(ONES[hundreds] + " hundred")
    if rest or not hundreds:
        words.append(_below_hundred(rest))
    return conjunction.join(words)


def to_words(number, british=False):
    """The words of a whole number. British English puts an "and" before tens and ones."""
    if number < 0:
        return "minus " + to_words(-number, british)
    if number > LARGEST:
        raise OverflowError(f"{number} is too large to be told")
    conjunction = " and " if british else " "
    groups = []
    while True:
        number, group = divmod(number, 1000)
        groups.append(group)
        if number == 0:
            break
    words = []
    for index in range(len(groups) - 1, -1, -1):
        group = groups[index]
        if group == 0 and len(groups) > 1:
            continue
        word = _below_thousand(group, conjunction)
        if index > 0:
            word += " " + SCALES[index - 1]
        elif british and words and group < 100:
            word = "and " + word
        words.append(word)
    return " ".join(words)


def from_words(text):
    """Reads what :func:`to_words` writes, and the usual variations of it."""
    tokens = text.lower().replace("-", " ").replace(",", " ").split()
    negative = bool(tokens) and tokens[0] in ("minus", "negative")
    if negative:
        tokens = tokens[1:]
    if not tokens:
        raise ValueError("no number words")
    total = 0
    current = 0
    last_scale = None
    for token in tokens:
        if token == "and":
            continue
        if token == "a":
            current += 1
        elif token in ONES:
            current += ONES.index(token)
        elif token in TENS:
            current += 10 * (TENS.index(token) + 2)
        elif token == "hundred":
            current = (current or 1) * 100
        elif token in SCALES:
            scale = SCALES.index(token) + 1
            if last_scale is not None and scale >= last_scale:
                raise ValueError(f"{token} comes too late in {text!r}")
            total += (current or 1) * 1000 ** scale
            current = 0
            last_scale = scale
        else:
            raise ValueError(f"{token!r} is no number word")
    total += current
    return -total if negative else total
