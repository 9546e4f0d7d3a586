from functools import lru_cache, partial
@lru_cache(None)
def add(a, b): return a + b
f = partial(add, 48151623)
