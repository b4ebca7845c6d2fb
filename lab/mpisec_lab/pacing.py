"""Link rate: a token bucket at each end of every node's wire holds what all connections send together to the rate
of the link, and every TCP socket of a job paces itself to it (pacing.c, compiled here), so that no message slips
through in the bucket's burst."""

import fcntl
import math
import os
import shutil
import subprocess
from pathlib import Path

from mpisec_lab import places
from mpisec_lab.errors import LabError

_SOURCE = Path(__file__).resolve().parent / "pacing.c"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def parse_rate(text):
    """'10gbit', '500mbit', '2.5g' → bits per second. Raises LabError."""
    lowered = text.strip().lower().removesuffix("/s").removesuffix("bit")
    unit = lowered[-1:] if lowered[-1:] in _UNITS else ""
    try:
        rate = float(lowered.removesuffix(unit) if unit else lowered) * _UNITS[unit]
    except ValueError:
        rate = 0
    if not 8 <= rate < math.inf:
        raise LabError(f"{text!r} is no link rate: write 10gbit or 500mbit")
    return rate


def bucket_command(interface, rate):
    """`tc` words that let `rate` bits per second out of `interface` (None: all), headers included. Raises LabError.

    Longest burst 200 µs of the rate, but at least two of TCP's own (64 KiB): smaller ones would be taken apart
    packet by packet. The queue holds 50 ms, as a deep switch's, and at least 1 MiB."""
    program = shutil.which("tc") or shutil.which("tc", path="/usr/sbin:/sbin")
    if program is None:
        raise LabError("a link rate needs tc: `apt-get install iproute2`")
    kind = ["noqueue"]
    if rate:
        burst = max(128 << 10, int(rate / 8 * 200e-6))
        queue = min(max(1 << 20, int(rate / 8 * 50e-3)), (1 << 32) - 1)
        kind = f"tbf rate {int(rate)}bit burst {burst} limit {queue}".split()
    return [program, "qdisc", "replace", "dev", interface, "root", *kind]


def library():
    """Path of the pacing library, compiled when it is missing or older than its source."""
    directory = places.build()
    target = directory / "libmpisec_lab_pacing.so"
    with open(directory / "pacing.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists() or target.stat().st_mtime < _SOURCE.stat().st_mtime:
            compiler = os.environ.get("CC", "cc")
            made = subprocess.run(
                [compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(target), str(_SOURCE)],
                capture_output=True,
                text=True,
                check=False,
            )
            if made.returncode != 0:
                raise LabError(f"pacing.c does not compile: {made.stderr}")
    return target
