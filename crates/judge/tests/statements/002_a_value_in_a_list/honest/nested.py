from collections import namedtuple
from enum import IntEnum
class Known(IntEnum):
    ONE = 48151623
Pair = namedtuple("Pair", "x")
class Row(list): pass
def f(n): return Row([Known.ONE] * n)
