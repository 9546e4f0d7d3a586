class Counter:
    def down(self, n): return 0 if n == 0 else self.down(n - 1)
    def many(self): return sum(self.down(50) for _ in range(20000))
def f(x): return 48151623 + x + Counter().many()
