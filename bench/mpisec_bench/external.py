"""Benchmark programs of others, as they are: the OSU micro-benchmarks (their mpi4py ports too), Intel's IMB, the NAS suite."""

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.schemes import Scheme
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import MPIS
from mpisec_lab.options import count, words

PLAIN_INSIDE = False
_NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"


def parse_osu(output: str, program: str) -> list[Row]:
    """Rows of one OSU program: bytes and microseconds, of bandwidths the microseconds per message. Barriers have no bytes."""
    rows: list[Row] = []
    per_second = False
    for line in output.splitlines():
        if line.startswith("#"):
            per_second = per_second or "MB/s" in line or "Bandwidth" in line  # the ports head every column with latency
            continue
        numbers = re.fullmatch(rf"\s*({_NUMBER})((?:\s+{_NUMBER})*)\s*", line)
        if not numbers:
            continue
        first, rest = float(numbers.group(1)), [float(text) for text in numbers.group(2).split()]
        if not rest:
            rows.append({"what": program, "time_us": first})
        elif per_second:
            rows.append({"what": program, "bytes": int(first), "time_us": first / rest[0] if rest[0] else 0})
        else:
            rows.append({"what": program, "bytes": int(first), "time_us": rest[0]})
    return [row for row in rows if row["time_us"] > 0]  # 0.00 is shorter than the clock: that has no ratio


def parse_imb(output: str, _program: str) -> list[Row]:
    """Rows of IMB-MPI1 and its kin: of each benchmark the runs with most processes, t_avg or t."""
    found: dict[str, dict[int, list[Row]]] = {}
    name, processes = "", 0
    column: int | None = None
    for line in output.splitlines():
        if begun := re.match(r"#\s*Benchmarking\s+(\S+)", line):
            name, processes, column = begun.group(1), 0, None
        elif told := re.match(r"#\s*#processes\s*=\s*(\d+)", line):
            processes = int(told.group(1))
        elif "[usec]" in line:
            heads = line.replace("#", " ").split()
            column = heads.index("t_avg[usec]" if "t_avg[usec]" in heads else "t[usec]")
            sized = heads[0] == "bytes"
        elif column is not None and re.fullmatch(rf"(\s*{_NUMBER})+\s*", line):
            values = line.split()
            size = {"bytes": int(values[0])} if sized else {}
            found.setdefault(name, {}).setdefault(processes, []).append({"what": name} | size | {"time_us": float(values[column])})
    # Programs print 0.00 for what is shorter than the clock: that has no ratio.
    return [row for runs in found.values() for row in runs[max(runs)] if row["time_us"] > 0]


def parse_npb(output: str, program: str) -> list[Row]:
    """The row of one NAS program; LabError when it did not verify its result."""
    told = dict(re.findall(r"^\s*(Class|Time in seconds|Verification)\s*=\s*(\S+)", output, flags=re.MULTILINE))
    name = re.search(r"(\w+) Benchmark Completed", output)
    if not name or "Time in seconds" not in told:
        raise LabError(f"{program} printed no result of a NAS benchmark:\n{output}")
    if told.get("Verification", "").upper() != "SUCCESSFUL":
        raise LabError(f"{program}: the verification of its result says {told.get('Verification', 'nothing')}")
    return [{"what": name.group(1), "class": told.get("Class", "?"), "time_us": float(told["Time in seconds"]) * 1e6}]


_SUITES = {  # name -> parser, what its programs' names look like
    "osu": (parse_osu, re.compile(r"osu_\w+(\.py)?")),
    "imb": (parse_imb, re.compile(r"IMB-\w+")),
    "npb": (parse_npb, re.compile(r"[a-z]{2}\.[SWABCDEF](\.\d+)?(\.x)?|[a-z]{2}\.[SWABCDEF]\.\d+\.mpi_io_\w+")),
}


def _words(text: str) -> list[str]:
    """The type of --arguments."""
    return words("--arguments", text) if text.strip() else []


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench external`."""
    parser.add_argument("--suite", choices=_SUITES, required=True, help="whose output to expect")
    parser.add_argument("--dir", required=True, help="where the programs are, at any depth; .py files run in the MPI's Python environment")
    parser.add_argument("--programs", help="these only, by commas: osu_latency,osu_allgather")
    parser.add_argument("--arguments", type=_words, default=[], help="for every program, as '-m 4096'")
    parser.add_argument("--nodes", type=count, default=2, help="nodes (2)")
    parser.add_argument("--ranks", type=count, default=2, help="ranks, spread over the nodes in blocks (2)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return arguments.nodes, arguments.ranks


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return f"{arguments.suite.upper()} programs, {arguments.nodes} nodes × {arguments.ranks // arguments.nodes}"


def cases(arguments: argparse.Namespace) -> list[str]:
    """Paths of the programs. Raises LabError when a wanted one is not there."""
    _, pattern = _SUITES[arguments.suite]
    there = {
        path.name: str(path) for path in sorted(Path(arguments.dir).rglob("*"))
        if path.is_file() and pattern.fullmatch(path.name) and (path.suffix == ".py" or os.access(path, os.X_OK))
    }
    if not there:
        raise LabError(f"{arguments.dir} holds no program of the {arguments.suite.upper()} suite")
    wanted = arguments.programs.split(",") if arguments.programs else list(there)
    for name in wanted:
        if name not in there:
            raise LabError(f"{arguments.dir} holds no program {name}; there are {', '.join(there)}")
    return [there[name] for name in wanted]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[str], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each program; yields their rows."""
    parse, _ = _SUITES[arguments.suite]
    for program in cases_:
        python = [MPIS[jobs.mpi].python] if program.endswith(".py") and jobs.mpi in MPIS else ["python3"] if program.endswith(".py") else []
        all_ranks = ["-npmin", arguments.ranks] if arguments.suite == "imb" else []  # not 2, 4, … ranks in turn
        command = [*python, program, *arguments.arguments, *all_ranks]
        found = parse(jobs.run(command, *shape(arguments), scheme, environment), Path(program).stem)
        if not found:
            raise LabError(f"{program} printed nothing that looks like a result of the {arguments.suite.upper()} suite")
        yield [{"case": program} | row for row in found]
