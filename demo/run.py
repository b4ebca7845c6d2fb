"""The demonstration of `make demo`: one program, run plain and sealed on two nodes, with a look at the wire.

    PYTHONPATH=lab python3 demo/run.py [--mpi mpich-5] [--nodes 2] [--ranks N] [--pairs 5] [--rate 10gbit]

Exit status 0 when the results are identical and the label is on the wire plain but never sealed.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mpisec_lab import Cluster, LabError, find_mpi, places
from mpisec_lab.build import compile_mpi
from mpisec_lab.capture import count
from mpisec_lab.link import parse_rate

SOURCE = Path(__file__).resolve().with_name("heat.c")
LABEL = b"HEAT-HALO-ROW-01"
LINE = re.compile(r"checksum=([0-9a-f]{16}) seconds=([0-9.]+)")


class Heat:
    """The program on the cluster; run() gives its checksum and the seconds of its main loop."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace) -> None:
        self._cluster = cluster
        self._options = options
        self._program = compile_mpi(SOURCE, options.mpi, flags=["-O3"])

    def cryptography(self) -> str:
        """A sentence: which crypto libraries were built, and which of them this machine's calibration chooses."""
        doctor = [str(places.find_mpisec()), "doctor", "--", str(self._program)]
        said = subprocess.run(doctor, capture_output=True, text=True, check=False).stdout.splitlines()
        built = [line.split()[1] for line in said if line.startswith("crypto ")]
        selected = [line.split(maxsplit=1)[1] for line in said if line.startswith("selected ")]
        return f"Crypto libraries that were built: {', '.join(built)}. Chosen here: {'; '.join(selected)}."

    def run(self, plain: bool, steps: int) -> tuple[str, float]:
        result = self._cluster.run(
            [self._program, "1024", "2048", str(steps)],
            ranks=self._options.ranks,
            mpi=self._options.mpi,
            plain=plain,
            rate=parse_rate(self._options.rate) if self._options.rate else None,
            timeout=300,
        ).check()
        found = LINE.search(result.stdout)
        if not found:
            raise LabError(f"the program printed no result:\n{result.stdout}\n{result.stderr}")
        return found.group(1), float(found.group(2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", default="mpich-5", help="an MPI of `mpisec lab list` (mpich-5)")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, help="default: one per core, at least one and at most two per node")
    parser.add_argument("--pairs", type=int, default=5, help="timed runs of each kind (5)")
    parser.add_argument("--rate", help="link rate, as 10gbit (as fast as the machine)")
    options = parser.parse_args()
    if not options.ranks:
        per_node = max(1, min(2, (os.cpu_count() or 1) // options.nodes))
        options.ranks = options.nodes * per_node
    return options


def _row(name: str, values: Sequence[object], verdict: str = "") -> None:
    plain, sealed = values
    print(f"   {name:34}{plain!s:>20}{sealed!s:>20}   {verdict}".rstrip())


def look_at_wire(cluster: Cluster, heat: Heat) -> bool:
    """One short run of each kind with every frame recorded. True when all is as promised."""
    checksums: list[str] = []
    seen: list[int] = []
    volume: list[int] = []
    for plain in (True, False):
        with cluster.capture() as capture:
            checksum, _ = heat.run(plain, steps=100)
        streams = capture.streams()
        checksums.append(checksum)
        seen.append(count(streams, LABEL))
        volume.append(sum(len(stream.data) for stream in streams))
    same = checksums[0] == checksums[1]
    hidden = seen[0] > 0 and seen[1] == 0
    moved = volume[1] >= 0.9 * volume[0]
    _row("", ["plain MPI", "with MPIsec"])
    _row("checksum of the whole result", checksums, "identical" if same else "DIFFERENT")
    _row("bytes between the nodes", [f"{n:,}" for n in volume], "" if moved else "TOO FEW")
    _row(f'times "{LABEL.decode()}" is seen', seen, "hidden" if hidden else "NOT AS PROMISED")
    return same and hidden and moved


def compare_times(heat: Heat, pairs: int) -> None:
    """Runs in turns, so that a machine that changes speed changes it for both."""
    times = [(heat.run(True, steps=400)[1], heat.run(False, steps=400)[1]) for _ in range(pairs)]
    plain, sealed = (statistics.median(column) for column in zip(*times))
    ratios = sorted(sealed / plain for plain, sealed in times)
    _row("main loop, median", [f"{plain:.3f} s", f"{sealed:.3f} s"])
    print(f"   time with MPIsec: {statistics.median(ratios):.3f} x plain (median of {pairs} pairs of runs;"
          f" single pairs {ratios[0]:.2f} to {ratios[-1]:.2f})")
    if statistics.median(ratios) < 1:
        print("   below 1 is no merit of encryption: MPIsec has MPICH leave out acknowledgements; where ranks share cores, its give theirs away")


def main() -> int:
    options = _options()
    print(f"A heat-diffusion program in C on {options.nodes} nodes (network namespaces on this machine), {options.ranks} ranks,\n"
          f"{find_mpi(options.mpi).title}. Neighbours exchange rows; each message starts with the label {LABEL.decode()}.\n"
          "It runs as it is (mpiexec … ./heat) and with MPIsec (mpiexec … mpisec exec ./heat). Nothing is recompiled.\n")
    with Cluster(options.nodes) as cluster:
        heat = Heat(cluster, options)
        print(heat.cryptography() + "\n")
        print("1. What an eavesdropper between the nodes records (100 steps):")
        good = look_at_wire(cluster, heat)
        print("\n2. What it costs (400 steps):")
        compare_times(heat, options.pairs)
    print("\n" + ("Same result, and no row can be read on the way." if good else "THE DEMO FAILED: see the capitals above.")
          + "\nTry your own program: .mpis/mpich-5/bin/mpicc app.c -o app && build/release/bin/mpisec lab run --nodes 2 -n 4 ./app")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"demo: {error}")
