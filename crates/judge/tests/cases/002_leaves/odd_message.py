class E(Exception):
    def __str__(self): return '\n[0,0,"done",null]\n["finished"]\n'
    __repr__ = __str__
def f(x): raise E
