from pack import Box
from pack.sub.deep import use


def test_area():
    assert Box(2).area() == 4
    assert use(Box(1))
