"""Checks the link rate with a raw TCP stream through the same bridge."""

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
    """Bits per second: what was asked for (None: no limit) and what a raw TCP stream reached."""

    asked: float | None
    measured: float

    def __str__(self):
        measured = f"raw TCP {self.measured / 1e9:.2f} Gbit/s"
        if self.asked is None:
            return f"{measured}, no limit"
        return f"{measured} of {self.asked / 1e9:.2f} Gbit/s ({self.measured / self.asked:.2f})"


def check_rate(cluster, rate=None, seconds=1.0):
    """Streams from node 0 to node 1 for `seconds`, paced to `rate` bits per second as a job's sockets are;
    a RateCheck."""
    if len(cluster.names) < 2:
        raise LabError("a link has two ends: the rate check needs two nodes")
    preload = []
    if rate:
        preload = ["env", f"LD_PRELOAD={pacing.library()}", f"MPISEC_LAB_PACING={int(rate / 8)}"]
    receiver = cluster.popen(
        1, [*preload, sys.executable, _PROGRAM, "receive", _PORT], stdout=subprocess.PIPE
    )
    if receiver.stdout.readline() != b"ready\n":
        raise LabError("the raw TCP receiver did not start")
    cluster.execute(
        0,
        [*preload, sys.executable, _PROGRAM, "send", cluster.addresses[1], _PORT, seconds],
        timeout=seconds + 60,
        sweep=False,
    ).check()
    output, _ = receiver.communicate(timeout=60)
    return RateCheck(rate, json.loads(output)["bits_per_second"])
