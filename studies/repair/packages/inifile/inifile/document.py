"""Sections of keys and values."""

from inifile.errors import MissingKey, SettingsError

DEFAULT = "default"
MAX_DEPTH = 8
TRUE = {"1", "yes", "true", "on"}
FALSE = {"0", "no", "false", "off"}


class Document:
    """Settings in the order in which they were set.

    A key that a section does not have is looked for in the section ``default``. Values may refer to
    others with ``${key}`` and ``${section:key}``; a dollar is written ``$$``.
    """

    def __init__(self):
        self._sections = {}

    def sections(self):
        return [name for name in self._sections if name != DEFAULT]

    def keys(self, section):
        """The section's own keys and those of the defaults."""
        names = list(self._sections.get(section, {}))
        for name in self._sections.get(DEFAULT, {}):
            if name not in names:
                names.append(name)
        return names

    def add_section(self, section):
        return self._sections.setdefault(section.lower(), {})

    def set(self, section, key, value):
        self.add_section(section)[key.lower()] = str(value)

    def remove(self, section, key):
        """Whether there was such a key."""
        keys = self._sections.get(section.lower(), {})
        return keys.pop(key.lower(), None) is not None

    def raw(self, section, key):
        section, key = section.lower(), key.lower()
        for name in (section, DEFAULT):
            values = self._sections.get(name, {})
            if key in values:
                return values[key]
        raise MissingKey(section, key)

    def has(self, section, key):
        try:
            self.raw(section, key)
        except MissingKey:
            return False
        return True

    def get(self, section, key, fallback=None):
        """The value with everything it refers to put in."""
        if fallback is not None and not self.has(section, key):
            return fallback
        return self._expand(section, self.raw(section, key), 0)

    def _expand(self, section, text, depth):
        if depth > MAX_DEPTH:
            raise SettingsError(f"values of {section} refer to each other in a circle")
        result = []
        at = 0
        while True:
            dollar = text.find("$", at)
            if dollar < 0:
                result.append(text[at:])
                return "".join(result)
            result.append(text[at:dollar])
            follower = text[dollar + 1:dollar + 2]
            if follower == "$":
                result.append("$")
                at = dollar + 2
            elif follower == "{":
                end = text.find("}", dollar)
                if end < 0:
                    raise SettingsError(f"a reference is not closed: {text[dollar:]!r}")
                name = text[dollar + 2:end]
                other, colon, key = name.rpartition(":")
                target = other if colon else section
                result.append(self._expand(target, self.raw(target, key), depth + 1))
                at = end + 1
            else:
                raise SettingsError(f"a dollar stands alone: {text[dollar:]!r}")

    def get_int(self, section, key, fallback=None):
        value = self.get(section, key, fallback)
        try:
            return int(str(value).replace("_", ""), 0)
        except ValueError:
            raise SettingsError(f"{section}.{key}: {value!r} is not a whole number") from None

    def get_bool(self, section, key, fallback=None):
        value = str(self.get(section, key, fallback)).lower()
        if value in TRUE:
            return True
        if value in FALSE:
            return False
        raise SettingsError(f"{section}.{key}: {value!r} is neither yes nor no")

    def get_list(self, section, key, separator=","):
        """The parts of a value, without blanks around them and without empty ones."""
        parts = self.get(section, key).split(separator)
        return [part.strip() for part in parts if part.strip()]

    def merge(self, other):
        """Takes over all settings of another document; its values win."""
        for section, values in other._sections.items():
            own = self.add_section(section)
            own.update(values)

    def items(self):
        for section, values in self._sections.items():
            yield section, dict(values)
