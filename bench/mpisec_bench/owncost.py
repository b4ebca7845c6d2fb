"""Nanoseconds in MPIsec itself per small message, network excluded (bench/own_cost.c under bench/stopwatch.c)."""

from collections.abc import Sequence
from pathlib import Path

from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import MPISEC
from mpisec_lab.build import compile_mpi

_SOURCES = Path(__file__).resolve().parent.parent


def measure(mpi: str, jobs: Jobs, environment: dict[str, str]) -> list[Row]:
    """Runs the job; returns [{"bytes", "seal_ns", "open_ns", "both_ns"}, …]."""
    stopwatch = compile_mpi(_SOURCES / "stopwatch.c", mpi, flags=["-O2", "-shared", "-fPIC", "-ldl"], name="stopwatch.so")
    program = jobs.compile(_SOURCES / "own_cost.c")
    return rows_of(jobs.run([program], 2, 2, MPISEC, environment | {"LD_PRELOAD": str(stopwatch)}))


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    return "\n".join(
        f"MPIsec itself, {row['bytes']} bytes: {row['seal_ns']:.0f} ns to send, {row['open_ns']:.0f} ns to receive, {row['both_ns']:.0f} ns together"
        for row in rows
    )
