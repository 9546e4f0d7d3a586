class Adder:
    def __init__(self, base): self.base = base
    def __call__(self, x): return self.base + x
f = Adder(48151623)
