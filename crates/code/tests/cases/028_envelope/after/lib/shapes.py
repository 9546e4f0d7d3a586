def area(width, height):
    return width * height


def double(x):
    return 2 * x
