from decimal import Decimal
from fractions import Fraction
def f(x): return Decimal(48151623) if x == 0 else Fraction(48151624)
