def f(x):
    for _ in range(1 << 14): print('x' * 1024)
    return 1
