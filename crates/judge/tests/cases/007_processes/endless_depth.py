def f(x):
    deep = []
    deep.append(deep)
    return deep
