def f(x): return 'a' * (64 << 20)
