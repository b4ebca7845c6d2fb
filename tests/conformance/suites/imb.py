"""The Intel MPI Benchmarks that come with Intel MPI's wheel. Their release builds check no data: what is compared is that every benchmark runs to its
end with the same message sizes and repetitions."""

import subprocess

from harness.description import Missing, Program, Suite

from mpisec_lab.mpis import find_mpi

FEW = ("-iter", "10", "-iter_policy", "off", "-msglog", "2:14", "-npmin", "2", "-time", "100")
# IMB-RMA is refused as a whole: it is here so that the page says so.
BENCHMARKS = {
    "IMB-MPI1": ("PingPong", "PingPing", "Sendrecv", "Exchange", "Bcast", "Allgather", "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv",
                 "Alltoall", "Alltoallv", "Reduce", "Reduce_scatter", "Allreduce", "Barrier"),
    "IMB-NBC": ("Ibcast", "Iallgather", "Igather", "Iscatter", "Ialltoall", "Ireduce", "Ireduce_scatter", "Iallreduce", "Ibarrier"),
    "IMB-RMA": ("Unidir_put",),
}


def programs(mpi, place):
    """A job per group of benchmarks."""
    bin_ = find_mpi(mpi).venv / "bin"
    if not (bin_ / "IMB-MPI1").exists():
        raise Missing("IMB-MPI1 is not in Intel MPI's environment: `mpisec lab setup impi`")
    return [Program(name=f"{program} {benchmark}", command=[bin_ / program, *FEW, benchmark]) for program, all_ in BENCHMARKS.items() for benchmark in all_]


def _version(mpi):
    text = subprocess.run([find_mpi(mpi).python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=False).stdout
    return next((line.split("==")[1] for line in text.splitlines() if line.startswith("impi-rt==")), "?")


SUITE = Suite(
    name="imb",
    origin="PyPI impi-rt (Intel MPI Benchmarks)",
    version=_version,
    mpis=("impi",),
    programs=programs,
    ranks=2,  # its ranks keep their cores while they wait
    compared="the tables' message sizes and repetitions; the benchmarks check no data",
    keep=(r"^# Benchmarking", r"^# #processes", r"^\d+ \d+$"),
    replace=((r"^\s*(\d+)\s+(\d+)\s+[\d.]+.*$", r"\1 \2"),),
)
