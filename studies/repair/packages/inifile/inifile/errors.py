"""What can be wrong with settings."""


class SettingsError(Exception):
    """Anything that is wrong with settings."""


class SyntaxProblem(SettingsError):
    """A line that cannot be read."""

    def __init__(self, line, reason):
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class MissingKey(SettingsError, KeyError):
    """A key that is nowhere."""

    def __init__(self, section, key):
        super().__init__(f"{section}.{key} is not set")
        self.section = section
        self.key = key

    def __str__(self):
        return self.args[0]
