def f(x): return 590127364000 + x
