"""How sizes, times, ratios and schemes are written on the page."""

from collections.abc import Iterable, Mapping
from typing import Any

from mpisec_bench.plot_sim import size_text

Conditions = Mapping[str, Any]  # of a result

DAGGER = "†"  # the mark of an interval that was not narrowed as far as asked
_SCHEMES = {
    "plain": "plain MPI",
    "mpisec": "MPIsec",
    "vxlan": "VXLAN",
    "wireguard": "WireGuard",
    "ipsec": "IPsec",
}
_CALLS = {
    "pingpong": "Ping-pong",
    "window": "Messages in flight",
    "allgather": "All-gather",
    "bcast": "Broadcast",
    "alltoall": "All-to-all",
    "allreduce": "All-reduce",
    "reduce": "Reduce",
    "gather": "Gather",
    "scatter": "Scatter",
    "barrier": "Barrier",
    "reduce_scatter": "Reduce-scatter",
    "kernels": "Kernels",
}


def size(count: int) -> str:
    """1048576 -> 1 MiB."""
    text = size_text(count)
    return f"{text[:-1]} {text[-1]}iB" if text[-1] in "KMG" else f"{text} B"


def duration(microseconds: float) -> str:
    """Three digits and a unit: 12.5 µs, 1.02 ms, 14.1 s."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= factor:
            return f"{_three(microseconds / factor)} {unit}"
    return f"{_three(microseconds)} µs"


def rate(megabytes_per_second: float) -> str:
    """Three digits: 12.5 MB/s, 1.2 GB/s."""
    if megabytes_per_second >= 1e3:
        return f"{_three(megabytes_per_second / 1e3)} GB/s"
    return f"{_three(megabytes_per_second)} MB/s"


def _three(value: float) -> str:
    if value >= 1e3:
        return f"{value:,.0f}".replace(",", "\u202f")  # a thin space: 12 500 reads alike everywhere
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def number(value: float) -> str:
    """As a paper prints it: no digits made up, no exponents."""
    return f"{value:.10g}" if value < 1e5 else _three(value)


def ratio(value: float) -> str:
    """Three digits, more where a ratio is near 0."""
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """1.01–1.03; empty where none was measured."""
    return "" if low is None or high is None else f"{ratio(low)}–{ratio(high)}"


def with_interval(value: float, low: float | None, high: float | None, capped: bool = False) -> str:
    """1.02 (1.01–1.03), with the mark of a capped one."""
    return (
        ratio(value) + (DAGGER if capped else "") + (f" ({interval(low, high)})" if low is not None else "")
    )


def call(what: str) -> str:
    """What was done: allgather -> All-gather; kernels of NAS in capitals."""
    if what in _CALLS:
        return _CALLS[what]
    if what != what.lower() or " " in what:  # a name as somebody wrote it
        return what
    return what.upper() if len(what) <= 2 else what.replace("_", " ").capitalize()


def data_plane(scheme: str, conditions: Conditions) -> dict[str, Any]:
    """What conditions say of the overlay under a scheme, {} if nothing."""
    overlays = conditions.get("overlays")
    overlays = overlays if isinstance(overlays, dict) else {}
    found = [overlays[name] for name in (scheme, *scheme.split("+")) if isinstance(overlays.get(name), dict)]
    return found[0] if found else {}


def in_user_space(scheme: str, conditions: Conditions) -> bool:
    """Whether packets of this scheme take the slow way through a process."""
    overlays = conditions.get("overlays")
    overlays = overlays if isinstance(overlays, dict) else {}
    return any(runs_in(overlays.get(name)) == "user space" for name in (scheme, *scheme.split("+")))


def runs_in(overlay: object) -> str:
    """Where an overlay's packets are sealed: "kernel", "user space" or ""."""
    return str(overlay.get("runs_in") or overlay.get("where") or "") if isinstance(overlay, dict) else ""


def is_mpisec(scheme: str) -> bool:
    """Whether it is MPIsec: with some cipher ("mpisec aes-256-gcm"), or another build ("mpisec@PROGRAM")."""
    return scheme.split()[:1] == ["mpisec"] or scheme.startswith("mpisec@")


def is_encrypted(scheme: str) -> bool:
    """Whether a scheme protects anything: a bare VXLAN does not."""
    return scheme not in ("plain", "vxlan")


def scheme(name: str, conditions: Conditions) -> str:
    """mpisec aes-256-gcm -> MPIsec AES-256-GCM; vxlan+ipsec -> VXLAN + IPsec (user space)."""
    first, _, rest = name.partition(" ")
    text = " + ".join(_SCHEMES.get(part, part) for part in first.split("+"))
    text += f" {rest.upper() if is_mpisec(name) else rest}" if rest else ""
    if name == "vxlan":
        text += ", no encryption"
    return text + (" (user space)" if in_user_space(name, conditions) else "")


def bits(value: float) -> str:
    """9.21 Gbit/s."""
    return f"{value / 1e9:.3g} Gbit/s"


def conjunction(items: Iterable[str]) -> str:
    """a, b and c."""
    every = list(items)
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} and {every[-1]}" if every else ""


def link(conditions: Conditions) -> str:
    """The link's rate in words."""
    bits = conditions.get("rate_bits_per_second")
    if not bits and conditions.get("launch"):
        return "the site's network"
    if not isinstance(bits, int | float) or bits <= 0:
        return "unshaped link"
    return f"link of {bits / 1e9:g} Gbit/s" + ("" if conditions.get("rate_of") == "node" else " per connection")
