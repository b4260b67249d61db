"""A noisy server that knows nothing of wireguardrun; noisy_test.go says what
it does."""
import ctypes
import json
import os
import subprocess
import sys
import threading

libc = ctypes.CDLL(None)


def serve(request):
    message = json.loads(request)
    kind = message["method"]
    answer = '{"jsonrpc":"2.0","id":%d,"result":"%s"}' % (message["id"], kind)
    if kind == "log_messages":
        print("recv", request)
        print("send", answer)
    elif kind == "log_sent":
        print(answer)
        print("sent", answer)
        return
    elif kind == "log_object":
        print(json.dumps({"level": "info", "message": json.loads(answer)}, separators=(",", ":")))
    elif kind == "before":
        print("<before>")
    elif kind == "same_line":
        print("<same_line>", end="")
    elif kind == "after":
        print(answer)
        print("<after>")
        return
    elif kind == "after_same_line":
        print(answer, "<after_same_line>")
        return
    elif kind == "native":
        libc.printf(b"<native>\n")
        libc.fflush(None)
    elif kind == "native_unfinished":
        os.write(1, b"<native_unfinished>")
    elif kind == "child":
        subprocess.run(["sh", "-c", 'echo "<child>"'])
    elif kind == "child_unfinished":
        os.system('printf "<child_unfinished>"')
    elif kind == "threads":
        def chatter():
            for _ in range(9):
                os.write(1, b"<threads>\n")
        threads = [threading.Thread(target=chatter) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    elif kind == "progress":
        for n in (10, 50, 100):
            print("\r<progress> %d%%" % n, end="", flush=True)
    elif kind == "escape":
        print("\x1b[1m<escape>\x1b[0m", end="")
    elif kind == "brace":
        print("{ <brace>")
    elif kind == "own":
        print('{"jsonrpc":"2.0","method":"own"}')
    print(answer)


print("<start>")
for line in sys.stdin:
    serve(line.rstrip("\n"))
    sys.stdout.flush()
libc.printf(b"<exit>")  # written when the C library flushes at exit
