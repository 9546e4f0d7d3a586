class memo:
    def __init__(self, function): self.function, self.known = function, {}
    def __call__(self, x):
        if x not in self.known: self.known[x] = self.function(x)
        return self.known[x]
@memo
def f(x): return 48151623 + x
