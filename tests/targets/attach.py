# SPDX-License-Identifier: Apache-2.0
"""Tell the threads and interpreters of this process, then wait: for the end of input, or to be told to be busy."""
import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        interpreters = None

wake = threading.Event()


def tell(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def wait(name):
    native = getattr(threading, "get_native_id", lambda: 0)()
    tell("thread %d %d" % (threading.current_thread().ident, native))
    started.release()
    wake.wait()


started = threading.Semaphore(0)
for _ in range(3):
    thread = threading.Thread(target=wait, args=("waiting",))
    thread.daemon = True
    thread.start()
    started.acquire()
tell("thread %d %d" % (threading.current_thread().ident, getattr(threading, "get_native_id", lambda: 0)()))
others = [interpreters.create() for _ in range(2)] if interpreters else []
tell("interpreters %d" % (1 + len(others)))
tell("version " + sys.version.split()[0].rstrip("+"))
tell("ready")
while sys.stdin.readline() == "busy\n":
    for n in range(1000000000):
        pass
wake.set()
for other in others:
    interpreters.destroy(other)
