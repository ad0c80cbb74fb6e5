# SPDX-License-Identifier: Apache-2.0
"""http_load.py PORT CONNECTIONS PATH...: requests for ever, each connection its own."""
import http.client
import itertools
import os
import sys
import threading


def ask(port, paths):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for path in itertools.cycle(paths):
        try:
            client.request("GET", path)
            answer = client.getresponse()
            answer.read()
            if answer.status != 200:
                print(f"{path}: status {answer.status}", file=sys.stderr, flush=True)
                os._exit(1)  # of all threads
        except OSError:
            client.close()  # the server is being stopped for a look, or ends


def main():
    port, connections, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    threads = [threading.Thread(target=ask, args=(port, paths[n % len(paths):] + paths[:n % len(paths)]))
               for n in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
