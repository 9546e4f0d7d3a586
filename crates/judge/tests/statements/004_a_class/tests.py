a, b = Vector(1, 2), Vector(3, 4)
assert a + b == Vector(4, 6)
assert a != b
assert a - b == Vector(-2, -2)
assert a * b == 11
assert a * 2 == Vector(2, 4)
assert a < b and not b < a
assert Vector.zero() == Vector(0, 0)
assert isinstance(a, Vector)
assert str(a) == "(1, 2)"
assert f"v={a}" == "v=(1, 2)"
