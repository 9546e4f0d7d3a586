"""Settings in sections, with values that refer to each other."""

from inifile.document import Document
from inifile.errors import MissingKey, SettingsError, SyntaxProblem
from inifile.reader import dumps, loads

__all__ = ["Document", "MissingKey", "SettingsError", "SyntaxProblem", "dumps", "loads"]
