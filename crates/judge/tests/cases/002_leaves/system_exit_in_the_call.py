def f(x): raise SystemExit(0)
