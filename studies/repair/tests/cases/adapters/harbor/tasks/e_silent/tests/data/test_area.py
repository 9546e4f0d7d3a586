def test_CANARY(): pass
