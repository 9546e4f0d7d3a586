__name__ = '__tests__'
x = []
def check(candidate): pass
def f(x): return 1
