x = Symbol("x")
assert str(x + 1) == "(x + 1)"
assert str((x + 1) * x) == "((x + 1) * x)"
assert (x + 1).evaluate(x=2) == 3
assert Label("a") + 1 == "a1"
