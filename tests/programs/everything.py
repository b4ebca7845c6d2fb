"""The long run: programs over four MPIs and several placements, with a result file that grows as it goes."""

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .check import LOST, OPEN, PLAIN_FAILS, WRONG, Finding, Summary, check, fault_of_the_library
from .generate import program
from .lab import HERE, Lab, Place

MPIS = ("mpich-5", "openmpi-5", "mpich-4", "openmpi-4")
# (nodes, ranks, segments, share of the programs)
PLACES = ((2, 4, 0, 0.34), (2, 2, 1, 0.2), (2, 3, 1, 0.16), (4, 4, 0, 0.2), (3, 6, 1, 0.1))
CHUNK = 50

Results = dict[str, Any]  # the result file


def _conditions() -> dict[str, object]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE, check=False).stdout.strip()
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    return {"commit": commit, "date": datetime.date.today().isoformat(), "cpu": cpu, "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release()}


def _as_json(summary: Summary) -> dict[str, int]:
    return {"programs": summary.programs, "steps": summary.steps, "calls": sum(summary.calls.values()), "same": summary.same,
            "differ": sum(finding.kind != LOST for finding in summary.findings),
            "not_seen_again": sum(finding.kind == LOST for finding in summary.findings),
            "fail_plain": sum(finding.kind == PLAIN_FAILS for finding in summary.plain_fails),
            "plain_is_wrong": sum(finding.kind == WRONG for finding in summary.plain_fails),
            "plain_differs_from_plain": sum(finding.kind == OPEN for finding in summary.plain_fails), "seconds": round(summary.seconds)}


def _finding_as_json(finding: Finding) -> dict[str, object]:
    return {"place": finding.place.name, "kind": finding.kind, "seed": finding.seed, "detail": finding.detail.splitlines()[:6],
            "program": finding.lines if len(finding.lines) < 12 else f"show {finding.seed}"}


def chunks(mpi: str, programs: int, first_seed: int) -> Iterator[tuple[Place, range]]:
    """[(place, seeds)] of about so many programs on one MPI; every MPI has seeds of its own."""
    seed = first_seed + 1_000_000 * list(MPIS).index(mpi) if mpi in MPIS else first_seed
    for nodes, ranks, segments, share in PLACES:
        for _ in range(max(round(programs * share / CHUNK), 1)):
            yield Place(mpi, nodes, ranks, segments), range(seed, seed + CHUNK)
            seed += CHUNK


def run(mpis: Sequence[str], programs: int, first_seed: int, out: str, shrink_seconds: float, report: Callable[[str], object] = print) -> Summary:
    """Runs `programs` on each MPI. The result file is written anew after each chunk."""
    by_place: dict[str, Summary] = {}
    everything = Summary()
    with Lab() as lab:
        for mpi in mpis:
            for place, seeds in chunks(mpi, programs, first_seed):
                summary = check(lab, place, seeds, batch=CHUNK, shrink_seconds=shrink_seconds, report=report)
                by_place.setdefault(f"{place.name}, segments from {('64K', '4K')[place.segments]}", Summary()).add(summary)
                everything.add(summary)
                result = {
                    "command": f"PYTHONPATH=tests python3 -m programs all --mpis {','.join(mpis)} --programs {programs} --first-seed {first_seed}",
                    "conditions": _conditions(),
                    "total": _as_json(everything),
                    "places": {name: _as_json(one) for name, one in by_place.items()},
                    "findings": [_finding_as_json(finding) for finding in everything.findings],
                    "of_the_library": [{"place": finding.place.name, "kind": finding.kind, "seed": finding.seed,
                                        "detail": finding.detail.splitlines()[:3]} for finding in everything.plain_fails],
                    "procedures": dict(sorted(everything.calls.items())),
                }
                Path(out).write_text(json.dumps(result, indent=1) + "\n")
                report(f"{place.name}: {everything.programs} programs, {everything.same} the same, {len(everything.findings)} differ, "
                       f"{len(everything.plain_fails)} fail plain, {everything.seconds:.0f} s")
    return everything


def join(files: Sequence[str], out: str) -> Results:
    """One result file of several that ran side by side."""
    parts: list[Results] = [json.loads(Path(file).read_text()) for file in files]
    whole = parts[0] | {"command": [part["command"] for part in parts]}
    whole["conditions"]["commit"] = ", ".join(dict.fromkeys(part["conditions"]["commit"] for part in parts))
    for part in parts[1:]:
        whole["total"] = {key: whole["total"][key] + part["total"][key] for key in whole["total"]}
        for name, place in part["places"].items():
            known = whole["places"].setdefault(name, dict.fromkeys(place, 0))
            whole["places"][name] = {key: known[key] + place[key] for key in place}
        whole["findings"] += part["findings"]
        whole["of_the_library"] += part["of_the_library"]
        for name, count in part["procedures"].items():
            whole["procedures"][name] = whole["procedures"].get(name, 0) + count
    whole["procedures"] = dict(sorted(whole["procedures"].items()))
    Path(out).write_text(json.dumps(whole, indent=1) + "\n")
    return whole


def judge(file: str, report: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Looks again at what differs in a result file: whether it is the library's fault, by the rules of check.py today."""
    results = json.loads(Path(file).read_text())
    remaining = []
    with Lab() as lab:
        for found in results["findings"]:
            ((mpi, ranks, nodes),) = re.findall(r"^(\S+), (\d+) ranks on (\d+) nodes", found["place"])
            lines = found["program"] if isinstance(found["program"], list) else program(found["seed"])
            kind = None
            if found["kind"] == "differs":
                kind = fault_of_the_library(lab, Place(mpi, int(nodes), int(ranks)), [lines])
            report(f"{found['place']}, seed {found['seed']}: {kind or found['kind']}")
            if kind is None:
                remaining.append(found)
                continue
            results["of_the_library"].append({"place": found["place"], "kind": kind, "seed": found["seed"], "detail": found["detail"][:3]})
            key = {WRONG: "plain_is_wrong", OPEN: "plain_differs_from_plain"}[kind]
            name = next(name for name in results["places"] if name.startswith(mpi) and results["places"][name]["differ"] > 0
                        and _has_seed(results, name, found["seed"]))
            for numbers in (results["total"], results["places"][name]):
                numbers["differ"] -= 1
                numbers[key] += 1
    results["findings"] = remaining
    Path(file).write_text(json.dumps(results, indent=1) + "\n")
    return remaining


def _has_seed(results: Results, name: str, seed: int) -> bool:
    """Whether the programs of a placement had this seed."""
    mpi = name.partition(",")[0]
    commands = results["command"] if isinstance(results["command"], list) else [results["command"]]
    for command in commands:
        ((mpis, programs, first),) = re.findall(r"--mpis (\S+) --programs (\d+) --first-seed (\d+)", command)
        if mpi in mpis.split(",") and any(
                seed in seeds and name.startswith(f"{place.name}, segments from {('64K', '4K')[place.segments]}")
                for place, seeds in chunks(mpi, int(programs), int(first))):
            return True
    return False
