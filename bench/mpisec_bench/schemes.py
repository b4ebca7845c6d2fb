"""What is compared: plain MPI, MPIsec, and plain MPI over encrypted (or merely encapsulated) overlay networks."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from mpisec_lab.errors import LabError

OVERLAYS = ("vxlan", "wireguard", "ipsec", "vxlan+ipsec")


@dataclass(frozen=True)
class Scheme:
    """How jobs of a scheme are run."""

    name: str
    sealed: bool = False  # under mpisec exec
    overlay: str = "none"  # the network below
    program: str | None = None  # the mpisec program; None: this installation's
    settings: tuple[tuple[str, str], ...] = ()  # MPIsec's, over those of the whole benchmark
    times_plain: bool = False  # its jobs time plain MPI as well, by turns

    def environment(self, common: Mapping[str, str] | None) -> dict[str, str]:
        """The variables of its ranks."""
        return {**(_LIKE_PLAIN if self.times_plain else {}), **(common or {}), **dict(self.settings)}


# Where plain and sealed calls share a process, MPICH has what MPIsec switches off otherwise: plain windows need it.
_LIKE_PLAIN = {"MPIR_CVAR_CH4_OFI_ENABLE_RMA": "1", "MPIR_CVAR_CH4_OFI_ENABLE_AM": "1"}


PLAIN = Scheme("plain")
MPISEC = Scheme("mpisec", sealed=True)
# The two fixed ways of a large message, whatever the automatic choice is.
WHOLE = Scheme("whole", sealed=True, settings=(("MPISEC_PIPELINE", "off"),))
SEGMENTS = Scheme("segments", sealed=True, settings=(("MPISEC_PIPELINE", "on"),))


def parse(text: str) -> tuple[Scheme, ...]:
    """The type of --schemes: "mpisec,wireguard" -> schemes in that order. "mpisec@PATH" is another build,
    "segments:256K" MPIsec with segments of that length. Raises LabError."""
    return tuple(_scheme(name) for name in text.split(","))


def _scheme(name: str) -> Scheme:
    if cut := re.fullmatch(r"segments:(\d+[KM]?)", name):
        return Scheme(name, sealed=True, settings=(*SEGMENTS.settings, ("MPISEC_SEGMENT", cut[1])))
    known = {scheme.name: scheme for scheme in (MPISEC, WHOLE, SEGMENTS, *(Scheme(overlay, overlay=overlay) for overlay in OVERLAYS))}
    build, at, program = name.partition("@")
    if build == MPISEC.name and at and shutil.which(program):
        return Scheme(name, sealed=True, program=program)
    if name not in known:
        raise LabError(f"--schemes knows no '{name}': it takes {', '.join(known)}, segments:BYTES and mpisec@PROGRAM; each is compared with plain MPI")
    return known[name]
