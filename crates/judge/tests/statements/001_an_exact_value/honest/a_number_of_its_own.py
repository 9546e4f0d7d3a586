class Number:
    def __init__(self, value): self.value = value
    def __eq__(self, other): return self.value == getattr(other, "value", other)
def f(x): return Number(48151623 + x)
