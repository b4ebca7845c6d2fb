"""What a suite is: where its programs come from, how they are run, what of their output is compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """What one run of a program, or of one test in it, came to."""

    passed: bool
    text: str  # what is compared
    said: str = ""  # searched for refusals, and quoted in reports


@dataclass(frozen=True, kw_only=True)
class Program:
    """One job. It runs in a directory of its own, afresh each time."""

    name: str
    command: Sequence
    files: Mapping = field(default_factory=dict)  # {name: text, or Path of what is copied there}
    outputs: Sequence = ()  # files that it writes and that are compared, beside standard output
    nodes: int | None = None  # the suite's, unless given
    ranks: int | None = None
    env: Mapping = field(default_factory=dict)
    sealed_env: Mapping = field(default_factory=dict)
    launcher: Sequence = ()  # further options for mpiexec
    timeout: int = 120
    exceptions: Sequence = ()  # as those of the suite, for this job on this MPI
    cases: Callable | None = None  # (directory, Result) -> {name: Case}, for a job of many tests


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Programs of one origin."""

    name: str
    origin: str  # "Debian package hpcc", "Debian source mpich", …
    version: Callable  # (mpi) -> str
    mpis: Sequence
    programs: Callable  # (mpi, directory to build in) -> [Program]; raises Missing
    compared: str  # for the page: which part of the output counts
    nodes: int = 2
    ranks: int | Mapping = 4  # or {mpi: ranks}
    keep: Sequence = ()  # patterns of the lines that are compared, all by default
    drop: Sequence = ()  # patterns of lines that are left out: times, dates, host names
    replace: Sequence = ()  # (pattern, replacement) within lines
    unordered: bool = False  # lines of several ranks come in any order
    tolerance: float | None = None  # relative, for numbers in which plain runs differ; None: these are not compared
    exceptions: Sequence = ()  # (pattern of case names, reason): differences that are known, each documented

    def ranks_on(self, mpi):
        """Ranks of a job, unless its program says otherwise."""
        return self.ranks if isinstance(self.ranks, int) else self.ranks[mpi]


class Missing(Exception):
    """Something that the suite needs is not on this machine; the text says what."""


def package_version(name):
    """A Suite's `version` from a Debian package."""
    from harness.sources import installed_version

    return lambda mpi: installed_version(name)


def here(*paths):
    """The paths as they are. Raises Missing for the first that does not exist."""
    for path in paths:
        if not Path(path).exists():
            raise Missing(f"{path} is not here: `make conformance` installs it")
    return paths
