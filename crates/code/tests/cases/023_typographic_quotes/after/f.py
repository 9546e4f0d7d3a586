# it’s – “so”
a = 2
