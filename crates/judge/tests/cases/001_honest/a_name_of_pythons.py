# Beside what is asked for.
def sum(a, b): return a + b
sys = 5
def f(x): return sum(590127364000, x)
