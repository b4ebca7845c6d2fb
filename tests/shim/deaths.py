"""A rank that dies: what the others do, and what is left. `python tests/shim/deaths.py` runs the whole matrix and writes docs/failures.md."""

import argparse
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "lab"))

from mpisec_lab import build  # noqa: E402
from mpisec_lab.cluster import Cluster  # noqa: E402
from mpisec_lab.mpis import find_mpi  # noqa: E402

MPIS = ["mpich-5", "mpich-4", "openmpi-5", "openmpi-4"]
HANDSHAKE = ["first message of MPI_Init", "second message of MPI_Init", "third message of MPI_Init"]
COLLECTIVES = ["first", "barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "reduce_scatter", "scan",
               "exscan", "neighbor_allgather", "neighbor_alltoall"]
POINTS = [*HANDSHAKE, "large", *COLLECTIVES, "finalize"]
LIMIT = 60  # seconds; also the default of MPISEC_STALL_TIME, after which MPIsec only reports
NAMES = ["sh", "-c", 'ls -A /dev/shm; ls -A "$TMPDIR"']


@dataclass
class Death:
    """What became of a job of which one rank was killed."""

    seconds: float
    ended: bool  # before LIMIT
    returncode: int
    output: str
    left: list  # names in the nodes' /dev/shm and temporary directories
    left_over: list  # processes that outlived the launcher

    def sentence(self):
        """The line that says that a rank died: the launcher's, MPI's or MPIsec's; None when nobody said it."""
        words = r"has exited due to process|KILLED BY SIGNAL|BAD TERMINATION|exited on signal|signal 9|EXIT CODE: 9|Killed|lost connection|mpisec: rank"
        found = [line.strip("=| ") for line in self.output.splitlines() if re.search(words, line)]
        return found[0] if found else None


def kill_one(cluster, mpi, point, rank, plain=False, ranks=None, env=None):
    """Runs death.c and kills `rank` at `point`; returns a Death."""
    nodes = len(cluster.names)
    ranks = ranks or 2 * nodes
    env = {"OMPI_MCA_mpi_yield_when_idle": "1"} | (env or {})
    if point in HANDSHAKE:
        below = build.compile_mpi(HERE / "dying_handshake.c", mpi, name="dying_handshake.so",
                                  flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"])
        env |= {"LD_PRELOAD": below, "MPISEC_LAB_DIES": rank, "MPISEC_LAB_DIES_AT": HANDSHAKE.index(point) + 1}
    app = build.compile_mpi(HERE / "death.c", mpi, flags=["-std=gnu11"])
    before = [cluster.execute(node, NAMES).stdout.split() for node in range(nodes)]
    start = time.monotonic()
    result = cluster.run([app, rank, point], ranks=ranks, mpi=mpi, plain=plain, env=env, timeout=LIMIT)
    seconds = time.monotonic() - start
    after = [cluster.execute(node, NAMES).stdout.split() for node in range(nodes)]
    left = sorted({name for was, now in zip(before, after, strict=True) for name in now if name not in was})
    return Death(seconds, not result.timed_out, result.returncode, result.stdout + result.stderr, left, result.left_over)


HEADER = """# When a rank dies

One rank is killed (`kill -9`) at a point of the job, in all else as configured by default: `MPISEC_STALL_ACTION` is `report`,
so MPIsec reports waits and ends nothing. Two ranks per node; the rank killed is the last one, or, in MPI_Init, rank 1, which is waited for by the
leader of its node. "first" is the first collective of a communicator, for which the rank does not come. Made by

    .deps/test-venv/bin/python tests/shim/deaths.py

MPICH leaves `mpich_shm_…` names in `/dev/shm` when a rank is killed, with and without MPIsec. Names `mpisec-…` are MPIsec's:
of memory that the killed rank had not come to; the same user's next job on the node removes them once they are a minute
old. A cell says after how many seconds the launcher returned (starting the job included), `exit N` is its status, and what was
left afterwards in the nodes' `/dev/shm` and temporary directories. "no end" would be a job that did not end within %d s.

| killed in | nodes |%s
| --- | --- |%s
"""


def cell(death):
    if not death.ended:
        return "**no end**"
    text = f"{death.seconds:.0f} s, exit {death.returncode}"
    if not death.sentence():
        text += ", nothing said"
    if death.left:
        text += f", left {len(death.left)} ({re.sub(r'[0-9a-f]{6,}', '…', death.left[0])})"
    if death.left_over:
        text += f", {len(death.left_over)} processes outlived it"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", action="append", choices=MPIS)
    parser.add_argument("--nodes", type=int, action="append")
    parser.add_argument("--point", action="append", choices=POINTS)
    parser.add_argument("--plain", action="store_true", help="without MPIsec")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/failures.md")
    options = parser.parse_args()
    mpis = options.mpi or MPIS
    points = [point for point in options.point or POINTS if not (options.plain and point in HANDSHAKE)]
    text = HEADER % (LIMIT, "".join(f" {find_mpi(mpi).title} |" for mpi in mpis), " --- |" * len(mpis))
    for nodes in options.nodes or [2, 4]:
        with Cluster(nodes) as cluster:
            for point in points:
                cells = []
                for mpi in mpis:
                    death = kill_one(cluster, mpi, point, 1 if point in HANDSHAKE else 2 * nodes - 1, options.plain)
                    cells.append(cell(death))
                    print(nodes, point, mpi, cells[-1], "|", death.sentence(), "|", death.left, flush=True)
                text += f"| {point} | {nodes} | {' | '.join(cells)} |\n"
                options.output.write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
