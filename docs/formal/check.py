#!/usr/bin/env python3
"""Runs the formal models beside this file: each as it stands, where every property must hold, and in its broken variants, each of
which must be refuted in exactly the properties that the model names.

A model says so itself, in lines that begin with //! (`run NAME | OPTIONS | EXPECTED`):

Verifpal (*.vp)   OPTIONS: sessions. EXPECTED: "holds", or the queries that must be broken, separated by ";". A line "//NAME: TEXT" in
                  the model replaces the line before it (other such lines left out) in the run NAME; an empty TEXT removes it.
Spin (*.pml)      OPTIONS: flags for spin; "ltl" checks the formula instead of assertions and end states. EXPECTED: "holds", or the
                  error that pan must report.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 1200


class Wrong(Exception):
    """What a run should not have done, in one sentence."""


@dataclass
class Run:
    model: Path
    name: str
    options: list[str]
    expected: str


def runs_of(model: Path) -> list[Run]:
    runs = []
    for line in model.read_text().splitlines():
        if not line.startswith("//! run "):
            continue
        fields = [field.strip() for field in line.removeprefix("//! run ").split("|")]
        if len(fields) != 3:
            raise SystemExit(f'{model.name}: "{line}" is not "//! run NAME | OPTIONS | EXPECTED"')
        runs.append(Run(model, fields[0], fields[1].split(), fields[2]))
    if not runs:
        raise SystemExit(f"{model.name} names no run")
    return runs


MARKED = re.compile(r"^\s*//([a-z0-9-]+):(.*)$")


def variants_in(text: str) -> set[str]:
    return {found[1] for line in text.splitlines() if (found := MARKED.match(line))}


def verifpal_source(text: str, name: str) -> str:
    """The model with the lines of variant `name` in place of those they follow."""
    out: list[str] = []
    last = 0  # where the line is that a mark speaks of
    for line in text.splitlines():
        found = MARKED.match(line)
        if not found:
            last = len(out)
            out.append(line)
        elif found[1] == name:
            out[last] = found[2].strip()
    return "\n".join(out) + "\n"


def normal(query: str) -> str:
    return " ".join(query.split())


def check_verifpal(run: Run, tool: str, directory: Path) -> str:
    (sessions,) = run.options
    source = directory / "model.vp"
    source.write_text(verifpal_source(run.model.read_text(), run.name))
    command = [tool, "verify", "--sessions", sessions, "--format", "json", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    try:
        (model,) = json.loads(done.stdout)["models"]
        queries = model["analysis"]["queries"]
    except (ValueError, KeyError, TypeError):
        raise Wrong(f"Verifpal did not analyse it: {(done.stderr or done.stdout).strip()[-1000:]}") from None
    broken = {normal(query["query"]) for query in queries if query["resolved"]}
    expected = set() if run.expected == "holds" else {normal(query) for query in run.expected.split(";")}
    unknown = expected - {normal(query["query"]) for query in queries}
    if unknown:
        raise Wrong(f"the model has no such query: {'; '.join(sorted(unknown))}")
    cut = [normal(query["query"]) for query in queries if not query["resolved"] and query["envelope"]["truncations"]]
    if cut:
        raise Wrong(f"the search was cut short for: {'; '.join(cut)}")
    if broken != expected:
        raise Wrong(f"broken: {'; '.join(sorted(broken)) or 'nothing'}")
    return f"{len(queries)} queries hold" if not expected else "refuted: " + "; ".join(sorted(broken))


ERROR = re.compile(r"^pan:\d+: (.*?) \(at depth \d+\)$", re.MULTILINE)


def build_pan(run: Run, directory: Path) -> list[str]:
    ltl = "ltl" in run.options
    flags = [option for option in run.options if option != "ltl"]
    spin = ["spin", *flags, "-a", str(run.model)]
    made = subprocess.run(spin, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S)
    if made.returncode != 0 or "Error" in made.stdout:
        raise Wrong(f"Spin did not read it: {(made.stdout + made.stderr).strip()[-1000:]}")
    kind = ["-DNFAIR=4"] if ltl else ["-DSAFETY", "-DNOCLAIM"]
    optimised = "-O1" if run.expected == "holds" else "-O0"  # an error is found in moments: compiling takes longer
    gcc = ["gcc", optimised, "-w", *kind, "-o", "pan", "pan.c"]
    built = subprocess.run(gcc, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S)
    if built.returncode != 0:
        raise Wrong(f"pan.c does not compile: {built.stderr.strip()[-1000:]}")
    return ["./pan", "-m1000000", *(["-a", "-f"] if ltl else [])]


def check_spin(run: Run, _tool: str, directory: Path) -> str:
    done = subprocess.run(build_pan(run, directory), cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S)
    output = done.stdout + done.stderr
    states = re.search(r"^\s*(\d+)(?:\.\S*)? states, stored", output, re.MULTILINE)
    if ("Search not completed" in output and not ERROR.search(output)) or "max search depth too small" in output or not states:
        raise Wrong(f"the search was not completed: {output.strip()[-1000:]}")
    errors = ERROR.findall(output)
    said = " ".join(errors[0].split()) if errors else "holds"
    if said != run.expected:
        raise Wrong(f"Spin says: {said}")
    return f"{int(states[1]):,} states" if said == "holds" else f"refuted: {said}"


def check(run: Run, tools: dict[str, str]) -> tuple[Run, bool, str, float]:
    start = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="mpisec-formal-"))
    try:
        judge = check_verifpal if run.model.suffix == ".vp" else check_spin
        good, said = True, judge(run, tools[run.model.suffix], directory)
    except Wrong as wrong:
        good, said = False, f"expected: {run.expected}; {wrong}"
    except subprocess.TimeoutExpired:
        good, said = False, f"no answer within {TIMEOUT_S} s"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return run, good, said, time.monotonic() - start


def all_runs(pattern: str) -> list[Run]:
    runs = []
    for model in sorted([*HERE.glob("*.vp"), *HERE.glob("*.pml")]):
        named = runs_of(model)
        unused = variants_in(model.read_text()) - {run.name for run in named} if model.suffix == ".vp" else set()
        if unused:
            raise SystemExit(f"{model.name} has variants that no run names: {', '.join(sorted(unused))}")
        runs += [run for run in named if re.search(pattern, f"{model.name} {run.name}")]
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the formal models and their broken variants.")
    parser.add_argument("--verifpal", default="verifpal", help="the program")
    parser.add_argument("-k", default="", metavar="PATTERN", help='only runs whose "MODEL NAME" matches')
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at once")
    arguments = parser.parse_args()
    runs = all_runs(arguments.k)
    tools = {".vp": arguments.verifpal, ".pml": "spin"}
    failed = 0
    print(f"{'model':<14} {'run':<28} {'result':<8} {'time':>6}  what the tool says")
    with ThreadPoolExecutor(arguments.j) as pool:
        for run, good, said, seconds in pool.map(lambda one: check(one, tools), runs):
            failed += not good
            print(f"{run.model.name:<14} {run.name:<28} {'as said' if good else 'WRONG':<8} {seconds:5.0f}s  {said}", flush=True)
    print(f"{len(runs) - failed} passed, {failed} failed")
    return 1 if failed or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
