"""What is compared: plain MPI, MPIsec, and plain MPI over encrypted (or merely encapsulated) overlay networks."""

from dataclasses import dataclass

from mpisec_lab.errors import LabError

OVERLAYS = ("vxlan", "wireguard", "ipsec", "vxlan+ipsec")


@dataclass(frozen=True)
class Scheme:
    """How jobs of a scheme are run."""

    name: str
    sealed: bool = False  # under mpisec exec
    overlay: str = "none"  # the network below


PLAIN = Scheme("plain")
MPISEC = Scheme("mpisec", sealed=True)


def parse(text):
    """The type of --schemes: "mpisec,wireguard" -> schemes in that order. Raises LabError."""
    known = {scheme.name: scheme for scheme in (MPISEC, *(Scheme(name, overlay=name) for name in OVERLAYS))}
    for name in text.split(","):
        if name not in known:
            raise LabError(f"--schemes knows no '{name}': it takes {', '.join(known)}; each is compared with plain MPI")
    return tuple(known[name] for name in text.split(","))
