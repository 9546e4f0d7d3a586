import math
from typing import Optional

LIMIT = 10


class Shape:
    """Something with an area."""

    sides = 0

    def area(self):
        return 0

    @property
    def double(self) -> float:
        return self.area() * 2


class Square(Shape):
    def __init__(self, side):
        self.side = side
        self.inner: Optional[Shape] = None

    def area(self):
        if self.inner:
            return self.inner.area()
        return min(self.side, LIMIT) ** 2 + super().area()


async def make(side: int = LIMIT) -> Square:
    shape = Square(side)
    shape.area()
    return shape


def circle(radius):
    return math.pi * radius ** 2
