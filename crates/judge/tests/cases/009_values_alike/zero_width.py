def f(x): return '\u200b' + str(590127364000 + x) + '\u200b'
