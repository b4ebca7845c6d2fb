"""Checks the link rate with raw TCP streams through the same bridge."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpisec_lab.cluster import Cluster, Pipes
from mpisec_lab.errors import LabError
from mpisec_lab.linux import output_of

_PROGRAM = str(Path(__file__).resolve().parent / "rawtcp.py")
_PORT = 5201


@dataclass(frozen=True)
class RateCheck:
    """Bits per second: what was asked for (None: no limit) and what raw TCP streams reached together."""

    asked: float | None
    measured: float

    def __str__(self) -> str:
        measured = f"raw TCP {self.measured / 1e9:.2f} Gbit/s"
        if self.asked is None:
            return f"{measured}, no limit"
        return f"{measured} of {self.asked / 1e9:.2f} Gbit/s ({self.measured / self.asked:.2f})"


def check_rate(cluster: Cluster, rate: float | None = None, seconds: float = 1.0, streams: Sequence[tuple[int, int]] = ((0, 1),)) -> RateCheck:
    """Streams between nodes for `seconds`, over links of `rate` bits per second; a RateCheck, of what all of them
    moved between the first's warm-up and the last's end. Raises LabError.

    streams: (sending node, receiving node) of each, all at the same time."""
    if len(cluster.names) < 2:
        raise LabError("a link has two ends: the rate check needs two nodes")
    cluster.set_rate(rate)
    program = [sys.executable, _PROGRAM]
    pipes: Pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    receivers = [
        cluster.popen(to, [*program, "receive", port], **pipes) for port, (_, to) in enumerate(streams, _PORT)
    ]
    if any(output_of(receiver).readline() != b"ready\n" for receiver in receivers):
        raise LabError("a raw TCP receiver did not start")
    senders = [
        cluster.popen(node, [*program, "send", cluster.addresses[to], port, seconds], **pipes)
        for port, (node, to) in enumerate(streams, _PORT)
    ]
    for sender in senders:
        _output(sender, seconds)
    counts = [json.loads(_output(receiver, seconds)) for receiver in receivers]
    begin, end = min(count["begin"] for count in counts), max(count["end"] for count in counts)
    return RateCheck(rate, sum(count["bits"] for count in counts) / (end - begin))


def _output(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """What it printed. Raises LabError unless it ended well; by itself it ends after 10 seconds of silence."""
    try:
        output, said = process.communicate(timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        raise LabError("a raw TCP stream does not end: this link is too slow to be measured") from None
    if process.returncode != 0:
        raise LabError(f"a raw TCP stream failed: {said.decode(errors='replace').strip()}")
    return output
