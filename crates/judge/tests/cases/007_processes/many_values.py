def f(x): return list(range(10 ** 7))
