class Adder:
    def add(self, x): return 48151623 + x
f = Adder().add
