"""A raw TCP stream between two nodes: what the lab's link carries without MPI.

Run on the nodes as `rawtcp.py receive PORT` and `rawtcp.py send ADDRESS PORT SECONDS`; standard library only.
"""

import json
import socket
import sys
import time

_BLOCK = 1 << 20
_WARM_UP = 0.2  # seconds: slow start is no part of the rate
_PATIENCE = 10  # seconds without a byte, or a peer: then it fails, rather than to hold its port for ever


def receive(port: int) -> None:
    """Prints JSON {bits, begin, end}: what arrived after the warm-up, and from when to when in seconds of the clock
    that all nodes share."""
    with socket.create_server(("", port)) as server:
        server.settimeout(_PATIENCE)
        print("ready", flush=True)
        connection, _ = server.accept()
        connection.settimeout(_PATIENCE)
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
    if total == 0:
        sys.exit("the stream ended before it was warm")
    print(json.dumps({"bits": total * 8, "begin": started, "end": last}), flush=True)


def send(address: str, port: int, seconds: float) -> None:
    """Sends for `seconds` beyond the warm-up, then closes."""
    with socket.create_connection((address, port), timeout=_PATIENCE) as connection:
        end = time.monotonic() + _WARM_UP + seconds
        block = bytes(_BLOCK)
        while time.monotonic() < end:
            connection.sendall(block)


if __name__ == "__main__":
    try:
        if sys.argv[1] == "receive":
            receive(int(sys.argv[2]))
        else:
            send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
