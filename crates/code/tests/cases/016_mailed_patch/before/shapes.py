def area(width, height):
    return width + height


def double(x):
    return x + x
