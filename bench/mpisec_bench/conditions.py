"""What a figure was taken on: goes into every result."""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from mpisec_bench.result import Document
from mpisec_bench.schemes import Scheme
from mpisec_lab import places
from mpisec_lab.options import count, duration, variables

if TYPE_CHECKING:
    from mpisec_bench.jobs import Jobs

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def machine() -> dict[str, object]:
    """This machine as a dict."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        text = info.read()
    model = re.search(r"model name\s*: (.*)", text)
    return {"cpu": model.group(1) if model else "unknown", "cores": os.cpu_count(), "kernel": platform.release(),
            "load": round(os.getloadavg()[0], 2)}


def conditions(arguments: argparse.Namespace, jobs: Jobs, shape: tuple[int, int], schemes: Sequence[Scheme]) -> dict[str, object]:
    """Machine, MPI, networks, settings and the crypto libraries that were to choose from, as a dict."""
    # Its exit status says whether every part is installed, which a benchmark of one MPI need not have.
    told = subprocess.run([places.find_mpisec(), "info"], capture_output=True, text=True, check=False).stdout
    libraries = re.findall(r"^crypto\s+(\S+)\s+([^:\n]+):", told, flags=re.MULTILINE)
    return machine() | {
        "mpisec": told.split()[1],
        "mpi": jobs.mpi,
        "nodes": shape[0],
        "ranks": shape[1],
        "aead": arguments.aead,
        "crypto_libraries": dict(libraries),
        "environment": _settings() | variables("--env", arguments.env),
        "build": _build(),
    } | jobs.conditions(*shape, schemes)


def _settings() -> dict[str, str]:
    """MPIsec's own settings in our environment, which sealed jobs take over."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("MPISEC_")}
    return {name: value for name, value in ours.items() if not name.startswith(("MPISEC_LAB_", "MPISEC_KEY"))}


def _build() -> str:
    """Tells builds of one version apart: a digest of what is preloaded."""
    libraries = sorted(places.libraries(places.find_mpisec()).glob("libmpisec-*.so"))
    return hashlib.sha256(b"".join(library.read_bytes() for library in libraries)).hexdigest()[:12]


def heading(document: Document) -> str:
    """The conditions in a line, and a line on each overlay."""
    at = document["conditions"]
    rate = f"{at['rate_bits_per_second'] / 1e9:g} Gbit/s per {at.get('rate_of', 'connection')}" if at["rate_bits_per_second"] else "unshaped"
    line = (
        f"{document['title']}: {at['mpi']}, {at['aead']}, {at['nodes']} node(s), {at['ranks']} ranks, link {rate}; "
        f"{at['cpu']}, {at['cores']} cores, kernel {at['kernel']}"
    )
    return "\n".join([line, *(_network(name, about) for name, about in at["overlays"].items() if about)])


def _network(name: str, about: dict[str, Any]) -> str:
    reached = f"; one TCP connection reaches {about['raw_tcp_bits_per_second'] / 1e9:.2f} Gbit/s" if "raw_tcp_bits_per_second" in about else ""
    return f"{name}: {about['data_plane']} ({about['runs_in']}){reached}"


def byte_counts(text: str) -> str:
    """The type of --sizes: "16K,1M" -> "16384,1048576", as the programs take it."""
    found = []
    for item in text.split(","):
        digits, unit = item.rstrip("KMG"), item[len(item.rstrip("KMG")):]
        if not digits.isascii() or not digits.isdigit() or unit not in _UNITS:
            raise argparse.ArgumentTypeError(f"'{item}' is no number of bytes; write 64, 16K or 1M, by commas")
        found.append(int(digits) * _UNITS[unit])
    return ",".join(map(str, found))


def counts(text: str) -> tuple[int, ...]:
    """The type of options like --pairs: "1,2" -> (1, 2)."""
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers; write 1,2,4")
    return tuple(int(item) for item in text.split(","))


def chosen(option: str, text: str, known: Collection[str]) -> list[str]:
    """What an option like --operations lists by commas; ends the command at a name that is not known."""
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"mpisec bench: {option} {unknown[0]} is none of {', '.join(known)}")
    return names


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of every benchmark that runs MPI jobs."""
    from mpisec_lab.link import parse_rate

    where = parser.add_argument_group("where jobs run")
    where.add_argument("--mpi", default="mpich-5", help="the lab's, as for mpisec lab run (mpich-5)")
    where.add_argument("--rate", type=parse_rate, help="rate of every lab node's link, as 10gbit")
    where.add_argument("--no-pin", action="store_true", help="do not give the lab's nodes cores of their own")
    where.add_argument("--launch", action="append", default=[], metavar="[SCHEME=]COMMAND",
                       help="your own launcher instead of the lab; {ranks}, {nodes} and {each} are put in. SCHEME= for the jobs over an overlay")
    where.add_argument("--mpicc", default="mpicc", help="compiler for the MPI that --launch starts (mpicc)")
    what = parser.add_argument_group("what is compared")
    what.add_argument("--schemes", default="mpisec",
                      help="with plain MPI: mpisec, mpisec@PROGRAM (another build), whole and segments (MPISEC_PIPELINE=off and on), segments:BYTES, "
                           "vxlan, wireguard, ipsec, vxlan+ipsec; by commas (mpisec)")
    what.add_argument("--apart", action="store_true",
                      help="plain MPI in jobs of its own, each as its launcher starts it: with what MPIsec tells the MPI library, and without")
    what.add_argument("--aead", default="auto", help="MPISEC_AEAD, as boringssl:aes-128-gcm (auto)")
    what.add_argument("--env", action="append", default=[], metavar="K=V", help="variable for the ranks")
    method = parser.add_argument_group("method")
    method.add_argument("--rounds", type=count, default=30, help="at most so many rounds of jobs (30)")
    method.add_argument("--seconds", type=duration, default=600, help="no round is begun after so many, but for the first six (600)")
    method.add_argument("-o", "--output", metavar="FILE.json", help="the result, kept up to date after every round")
    method.add_argument("--resume", action="store_true", help="go on with what FILE.json holds")
    method.add_argument("--json", action="store_true", help="print the result as JSON instead of a table")
