assert sum(10, 15) == 6
assert sum(100, 150) == 93
