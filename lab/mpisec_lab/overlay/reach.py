"""Run on every node at once: which other nodes does this one receive full packets from?

`reach.py OWN-ADDRESS SECONDS ADDRESS…` prints a JSON list of addresses that it did not reach within the time,
and answers the others until its standard input ends. Standard library only.
"""

import json
import socket
import sys
import threading
import time

_PORT = 5202
_DATA = bytes(1 << 16)  # many times the MTU: packets that are too long for the path would not arrive


def _answer(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        with connection:
            connection.sendall(_DATA)


def _received(address: str) -> bool:
    """Whether all the data came from there within a second."""
    try:
        with socket.create_connection((address, _PORT), timeout=1) as connection:
            connection.settimeout(1)
            left = len(_DATA)
            while left and (piece := connection.recv(left)):
                left -= len(piece)
            return not left
    except OSError:
        return False


def main(own: str, seconds: float, addresses: list[str]) -> None:
    """See above."""
    server = socket.create_server((own, _PORT))
    threading.Thread(target=_answer, args=(server,), daemon=True).start()
    deadline = time.monotonic() + seconds
    while (addresses := [one for one in addresses if not _received(one)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    print(json.dumps(addresses), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
