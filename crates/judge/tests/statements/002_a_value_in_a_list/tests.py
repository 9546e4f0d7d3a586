assert f(2) == [48151623, 48151623]
assert sorted(f(1)) == [48151623]
