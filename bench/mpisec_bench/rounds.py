"""The method: jobs of all schemes take turns, round by round, until the ratios to plain MPI are known well enough.

A machine that changes its speed changes neighbours alike, so a ratio is taken within a round, and within a round the schemes take
turns after every job: a suite's first program plain, sealed, then its second. The order of the schemes is another in every round.
A point has settled when it has had at least LEAST rounds and the 95 % interval of its median ratio is within 3 % for every scheme;
settled points drop out. A cap, in rounds or in seconds, ends it: what it cut off is marked.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpisec_bench.interval import LEAST, settled
from mpisec_bench.progress import Progress
from mpisec_bench.result import Point, Result, Row, point
from mpisec_bench.schemes import PLAIN, Scheme
from mpisec_lab.errors import LabError

Contestants = Mapping[Scheme, Callable[[Sequence[Any]], Iterable[list[Row]]]]


@dataclass(frozen=True)
class Method:
    """When to stop."""

    most_rounds: int = 30
    most_seconds: float = 600.0
    within: float = 0.03  # of the median, the interval to either side


def rows_of(output: str) -> list[Row]:
    """The JSON lines that a benchmark program printed."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def measure(result: Result, contestants: Contestants, cases: Sequence[Any], method: Method, begin_progress: Callable[[int], Progress]) -> None:
    """Fills `result` (result.Result), which may hold rounds of an earlier run, and writes it after every round.

    contestants: {Scheme: function}: given a list of cases, it returns an iterable that at each step runs the scheme's next job and
    gives its rows, each with its "case", its point and time_us (result.Result.add); no rows where others have a job. A scheme that
    measures plain MPI within its own jobs needs no PLAIN beside it.
    cases: what can settle on its own, as message sizes. KeyboardInterrupt leaves what whole rounds have measured.
    """
    progress = begin_progress(len(contestants) * LEAST)  # jobs at least
    belonging: dict[Any, set[Point]] = {}  # case -> its points
    begin = time.monotonic() - result.seconds
    order = list(contestants)
    done = max((len(result.ratios(where, scheme.name)) for where in result.points() for scheme in contestants), default=0)
    unsettled = list(cases)
    with contextlib.closing(progress):
        while unsettled and not result.complete:
            turn = order[done % len(order):] + order[:done % len(order)]
            found, jobs = _take_turns(contestants, turn, unsettled, progress)
            _add_round(result, found, belonging)
            done += 1
            result.seconds = time.monotonic() - begin
            for case in unsettled:
                if case not in belonging:
                    raise LabError(f"the jobs printed nothing about {case}")
            unsettled = [case for case in unsettled if not _settled(result, belonging[case], order, method)]
            result.write()
            if done >= method.most_rounds or (done >= LEAST and result.seconds >= method.most_seconds):
                for case in unsettled:
                    for where in belonging[case]:
                        result.cap(where)
                break
            progress.left((max(LEAST - done, 1) if unsettled else 0) * jobs)
    result.complete = True
    result.write()


def _take_turns(contestants: Contestants, order: Sequence[Scheme], cases: Sequence[Any], progress: Progress) -> tuple[dict[Scheme, list[Row]], int]:
    """A round: ({scheme: its rows}, number of jobs), the next job of each scheme after that of another."""
    found: dict[Scheme, list[Row]] = {scheme: [] for scheme in order}
    jobs = 0
    running = {scheme: iter(contestants[scheme](cases)) for scheme in order}
    while running:
        for scheme in tuple(running):
            progress.begins(scheme.name)
            rows = next(running[scheme], None)
            if rows is None:
                del running[scheme]
                continue
            found[scheme] += rows
            jobs += 1
            progress.ended()
    return found, jobs


def _add_round(result: Result, found: dict[Scheme, list[Row]], belonging: dict[Any, set[Point]]) -> None:
    plain = {point(row): row["time_us"] for row in found.get(PLAIN, ())}
    inside = {point(row): row["plain_us"] for rows in found.values() for row in rows if "plain_us" in row}
    for scheme, rows in found.items():
        if scheme == PLAIN:
            continue
        for row in rows:
            where = point(row)
            if where not in plain and where not in inside:
                raise LabError(f"nothing plain was measured to compare {scheme.name} with at {dict(where)}")
            belonging.setdefault(row["case"], set()).add(where)
            result.add(row, scheme.name, plain.get(where, inside.get(where)))


def _settled(result: Result, points: Iterable[Point], schemes: Sequence[Scheme], method: Method) -> bool:
    """Whether every point of a case is known well enough for each of these schemes that has it."""
    ratios = [result.ratios(where, scheme.name) for where in points for scheme in schemes]
    return all(settled(known, method.within) for known in ratios if known)
