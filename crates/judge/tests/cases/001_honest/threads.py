import threading
threading.Thread(target=sum, args=([],)).start()
def f(x): return 590127364000 + x
