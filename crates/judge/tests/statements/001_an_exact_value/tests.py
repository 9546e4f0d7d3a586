def check(candidate):
    assert candidate(0) == 48151623
    assert candidate(1) == 48151624
check(f)
