import sys
sys.setrecursionlimit(10 ** 6)
def f(x): return f(x)
