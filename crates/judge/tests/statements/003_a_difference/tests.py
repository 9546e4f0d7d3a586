import math
for x, expected in [(0, 3.25), (1, 9.5)]:
    assert math.fabs(f(x) - expected) < 1e-6
