def f(x): return 48151623 + x
