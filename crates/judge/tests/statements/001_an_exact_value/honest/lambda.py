f = lambda x: 48151623 + x
