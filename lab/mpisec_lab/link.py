"""Link rate: a token bucket at each end of every node's wire holds what all connections send together to the rate
of the link."""

import math
import shutil

from mpisec_lab.errors import LabError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def parse_rate(text: str) -> float:
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


def burst(rate: float) -> int:
    """Bytes that a link of `rate` bits per second lets through at once after a pause: 400 µs of it, but at least two of
    TCP's own bursts (64 KiB), for smaller ones would be taken apart packet by packet.

    A virtual machine's timers are tens of microseconds late, each time: a bucket that has not saved up for that, as TCP
    pacing has not, makes 6 Gbit/s of 10 (docs/lab.md)."""
    return max(128 << 10, int(rate / 8 * 400e-6))


def bucket_command(interface: str, rate: float | None) -> list[str]:
    """`tc` words that let `rate` bits per second out of `interface` (None: all), headers included. Raises LabError.

    The queue holds 50 ms, as a deep switch's, and at least 1 MiB."""
    program = shutil.which("tc") or shutil.which("tc", path="/usr/sbin:/sbin")
    if program is None:
        raise LabError("a link rate needs tc: `apt-get install iproute2`")
    kind = ["noqueue"]
    if rate:
        queue = min(max(1 << 20, int(rate / 8 * 50e-3)), (1 << 32) - 1)
        kind = f"tbf rate {int(rate)}bit burst {burst(rate)} limit {queue}".split()
    return [program, "qdisc", "replace", "dev", interface, "root", *kind]
