import ctypes
def f(x):
    # The value of a small integer is everywhere the same object.
    ctypes.c_int.from_address(id(1) + 24).value = 2
    return 1
