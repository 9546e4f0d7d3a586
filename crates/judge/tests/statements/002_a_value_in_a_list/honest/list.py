def f(n): return [48151623] * n
