"""Application kernels with the communication patterns of the NAS benchmarks (bench/kernels), each verifying its result.

Row "total" is the whole suite: what an average of ratios cannot say, total times can (Naser et al., CLUSTER 2019, V.A, footnote 2).
"""

import argparse
from collections.abc import Iterator, Sequence

from mpisec_bench import programs
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.errors import LabError
from mpisec_lab.options import count

PLAIN_INSIDE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench kernels`."""
    parser.add_argument("--class", dest="size", choices=programs.CLASSES, default="S", help="size of the problems; S takes seconds (S)")
    parser.add_argument("--kernels", default=",".join(programs.KERNELS), help=f"by commas; also {', '.join(programs.FORTRAN)} where MPI has Fortran")
    parser.add_argument("--nodes", type=count, default=2, help="nodes (2)")
    parser.add_argument("--ranks", type=count, default=2, help="ranks, spread over the nodes in blocks (2)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return arguments.nodes, arguments.ranks


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return f"Application kernels, class {arguments.size}, {arguments.nodes} nodes × {arguments.ranks // arguments.nodes}"


def cases(arguments: argparse.Namespace) -> list[str]:
    """One, the suite: a total needs all of them."""
    for name in arguments.kernels.split(","):
        if name not in (*programs.KERNELS, *programs.FORTRAN):
            raise LabError(f"there is no kernel '{name}'; there are {', '.join((*programs.KERNELS, *programs.FORTRAN))}")
    return ["suite"]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, _cases: Sequence[str], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each kernel; yields their rows, with the last one's the total's."""
    about = {"case": "suite", "class": arguments.size}
    names, total = arguments.kernels.split(","), 0.0
    for number, name in enumerate(names, start=1):
        program = jobs.compile(programs.source(name), programs.flags(name))
        said = rows_of(jobs.run([program, arguments.size], *shape(arguments), scheme, environment))
        if len(said) != 1 or said[0].get("verified") is not True:
            raise LabError(f"the kernel {name} did not verify its result: {said}")
        microseconds = said[0]["seconds"] * 1e6
        total += microseconds
        suite = [about | {"what": "total", "time_us": total}] if number == len(names) else []
        yield [about | {"what": name, "time_us": microseconds}, *suite]
