"""docs/programs.md from docs/results/programs.json."""

import collections
import json
from pathlib import Path

from .everything import Results

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "docs" / "results" / "programs.json"
PAGE = ROOT / "docs" / "programs.md"
# Why plain and sealed differed, by seed: what a look at the finding showed.
EXPLAINED = Path(__file__).parent / "explained.txt"

INTRODUCTION = """# Random programs

Randomly generated MPI programs, run plain and sealed on nodes of the [lab](lab.md). A program is determined by its seed. It is a list of steps, each done by
all ranks: communicators of every constructor, with one group and with two, with topologies; derived datatypes; messages in every mode, completed in
every way, persistent messages, wildcards, probes, cancelled receives; collectives, blocking, non-blocking and persistent, with operations of the
program's own; attributes, error handlers, groups, names, several threads; and mistakes that an MPI library reports.

Every rank writes one trace line per step: error classes, statuses, members, callbacks, and a hash of every byte of its buffers, holes and margins
included. The sealed trace must be exactly the same as the plain one. A program whose traces differ is run again and made as small as possible.
Programs avoid behaviour that MPI leaves open, or do not trace it.
"""

OUTCOMES = """| outcome | |
| --- | --- |
| same | every line of every rank is the same plain and sealed |
| **differs** | plain and sealed differ, or the sealed run hangs or dies; a call that MPIsec refuses differs too |
| not seen again | the program differed once, but not in four more runs |
| fails plain | the plain program crashes, hangs or ends with an error, also when it is run alone |
| wrong plain | plain and sealed differ, and two other MPI libraries give plain what this one gives sealed |
| plain differs from plain | two plain runs differ from each other |
"""

COLUMNS = {"programs": "programs", "steps": "steps", "calls": "MPI calls", "same": "same", "differ": "differs", "not_seen_again": "not seen again",
           "fail_plain": "fails plain", "plain_is_wrong": "wrong plain", "plain_differs_from_plain": "plain differs from plain"}


def explanations() -> dict[int, str]:
    """{seed: why}."""
    lines = [line.split(None, 1) for line in EXPLAINED.read_text().splitlines() if line and not line.startswith("#")]
    return {int(seed): why for seed, why in lines}


def table(results: Results) -> str:
    """A row per MPI and placement."""
    rows: list[list[str]] = [["MPI, ranks, nodes", *COLUMNS.values()], ["---"] * (len(COLUMNS) + 1)]
    for name, numbers in [*results["places"].items(), ("**all**", results["total"])]:
        rows.append([name, *(f"{numbers[key]:,}" for key in COLUMNS)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def findings(results: Results) -> str:
    """What differed, with why."""
    if not results["findings"]:
        return "None.\n"
    why = explanations()
    return "".join(f"- seed {found['seed']}, {found['place']}, {found['kind']}: {found['detail'][0] if found['detail'] else ''}\n"
                   f"  {why.get(found['seed'], 'Not explained yet.')}\n" for found in results["findings"])


def of_the_library(results: Results) -> str:
    """What plain runs did wrong, counted by MPI."""
    counted = collections.Counter((found["place"].partition(",")[0], found["kind"]) for found in results["of_the_library"])
    return "".join(f"- {mpi}, {kind}: {count}\n" for (mpi, kind), count in sorted(counted.items())) or "None.\n"


def render(results: Results) -> str:
    """The page."""
    where = results["conditions"]
    commands = results["command"] if isinstance(results["command"], list) else [results["command"]]
    procedures = results["procedures"]
    return "\n".join([
        INTRODUCTION,
        "`make conformance-programs` runs them. The numbers on this page are those of [results/programs.json](results/programs.json), made on "
        f"{where['date']} on {where['cores']} cores of {where['cpu']}, Linux {where['kernel']}, MPIsec built from commit {where['commit']}, by\n",
        "".join(f"    {command}\n" for command in commands),
        OUTCOMES,
        "## Results\n",
        table(results),
        f"Calls are those of all ranks in the sealed runs, to {len(procedures)} procedures of MPI; the result file says how many of each. "
        "Where messages travel in segments from 4 KiB on instead of 64 KiB, many messages count as long for MPIsec.\n",
        "## Plain and sealed differed\n",
        findings(results),
        "## Faults of the MPI libraries\n",
        "These programs say nothing about MPIsec; the result file lists them.\n",
        of_the_library(results),
    ])


def main() -> None:
    PAGE.write_text(render(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
