"""Runs suites of programs that others wrote, plain and sealed, and writes docs/results/conformance.json and docs/conformance.md.

    run.py [SUITE…]      the named suites, all by default
    run.py --list
    run.py SUITE --only PATTERN --mpi MPI   these alone; --only writes no results
    run.py SUITE… --again                   the programs that differed last time alone, and replaces their results

Exit status: 0 when nothing differs, 1 when something does, when a suite could not be run or when one sealed nothing. A run of some suites
replaces their results and keeps the others'."""

import argparse
import datetime
import fnmatch
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "lab")]

from harness.description import Missing  # noqa: E402
from harness.jobs import Job  # noqa: E402
from harness.page import render  # noqa: E402
from harness.sources import HOME  # noqa: E402
from suites import SUITES  # noqa: E402

from mpisec_lab.cluster import Cluster  # noqa: E402

RESULTS = ROOT / "docs" / "results" / "conformance.json"
PAGE = ROOT / "docs" / "conformance.md"


def run_suite(suite, mpi, run, wanted):
    """The suite's entry of the results, of those programs whose name `wanted` accepts. Raises Missing."""
    started, date = time.monotonic(), datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    version, commit = suite.version(mpi), built_from()
    place = HOME / f"{suite.name}-{mpi}"
    place.mkdir(parents=True, exist_ok=True)
    programs = [program for program in suite.programs(mpi, place) if wanted(program.name)]
    cases, messages = {}, 0
    for number, program in enumerate(programs):
        directory = place / "jobs" / f"{number}-{re.sub('[^A-Za-z0-9.]+', '_', program.name)[:60]}"
        judged, sealed = Job(run, suite, program, mpi, directory).outcomes()
        cases |= judged
        messages += sealed or 0
        for name, (outcome, detail) in judged.items():
            if outcome == "differs":
                print(f"\n  {suite.name}, {mpi}: {name}: {detail}", flush=True)
        if sys.stdout.isatty():
            print(f"\r{suite.name} {mpi} {len(cases)} \033[K", end="", flush=True)
    return {
        "name": suite.name, "version": version, "origin": suite.origin, "mpi": mpi, "nodes": suite.nodes, "ranks": suite.ranks_on(mpi),
        "compared": suite.compared, "started": date, "commit": commit, "counts": dict(Counter(outcome for outcome, _ in cases.values())), "messages": messages,
        "seconds": round(time.monotonic() - started, 1),
        "cases": {name: judged for name, judged in sorted(cases.items()) if judged[0] != "same"},
    }


def run_all(suites, arguments):
    """(entries, {suite: why it could not be run}). Results are written after each suite, so that an interrupted run keeps what it has."""
    entries, missing, clusters = [], {}, {}

    def run(command, *, nodes, **options):
        if nodes not in clusters:
            clusters[nodes] = Cluster(nodes).__enter__()
        return clusters[nodes].run(command, **options)

    try:
        for suite, mpi in [(one, mpi) for one in suites for mpi in one.mpis if arguments.mpi in (None, mpi)]:
            last = known_entries().get((suite.name, mpi), {"cases": {}})
            again = [case for case, (outcome, _) in last["cases"].items() if outcome == "differs"]
            if arguments.again and not again:
                continue
            try:
                if arguments.again:
                    entries.append(merged(last, again, run_suite(suite, mpi, run, again.__contains__)))
                else:
                    entries.append(run_suite(suite, mpi, run, lambda name: fnmatch.fnmatch(name, arguments.only)))
            except Missing as problem:
                missing[f"{suite.name}, {mpi}"] = str(problem)
                print(f"{suite.name:24} {mpi:10} not run: {problem}", flush=True)
            else:
                print(f"{suite.name:24} {mpi:10} {summary(entries[-1])}", flush=True)
            if arguments.only == "*":
                write(entries, missing)
    finally:
        for cluster in clusters.values():
            cluster.close()
    return entries, missing


def merged(last, again, entry):
    """The suite's last entry with the results of the programs `again` replaced by those of `entry`. Raises Missing."""
    if sum(entry["counts"].values()) != len(again):
        raise Missing("what differed last time is part of a larger job: run the whole suite")
    counts, cases = Counter(last["counts"]), {case: judged for case, judged in last["cases"].items() if case not in again}
    counts.subtract(last["cases"][case][0] for case in again)
    counts.update(entry["counts"])
    return last | {
        "counts": dict(+counts), "cases": dict(sorted((cases | entry["cases"]).items())), "messages": last["messages"] + entry["messages"],
        "seconds": last["seconds"] + entry["seconds"], "commit": f"{last['commit']}, {entry['commit']}",
    }


def summary(entry):
    """One line."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in entry["counts"].items())
    return f"{counts}; {entry['messages']} messages sealed, {entry['seconds']:.0f} s"


def conditions():
    """Where this runs."""
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return {"machine": f"{len(os.sched_getaffinity(0))} cores of {model}, {system}, Linux {platform.release()}"}


def built_from():
    """The commit that is checked out, with a mark where MPIsec's sources differ from it."""
    git = ["git", "-C", ROOT]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src", "gen", "include"], check=False).returncode != 0
    return commit + ("+" if changed else "")


def left_out():
    """{what: why it is not in}, of left_out.txt: a name, a colon, the reason."""
    lines = (HERE / "left_out.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def known_results():
    """The result file."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"suites": [], "missing": {}}


def known_entries():
    """{(suite, MPI): entry} of the result file."""
    return {(entry["name"], entry["mpi"]): entry for entry in known_results()["suites"]}


def all_missing(before, now, rows):
    """{"suite, MPI": why it could not be run}, of the suites that have no row: `now`, or `before` where it was not tried again."""
    without = {f"{suite.name}, {mpi}" for suite in SUITES for mpi in suite.mpis if (suite.name, mpi) not in rows}
    return {name: why for name, why in (before | now).items() if name in without}


def write(entries, missing):
    """The result file and the page. What was not run this time keeps its results, or the reason why there are none."""
    new = {(entry["name"], entry["mpi"]): entry for entry in entries}
    all_entries = known_entries() | new
    wanted = [(suite.name, mpi) for suite in SUITES for mpi in suite.mpis]
    results = {
        "command": "make conformance", "conditions": conditions(), "missing": all_missing(known_results()["missing"], missing, all_entries),
        "left_out": left_out(), "suites": [all_entries[key] for key in wanted if key in all_entries],
    }
    if not all_entries:
        return
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(render(results))


def main():
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--mpi")
    parser.add_argument("--again", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print(*(f"{suite.name:24} {suite.origin}" for suite in SUITES), sep="\n")
        return 0
    unknown = set(arguments.suites) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(f"there is no suite {', '.join(sorted(unknown))}; there are {', '.join(suite.name for suite in SUITES)}")
    chosen = [suite for suite in SUITES if not arguments.suites or suite.name in arguments.suites]
    entries, missing = run_all(chosen, arguments)
    if arguments.only == "*" and entries:
        print(f"conformance: {PAGE.relative_to(ROOT)} and {RESULTS.relative_to(ROOT)} are written")
    differing = sum(entry["counts"].get("differs", 0) for entry in entries)
    unsealed = [f"{entry['name']}, {entry['mpi']}" for entry in entries if entry["messages"] == 0 and entry["counts"].get("nothing sealed")]
    for what, problem in ((f"{differing} programs differ", differing), (f"not run: {', '.join(missing)}", missing),
                          (f"sealed nothing: {', '.join(unsealed)}", unsealed)):
        if problem:
            print(f"conformance: {what}")
    return 1 if differing or missing or unsealed else 0


if __name__ == "__main__":
    sys.exit(main())
