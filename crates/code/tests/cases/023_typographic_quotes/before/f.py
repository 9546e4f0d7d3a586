# it’s – “so”
a = 1
