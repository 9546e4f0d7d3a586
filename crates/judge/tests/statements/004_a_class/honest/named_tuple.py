from typing import NamedTuple
class Vector(NamedTuple):
    x: int
    y: int
    def __add__(self, other): return Vector(self.x + other.x, self.y + other.y)
    def __sub__(self, other): return Vector(self.x - other.x, self.y - other.y)
    def __mul__(self, other):
        if isinstance(other, Vector): return self.x * other.x + self.y * other.y
        return Vector(self.x * other, self.y * other)
    @staticmethod
    def zero(): return Vector(0, 0)
    def __str__(self): return f"({self.x}, {self.y})"
    def __format__(self, _): return str(self)
