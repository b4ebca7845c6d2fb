"""A rank that dies: what the others do, and what is left. `python tests/integration/shim/deaths.py` runs the whole matrix and writes docs/failures.md."""

import argparse
import json
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from mpisec_lab import build  # noqa: E402
from mpisec_lab.cluster import Cluster  # noqa: E402
from mpisec_lab.mpis import find_mpi  # noqa: E402

MPIS = ["mpich-5", "mpich-4", "openmpi-5", "openmpi-4"]
HANDSHAKE = ["first message of MPI_Init", "second message of MPI_Init", "third message of MPI_Init"]
COLLECTIVES = ["first", "barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "reduce_scatter", "scan",
               "exscan", "neighbor_allgather", "neighbor_alltoall"]
POINTS = [*HANDSHAKE, "large", *COLLECTIVES, "finalize"]
LAYOUTS = ["2x2", "4x1", "4x2"]  # nodes x ranks of each
LIMIT = 45  # seconds; MPIsec's own end comes after about 20
SETTINGS = {"plain": None, "sealed": {}, "report": {"MPISEC_STALL_ACTION": "report"}}  # None: without MPIsec
# The rank's end is not the end of what the launcher has started, as where a launcher is told to go on without it.
HIDDEN = ["sh", "-c", '"$0" "$@"; sleep 1000']
NAMES = ["sh", "-c", 'ls -A /dev/shm; ls -A "$TMPDIR"']


@dataclass
class Death:
    """What became of a job of which one rank was killed."""

    seconds: float
    ended: bool  # before LIMIT
    returncode: int
    output: str
    left: list  # names in the nodes' /dev/shm and temporary directories
    left_over: list  # processes that outlived the launcher, or LIMIT
    app: str = ""

    def ranks_left(self):
        """Ranks that were still there when the launcher had ended, or had not after LIMIT."""
        return [command for command in self.left_over if command.split()[0] == self.app]

    def sentence(self):
        """The line that says that a rank died: the launcher's, MPI's or MPIsec's; None when nobody said it."""
        words = r"has exited due to process|KILLED BY SIGNAL|BAD TERMINATION|exited on signal|signal 9|EXIT CODE: 9|Killed|lost connection|mpisec: rank"
        found = [line.strip("=| ") for line in self.output.splitlines() if re.search(words, line)]
        return found[0] if found else None


def kill_one(cluster, mpi, point, rank, hidden=False, **options):
    """Runs death.c and kills `rank` at `point`; returns a Death. hidden: the launcher does not see it. Options: plain, ranks, env."""
    nodes = len(cluster.names)
    plain, ranks, env = options.get("plain", False), options.get("ranks", 2 * nodes), options.get("env")
    env = {"OMPI_MCA_mpi_yield_when_idle": "1"} | (env or {})
    if point in HANDSHAKE:
        below = build.compile_mpi(HERE / "dying_handshake.c", mpi, name="dying_handshake.so",
                                  flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"])
        env |= {"LD_PRELOAD": below, "MPISEC_LAB_DIES": rank, "MPISEC_LAB_DIES_AT": HANDSHAKE.index(point) + 1}
    app = build.compile_mpi(HERE / "death.c", mpi, flags=["-std=gnu11"])
    before = [cluster.execute(node, NAMES).stdout.split() for node in range(nodes)]
    command = [app, rank, point]
    if hidden:
        command = [*([] if plain else ["--mpi", mpi.split("-")[0], "--"]), *HIDDEN, *command]
    start = time.monotonic()
    result = cluster.run(command, ranks=ranks, mpi=mpi, plain=plain, env=env, timeout=LIMIT)
    seconds = time.monotonic() - start
    after = [cluster.execute(node, NAMES).stdout.split() for node in range(nodes)]
    left = sorted({name for was, now in zip(before, after, strict=True) for name in now if name not in was},
                  key=lambda name: (not name.startswith("mpisec-"), name))  # a cell shows the first
    return Death(seconds, not result.timed_out, result.returncode, result.stdout + result.stderr, left, result.left_over, str(app))


HEADER = """# When a rank dies

One rank is killed (`kill -9`) at some point of the job: the last one, or, in MPI_Init, rank 1. "first" is the first collective of a
communicator, which the rank never reaches. Each job ran without MPIsec ("plain"), with it and its defaults
("sealed"), and with `MPISEC_STALL_ACTION=report` ("report"). Made by

    .deps/test-venv/bin/python tests/integration/shim/deaths.py

A cell says after how many seconds the launcher returned, starting the job included, with which status, and what was
left afterwards in the nodes' `/dev/shm` and temporary directories. "no end" is a job whose launcher had not ended after %d s,
and how many of its ranks were there then.

- **The launchers end the job**, within seconds, with and without MPIsec. MPIsec has no part in it then.
- **Open MPI 5's launcher now and then does not end**, with and without MPIsec: all ranks have ended, and `prterun` and its
  daemons wait in their event loops for ever. No rank is left that could do anything about it. A rank whose connection to the
  dead one closes aborts by itself; that coincides with the launcher's own clearing up.
- **A launcher that goes on without dead ranks** (`srun --kill-on-bad-exit=0`): a rank of the same
  node that waits 10 s or longer sees that the process has ended, says which rank that was, and 5 s later ends the job by
  `MPI_Abort`. `MPISEC_STALL_ACTION=report` says it and goes on waiting. Where no other rank of the job is on the dead rank's node,
  nobody can know: a dead rank there looks like a slow one. The others wait, as they do without MPIsec; the
  stall report names the rank that they wait for, and `MPISEC_STALL_ACTION=abort` ends the job. So it is with Hydra's
  `-disable-auto-cleanup`, which ends all ranks of the dead rank's node and none of the others.
- **Programs that go on** (User-Level Failure Mitigation; Open MPI 5, `mpiexec --with-ft ulfm --mca coll ^han`): the survivors of
  a rank get the library's error in whatever they wait for, and go on with `MPIX_Comm_revoke`, `MPIX_Comm_agree`,
  `MPIX_Comm_iagree` and `MPIX_Comm_shrink`, sealed ([architecture.md](architecture.md#when-ranks-have-died)). On
  inter-communicators these are refused; windows, files and spawned worlds that lost a process are not covered. Without MPIsec
  too, Open MPI writes to connections of dead ranks, so the program must ignore `SIGPIPE`; its collective component `han`
  crashes; its `MPI_Finalize` does not end when a node has lost all of its ranks. MPICH 5.0 ends every program that calls
  `MPIX_Comm_shrink` by an assertion, without MPIsec also those that call `MPIX_Comm_agree`.
- **"nothing said"**: the launcher returned a status and no sentence. MPICH's is sometimes ended by its own signal first (15, 143),
  Open MPI 4.1's by an error in the code that prints its messages (255), with and without MPIsec.
- **Names**: MPICH leaves `mpich_shm_…` in `/dev/shm` when a rank is killed, with and without MPIsec. MPIsec's memory has a name
  for some milliseconds of `MPI_Init` only. A job killed within them leaves `mpisec-…`, which the same user's next job on the
  node removes once it is a minute old.
"""


def cell(death):
    if not death.ended:
        ranks = len(death.ranks_left())
        return f"**no end**, {ranks} ranks" if ranks else "no end, no rank"
    text = f"{death.seconds:.0f} s, exit {death.returncode}"
    if not death.sentence():
        text += ", nothing said"
    if death.left:
        text += f", left {len(death.left)} ({re.sub(r'[0-9a-f]{6,}', '…', death.left[0])})"
    if death.left_over:
        text += f", {len(death.left_over)} processes outlived it"
    return text


def run_column(layout, points, mpi, settings, write):
    """All jobs of one MPI library in `layout` (nodes x ranks per node); hands each cell to `write`."""
    nodes, per_node = map(int, layout.split("x"))
    with Cluster(nodes) as cluster:
        for point in points:
            rank = 1 if point in HANDSHAKE else nodes * per_node - 1
            for name in settings:
                env = SETTINGS[name]
                if env is None and point in HANDSHAKE:
                    continue  # MPIsec's own
                death = kill_one(cluster, mpi, point, rank, plain=env is None, ranks=nodes * per_node, env=env)
                write(f"{layout} {mpi} {point} {name}", cell(death))
                print(layout, point, mpi, name, cell(death), "|", death.sentence(), "|", death.left, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", action="append", choices=MPIS)
    parser.add_argument("--nodes", action="append", help="NODESxRANKS, ranks per node; default 2x2, 4x1 and 4x2")
    parser.add_argument("--point", action="append", choices=POINTS)
    parser.add_argument("--settings", action="append", choices=SETTINGS)
    parser.add_argument("--jobs", type=int, default=2, help="labs at a time")
    parser.add_argument("--results", type=Path, default=ROOT / "docs/results/deaths.json", help="cells, those of earlier runs included")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/failures.md", help="made of all results")
    options = parser.parse_args()
    results = json.loads(options.results.read_text()) if options.results.exists() else {}

    def write(key, text):
        results[key] = text
        options.results.write_text(json.dumps(dict(sorted(results.items())), indent=1, ensure_ascii=False) + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        columns = [pool.submit(run_column, layout, options.point or POINTS, mpi, options.settings or list(SETTINGS), write)
                   for layout in options.nodes or LAYOUTS for mpi in options.mpi or MPIS]
    for column in columns:
        column.result()
    options.output.write_text(HEADER % LIMIT + "".join(table(layout, results) for layout in LAYOUTS))


def table(layout, results):
    nodes, ranks = map(int, layout.split("x"))
    text = f"\n## {nodes} nodes, {ranks} rank{'s' if ranks > 1 else ''} each\n\n"
    text += f"| killed in |{''.join(f' {find_mpi(mpi).title} |' for mpi in MPIS)}\n| --- |{' --- |' * len(MPIS)}\n"
    for point in POINTS:
        cells = ["<br>".join(f"{name}: {results[key]}" for name in SETTINGS if (key := f"{layout} {mpi} {point} {name}") in results)
                 for mpi in MPIS]
        text += f"| {point} | {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
