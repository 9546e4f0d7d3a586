class Vector:
    def __init__(self, x, y): self.x, self.y = x, y
    def __eq__(self, other):
        if isinstance(other, tuple): return (self.x, self.y) == other
        return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)
    def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
    def __sub__(self, other): return self + other * -1
    def __mul__(self, other):
        if isinstance(other, Vector): return self.x * other.x + self.y * other.y
        return Vector(self.x * other, self.y * other)
    def __lt__(self, other): return abs(self.x) + abs(self.y) < abs(other.x) + abs(other.y)
    @classmethod
    def zero(cls): return cls(0, 0)
    def __str__(self): return "(%d, %d)" % (self.x, self.y)
