import sys
sys.stderr.write('noise')
def f(x):
    return 590127364000 + x
