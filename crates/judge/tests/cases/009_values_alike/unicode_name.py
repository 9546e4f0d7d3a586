def ф(x): return 590127364000 + x
def f​(x): return 590127364000 + x
