class F:
    def __call__(self, x): return 590127364000 + x
f = F()
