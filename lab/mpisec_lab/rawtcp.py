"""A raw TCP stream between two nodes: what the lab's link carries without MPI.

Run on the nodes as `rawtcp.py receive PORT SECONDS` and `rawtcp.py send ADDRESS PORT SECONDS`; standard
library only.
"""

import json
import socket
import sys
import time

_BLOCK = 1 << 20
_WARM_UP = 0.2  # seconds: slow start is no part of the rate


def receive(port):
    """Prints JSON {bits_per_second}: what arrived after the warm-up."""
    with socket.create_server(("", port)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
        buffer = bytearray(_BLOCK)
        begin = time.monotonic()
        started = last = None
        total = 0
        with connection:
            while size := connection.recv_into(buffer):
                last = time.monotonic()
                if started is not None:
                    total += size
                elif last - begin > _WARM_UP:
                    started = last
    print(json.dumps({"bits_per_second": total * 8 / (last - started)}), flush=True)


def send(address, port, seconds):
    """Sends for `seconds` beyond the warm-up, then closes."""
    with socket.create_connection((address, port)) as connection:
        end = time.monotonic() + _WARM_UP + seconds
        block = bytes(_BLOCK)
        while time.monotonic() < end:
            connection.sendall(block)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
