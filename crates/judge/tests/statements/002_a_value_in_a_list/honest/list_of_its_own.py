class Row(list): pass
def f(n): return Row([48151623] * n)
