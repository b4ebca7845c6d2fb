"""The C programs of this directory, and running many rules in one job."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

from mpisec_lab import places

HERE = Path(__file__).resolve().parent
RULES = re.findall(r"^RULE\((\w+)\)", (HERE / "rules" / "rules.inc").read_text(), re.MULTILINE)
RULE_SOURCES = ["harness.c", *(f"rules/{rule}.c" for rule in RULES)]

# Ranks outnumber the cores here: without this Open MPI's ranks spin while others wait for the core.
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}


def build(compile_mpi, mpi, main, others, flags=()):
    """Compiles `main` (a name here) together with other sources of this directory; returns the executable."""
    sources = [HERE / other for other in others]
    everything = sorted([*HERE.glob("**/*.[ch]"), *HERE.glob("**/*.inc")])
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in everything)).hexdigest()[:16]
    options = ["-std=gnu11", "-O2", "-Wextra", "-Wno-stringop-overflow", "-pthread", f"-I{HERE}", f"-DSOURCES=\"{digest}\"", *flags,
               *map(str, sources)]
    return compile_mpi(HERE / main, mpi, flags=[*options, "-lm"])


def build_rules(compile_mpi, mpi):
    """The program that runs rules (rules.c)."""
    return build(compile_mpi, mpi, "rules/rules.c", RULE_SOURCES)


def build_traffic(compile_mpi, mpi):
    """The random traffic (traffic.c)."""
    return build(compile_mpi, mpi, "traffic.c", ["schedule.c", "layout.c", "harness.c"])


def build_collectives(compile_mpi, mpi, main=HERE / "collective_traffic.c"):
    """A program made of the random collectives' parts: the traffic itself (collective_traffic.c), or another one."""
    others = ["collective_calls.c", "collective_comms.c", "collective_reference.c", "collective_slice.c", "schedule.c", "harness.c"]
    return build(compile_mpi, mpi, main, others)


def algorithms():
    """{collective: [names of its algorithms]}."""
    said = subprocess.run([places.find_mpisec(), "algorithms", "--json"], capture_output=True, text=True, check=True).stdout
    known = json.loads(said)
    assert len(known) == 13 and len(known["allgather"]) >= 9, said
    return known


def run_rules(run, app, rules, **where):
    """{rule: None when it held, else what happened}. A rule that fails ends the job; the rest gets another one."""
    verdicts, left = {}, list(rules)
    while left:
        result = run([app, *where.get("options", []), *left], **{k: v for k, v in where.items() if k != "options"})
        held = set(re.findall(r"^ok (\w+)", result.stdout, re.MULTILINE))
        verdicts |= {rule: None for rule in left if rule in held}
        remaining = [rule for rule in left if rule not in held]
        if remaining or result.returncode != 0:
            sentences = re.findall(r"^.*(?:FAILED|MPIsec).*$", result.stderr + result.stdout, re.MULTILINE)
            end = (result.stdout + result.stderr)[-3000:]
            why = f"returncode {result.returncode}\n" + ("\n".join(sentences[:8]) or end)
            verdicts[remaining[0] if remaining else left[-1]] = why
        left = remaining[1:]
    return verdicts
