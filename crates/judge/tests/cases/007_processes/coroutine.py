async def f(x): return 1
