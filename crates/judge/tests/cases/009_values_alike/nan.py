def f(x): return float('nan')
