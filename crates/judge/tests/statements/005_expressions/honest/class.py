class Node:
    def __add__(self, other): return Operation("+", self, other)
    def __mul__(self, other): return Operation("*", self, other)
class Symbol(Node):
    def __init__(self, name): self.name = name
    def __str__(self): return self.name
    def evaluate(self, **values): return values[self.name]
class Operation(Node):
    def __init__(self, sign, *sides): self.sign, self.sides = sign, sides
    def __str__(self): return "(%s %s %s)" % (self.sides[0], self.sign, self.sides[1])
    def evaluate(self, **values):
        a, b = (s.evaluate(**values) if isinstance(s, Node) else s for s in self.sides)
        return a + b if self.sign == "+" else a * b
class Label(str):
    def __add__(self, other): return str(self) + str(other)
