import os, signal
def f(x): os.kill(os.getpid(), signal.SIGTERM)
