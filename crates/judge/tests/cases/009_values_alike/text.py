def f(x): return str(590127364000 + x)
