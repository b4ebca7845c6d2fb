"""M5, a procedure at a time: while a rank waits in a call that its node makes together, or for another rank of its node, its large
message to another node goes on (blocking_calls.c; the remedy of each procedure is in docs/procedures.md)."""

import re

import pytest
from mpi_programs import YIELD, build

LIMIT = 20  # seconds for a case that takes less than one


def run_cases(run, app, cases, directory, **where):
    """{case: "ok", or what happened}. A case that hangs or fails ends the job; the rest gets another one."""
    options = where.pop("options", [])
    verdicts, left = {}, list(cases)
    while left:
        result = run([app, directory, str(LIMIT), *options, *left], nodes=2, ranks=4, timeout=LIMIT * 3 + len(left) * 3, **where)
        held = set(re.findall(r"^ok (\S+)", result.stdout, re.MULTILINE))
        verdicts |= {case: "ok" for case in left if case in held}
        left = [case for case in left if case not in held]
        if left:
            hung = re.findall(r"^hung \S+ on rank \d+", result.stdout, re.MULTILINE)
            failed = re.findall(r"^FAILED.*$", result.stderr, re.MULTILINE)
            verdicts[left[0]] = (hung or failed or [f"returncode {result.returncode}: {(result.stdout + result.stderr)[-500:]}"])[0]
            left = left[1:]
    return verdicts
