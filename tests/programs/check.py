"""Plain against sealed: which programs differ, and the smallest ones that do."""

import dataclasses
import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from .generate import program
from .lab import Lab, Lines, Place, Run, Traces
from .shrink import Budget, shrink

PLAIN_FAILS = "plain fails"  # the MPI library's own fault, or the generator's
OPEN = "plain differs from plain"  # MPI leaves it open
WRONG = "plain is wrong"  # the MPI library's own fault: two other ones give what this one gives sealed
LOST = "not seen again"
ORACLES = ("mpich-5", "openmpi-5", "openmpi-4", "mpich-4")

Differences = dict[tuple[int, int, int], tuple[set[str], set[str]]]  # (program, rank, line): words only plain, words only sealed


class Runner(Protocol):
    """What runs programs: a Lab, or a test's stand-in."""

    def run(self, place: Place, programs: Sequence[Lines], *, plain: bool, time_limit: float) -> Run: ...


@dataclass
class Finding:
    """A program that does not do the same plain and sealed."""

    place: Place
    kind: str
    seed: int
    detail: str
    lines: Lines  # the smallest that was found
    steps_before: int = 0

    def text(self) -> str:
        """A file that `replay` takes."""
        where = dataclasses.asdict(self.place)
        head = [f"# {self.kind}: {detail}" if i == 0 else f"# {detail}" for i, detail in enumerate(self.detail.splitlines() or [""])]
        return "\n".join([*head[:12], f"# place {json.dumps(where)}", *self.lines]) + "\n"


@dataclass
class Summary:
    """What became of many programs."""

    programs: int = 0
    steps: int = 0
    same: int = 0
    calls: dict[str, int] = field(default_factory=dict)  # of sealed runs
    findings: list[Finding] = field(default_factory=list)  # plain and sealed differ
    plain_fails: list[Finding] = field(default_factory=list)  # the library's own: these say nothing about MPIsec
    seconds: float = 0

    def record(self, finding: Finding) -> None:
        (self.plain_fails if finding.kind in (PLAIN_FAILS, OPEN, WRONG) else self.findings).append(finding)

    def add(self, other: Self) -> None:
        self.programs += other.programs
        self.steps += other.steps
        self.same += other.same
        self.findings += other.findings
        self.plain_fails += other.plain_fails
        self.seconds += other.seconds
        for name, count in other.calls.items():
            self.calls[name] = self.calls.get(name, 0) + count


def first_difference(plain: Traces, sealed: Traces, lines: Lines) -> str | None:
    """A sentence on where two traces of a program part, or None."""
    for rank, (one, other) in enumerate(zip(plain, sealed)):
        for i, (a, b) in enumerate(zip(one, other)):
            if a != b:
                step = lines[i] if i < len(lines) else "the end of the program"
                return f"rank {rank}: {step}\nplain  {a.strip()[:300]}\nsealed {b.strip()[:300]}"
        if len(one) != len(other):
            return f"rank {rank}: {len(one)} lines plain, {len(other)} sealed"
    return None


def _ended_badly(run: Run, place: Place) -> bool:
    """MPICH 4.0 hangs in MPI_Finalize at times (program.c)."""
    return run.returncode != 0 and not (place.mpi == "mpich-4" and all(run.finished(i) for i in range(len(run.traces))))


def _where(run: Run, programs: Sequence[Lines]) -> str:
    """Where the ranks of a job were that did not end."""
    for i in range(len(programs)):
        if not run.finished(i):
            traces = run.traces[i] if i < len(run.traces) else []
            return "; ".join(
                f"rank {rank} in {lines[-1].split()[1] if lines and len(lines[-1].split()) > 1 else 'nothing'}" for rank, lines in enumerate(traces))
    return "MPI_Finalize"


def verdict(lab: Runner, place: Place, programs: Sequence[Lines], time_limit: float = 6) -> tuple[str, str] | None:
    """(kind, detail) of the last of the programs, or of the end of their job; None when plain and sealed are the same."""
    plain = lab.run(place, programs, plain=True, time_limit=time_limit)
    last = len(programs) - 1
    if re.search(r"^program: rank \d+: ", plain.said, re.MULTILINE):
        return "no program", plain.said[-600:]
    if _ended_badly(plain, place) or not all(plain.finished(i) for i in range(len(programs))):
        return PLAIN_FAILS, f"exit {plain.returncode}, {_where(plain, programs)}\n{plain.said[-600:]}"
    sealed = lab.run(place, programs, plain=False, time_limit=time_limit)
    if not all(sealed.finished(i) for i in range(len(programs))):
        return ("sealed hangs" if "takes too long" in sealed.said or sealed.returncode == 124 else "sealed dies",
                f"exit {sealed.returncode}, {_where(sealed, programs)}\n{sealed.said[-600:]}")
    for i in range(last, -1, -1):
        difference = first_difference(plain.traces[i], sealed.traces[i], programs[i])
        if difference:
            again = lab.run(place, programs, plain=True, time_limit=time_limit)
            if again.traces[: last + 1] != plain.traces[: last + 1]:
                return OPEN, difference
            return "differs", difference
    if _ended_badly(sealed, place):
        return "sealed ends badly", f"exit {sealed.returncode}\n{sealed.said[-600:]}"
    return None


def _differences(plain: Run, sealed: Run) -> Differences:
    """{(program, rank, line): (words that are only plain, words that are only sealed)} where two runs differ."""
    found: Differences = {}
    for i, (one, other) in enumerate(zip(plain.traces, sealed.traces)):
        for rank, (a, b) in enumerate(zip(one, other)):
            found |= {(i, rank, at): (set(theirs.split()) - set(ours.split()), set(ours.split()) - set(theirs.split()))
                      for at, (theirs, ours) in enumerate(zip(a, b)) if theirs != ours}
    return found


def _says(run: Run, where: tuple[int, int, int], words: tuple[set[str], set[str]]) -> bool:
    i, rank, at = where
    if i >= len(run.traces) or at >= len(run.traces[i][rank]):
        return False
    line = set(run.traces[i][rank][at].split())
    return bool(words[1]) and words[1] <= line and not words[0] & line


def others_agree(lab: Runner, place: Place, programs: Sequence[Lines], time_limit: float = 6) -> bool:
    """Whether two other MPIs give plain, wherever plain and sealed differ, what the sealed run gives."""
    sealed = lab.run(place, programs, plain=False, time_limit=time_limit)
    differences = _differences(lab.run(place, programs, plain=True, time_limit=time_limit), sealed)
    agree = 0
    for mpi in ORACLES:
        if mpi != place.mpi and differences and agree < 2:
            other = lab.run(dataclasses.replace(place, mpi=mpi), programs, plain=True, time_limit=time_limit)
            agree += all(_says(other, where, words) for where, words in differences.items())
    return agree == 2


def fault_of_the_library(lab: Runner, place: Place, programs: Sequence[Lines], time_limit: float = 6, runs: int = 6) -> str | None:
    """For what differs: WRONG or OPEN when it is not MPIsec's, else None."""
    if others_agree(lab, place, programs, time_limit):
        return WRONG
    plain = [lab.run(place, programs, plain=True, time_limit=time_limit).traces for _ in range(runs)]
    return OPEN if any(traces != plain[0] for traces in plain) else None


def _split(lines: Lines) -> list[Lines]:
    """The programs of a script."""
    programs: list[Lines] = []
    for line in lines:
        if line.startswith("program") or not programs:
            programs.append([])
        programs[-1].append(line)
    return programs


def investigate(lab: Runner, place: Place, before: Sequence[Lines], lines: Lines, budget: Budget | None = None, plain_too: bool = False) -> Finding | None:
    """Finding of a program that failed after others in one job, as small as can be; None when it does not fail again."""
    seed = int(lines[0].partition("seed=")[2] or 0)
    for programs in ([lines], [lines], [*before, lines], [*before, lines]):
        found = verdict(lab, place, programs)
        if found:
            break
    else:
        return None
    kind = found[0]
    if kind == PLAIN_FAILS and not plain_too:  # not ours; `replay` shows more
        return Finding(place, kind, seed, found[1], lines, len(lines))
    script = [line for one in programs for line in one]

    def fails(candidate: Lines, where: Place = place) -> bool:
        again = verdict(lab, where, _split(candidate))
        return again is not None and again[0] == kind

    small = shrink(script, fails, budget or Budget())
    place, small = _smaller_place(place, small, fails)
    final = verdict(lab, place, _split(small))
    detail = (final if final and final[0] == kind else found)[1]
    return Finding(place, kind, seed, detail, small, len(script))


def _smaller_place(place: Place, lines: Lines, fails: Callable[[Lines, Place], bool]) -> tuple[Place, Lines]:
    for nodes, ranks in ((1, 1), (1, 2), (2, 2), (1, 3), (2, 3)):
        if ranks < place.ranks and nodes <= place.nodes:
            smaller = dataclasses.replace(place, nodes=nodes, ranks=ranks)
            if fails(lines, smaller):
                return smaller, lines
    return place, lines


def check(lab: Runner, place: Place, seeds: Iterable[int], *, batch: int = 50, shrink_seconds: float = 300,
          report: Callable[[str], object] = print) -> Summary:
    """Runs the programs of these seeds plain and sealed; returns a Summary. What differs is made small."""
    comparison = _Comparison(lab, place, shrink_seconds, report)
    start = time.monotonic()
    programs = [program(seed) for seed in seeds]
    while programs:
        done = comparison.compare(programs[:batch])
        programs = programs[done:]
    comparison.summary.seconds = time.monotonic() - start
    return comparison.summary


@dataclass
class _Comparison:
    """Programs at one place, plain against sealed, and what has been found so far."""

    lab: Runner
    place: Place
    shrink_seconds: float
    report: Callable[[str], object]
    summary: Summary = field(default_factory=Summary)

    def compare(self, programs: Sequence[Lines]) -> int:
        """Compares the programs of one job up to the first that did not end; returns how many are settled."""
        plain = self.lab.run(self.place, programs, plain=True, time_limit=20)
        sealed = self.lab.run(self.place, programs, plain=False, time_limit=20)
        for name, count in sealed.calls.items():
            self.summary.calls[name] = self.summary.calls.get(name, 0) + count
        for i, lines in enumerate(programs):
            ended = plain.finished(i) and sealed.finished(i)
            if ended and first_difference(plain.traces[i], sealed.traces[i], lines) is None:
                self.summary.same += 1
            elif not plain.finished(i):
                self._look_at_failure(lines, f"exit {plain.returncode}, {_where(plain, programs)}\n{plain.said[-600:]}")
            else:
                self._look_into(programs[:i], lines)
            self.summary.programs += 1
            self.summary.steps += len(lines) - 1
            if not ended:
                return i + 1
        if _ended_badly(plain, self.place) or _ended_badly(sealed, self.place):
            self.report(f"{self.place.name}: the job's end: plain {plain.returncode}, sealed {sealed.returncode}: {sealed.said[-300:]}")
            if not _ended_badly(plain, self.place):
                self._look_into(programs[:-1], programs[-1])
        return len(programs)

    def _look_at_failure(self, lines: Lines, detail: str) -> None:
        """Of a program that failed plain in a job with others: it may not do so alone."""
        found = verdict(self.lab, self.place, [lines], time_limit=10)
        if found is None:
            self.summary.same += 1
            self.report(f"{self.place.name}: {lines[0]} fails plain after others, not alone: {detail.splitlines()[0]}")
        elif found[0] == PLAIN_FAILS:
            self.summary.record(Finding(self.place, PLAIN_FAILS, int(lines[0].partition("seed=")[2]), found[1], lines, len(lines)))
            self.report(f"{self.place.name}: {lines[0]} fails plain: {found[1].splitlines()[0]}")
        else:
            self._look_into([], lines, 60)

    def _look_into(self, before: Sequence[Lines], lines: Lines, shrink_seconds: float | None = None) -> None:
        self.report(f"{self.place.name}: {lines[0]} is not the same; looking into it")
        finding = investigate(self.lab, self.place, before, lines, Budget(shrink_seconds or self.shrink_seconds))
        if finding is None:
            finding = Finding(self.place, LOST, int(lines[0].partition("seed=")[2] or 0), "", lines)
        if finding.kind == "differs":
            finding.kind = fault_of_the_library(self.lab, finding.place, _split(finding.lines)) or finding.kind
        self.summary.record(finding)
        self.report(f"--- {finding.kind}, seed {finding.seed}, {self.place.name}, {finding.steps_before} lines made {len(finding.lines)}:\n{finding.text()}---")


__all__ = ["Lab", "Place", "check", "investigate", "verdict"]
