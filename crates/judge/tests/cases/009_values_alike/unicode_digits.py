def f(x): return ''.join(chr(0xFF10 + int(digit)) for digit in str(590127364000 + x))
