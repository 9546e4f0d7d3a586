import os
def f(x):
    if os.fork() == 0: os._exit(0)
    return 1
