import os
os.fork()
def f(x): return 1
