def f(x): yield 590127364000 + x
