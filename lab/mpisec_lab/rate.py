"""Checks the link rate with raw TCP streams through the same bridge."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mpisec_lab import pacing
from mpisec_lab.errors import LabError

_PROGRAM = str(Path(__file__).resolve().parent / "rawtcp.py")
_PORT = 5201


@dataclass(frozen=True)
class RateCheck:
    """Bits per second: what was asked for (None: no limit) and what raw TCP streams reached together."""

    asked: float | None
    measured: float

    def __str__(self):
        measured = f"raw TCP {self.measured / 1e9:.2f} Gbit/s"
        if self.asked is None:
            return f"{measured}, no limit"
        return f"{measured} of {self.asked / 1e9:.2f} Gbit/s ({self.measured / self.asked:.2f})"


def check_rate(cluster, rate=None, seconds=1.0, streams=((0, 1),)):
    """Streams between nodes for `seconds`, paced to `rate` bits per second as a job is; a RateCheck.

    streams: (sending node, receiving node) of each, all at the same time."""
    if len(cluster.names) < 2:
        raise LabError("a link has two ends: the rate check needs two nodes")
    cluster.set_rate(rate)
    preload = []
    if rate:
        preload = ["env", f"LD_PRELOAD={pacing.library()}", f"MPISEC_LAB_PACING={int(rate / 8)}"]
    program = [*preload, sys.executable, _PROGRAM]
    receivers, senders = [], []
    for port, (_, receiver) in enumerate(streams, _PORT):
        receivers.append(cluster.popen(receiver, [*program, "receive", port], stdout=subprocess.PIPE))
        if receivers[-1].stdout.readline() != b"ready\n":
            raise LabError("the raw TCP receiver did not start")
    for port, (sender, receiver) in enumerate(streams, _PORT):
        senders.append(cluster.popen(sender, [*program, "send", cluster.addresses[receiver], port, seconds]))
    total = 0
    for process in receivers:
        output, _ = process.communicate(timeout=seconds + 60)
        total += json.loads(output)["bits_per_second"]
    if any(process.wait(60) != 0 for process in senders):
        raise LabError("a raw TCP sender failed")
    return RateCheck(rate, total)
