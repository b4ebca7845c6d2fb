"""Random programs do the same plain and sealed; what does not is found and made small by itself.

`make conformance-programs` runs many more.
"""

import json
import re

import pytest
from slow import slow

from .check import Place, check, others_agree
from .generate import MISTAKES, program
from .lab import HERE, Lab, Run
from .page import PAGE, RESULTS, render
from .shrink import Budget, shrink

SAMPLE = {"mpich-5": range(200, 230), "openmpi-5": range(230, 260)}


@pytest.fixture(scope="module")
def programs_lab(lab):
    with Lab() as one:
        yield one


@pytest.mark.parametrize("mpi", SAMPLE)
def test_plain_and_sealed_do_the_same(programs_lab, compile_mpi, mpi):
    """S2 S3 M1 to M12: thirty programs on four ranks of two nodes."""
    said = []
    summary = check(programs_lab, Place(mpi), SAMPLE[mpi], batch=30, shrink_seconds=40, report=said.append)
    assert not summary.findings, "\n".join(said)
    assert not summary.plain_fails, "\n".join(said)
    assert summary.same == summary.programs == len(SAMPLE[mpi])
    assert len(summary.calls) > 100, "the sample calls few procedures"


@pytest.mark.parametrize(("fault", "kind", "mpi"), [
    ("corrupt:coll:allgatherv", "differs", "mpich-5"),
    *slow(("corrupt:exchange", "differs", "openmpi-5"), ("stop:coll:scan", "sealed dies", "mpich-5")),
])
def test_a_fault_is_found_and_made_small(programs_lab, mpi, fault, kind):
    """A byte of one kind of step is changed, or the rank ends there, in sealed runs only: the program that is left is that step."""
    said = []
    place = Place(mpi, fault=fault)
    verb, _, which = fault.partition(":")[2].partition(":")
    seed = next(seed for seed in range(200, 1000) if any(re.match(rf"{verb} .*kind={which}\b" if which else verb, line) and "comm=0" in line
                                                         and "mode=persistent" not in line for line in program(seed)))
    summary = check(programs_lab, place, [seed], shrink_seconds=60, report=said.append)
    assert len(summary.findings) == 1, said
    finding = summary.findings[0]
    assert finding.kind == kind
    assert finding.steps_before > 8 and len(finding.lines) <= 3, finding.text()
    assert finding.lines[1].startswith(verb) and f"kind={which}" in finding.lines[1] + "kind=", finding.text()
    assert finding.place.ranks < place.ranks, "fewer ranks were enough"


def test_shrinking_keeps_what_is_needed():
    """Two steps that only fail together are found among many, and what they say is made as simple as can be."""
    lines = ["program seed=1", *(f"step number={i} units=5000,7 how=wait" for i in range(60))]

    def fails(candidate):
        return any("number=17 " in line and re.search(r"units=\d{3}", line) for line in candidate) and any("number=40" in line for line in candidate)

    small = shrink(lines, fails, Budget(seconds=20))
    assert small == ["program seed=1", "step number=17 units=1025", "step number=40"]


@pytest.mark.parametrize(("said", "agree"), [
    ({"mpich-5": "right", "openmpi-5": "right", "openmpi-4": "other"}, True),
    ({"mpich-5": "right", "openmpi-5": "wrong", "openmpi-4": "wrong"}, False),
    ({"mpich-5": "wrong", "openmpi-5": "right", "openmpi-4": "right"}, True),
])
def test_two_other_libraries_say_who_is_wrong(said, agree):
    """A difference is the MPI library's when two others give plain what this one gives sealed; one is not enough."""

    class Told:
        def run(self, place, programs, *, plain, time_limit):
            line = said.get(place.mpi, "wrong") if plain else "right"
            return Run(0, "", [[["1 program\n", f"2 coll={line}\n"]]])

    assert others_agree(Told(), Place("mpich-4"), [["program", "coll"]]) == agree


def test_a_program_follows_from_its_seed():
    assert program(5) == program(5) != program(6)
    assert len(MISTAKES) > 25


def test_every_step_is_made_by_some_program():
    """What the interpreter can do the generator asks for."""
    verbs, kinds = set(), set()
    for file in HERE.glob("*.c"):
        text = file.read_text()
        verbs |= set(re.findall(r'verb_is\([^,]+, "(\w+)"\)', text))
        verbs |= set(re.findall(r'\{"(\w+)", (?:make_dup|make_split|make_part|make_cart|make_graph|make_dist|make_inter|make_merged|run_)', text))
        kinds |= set(re.findall(r'\{"(\w+)", +make_(?:strided|indexed|struct|resized|subarray|darray)\}', text))
    lines = [line for seed in range(400) for line in program(seed)]
    made = {line.split()[0] for line in lines}
    assert verbs - made - {"duplicate"} == set(), "steps that no program has"
    made_kinds = set(re.findall(r" kind=(\w+)", "\n".join(lines)))
    assert kinds and not kinds - made_kinds and not set(MISTAKES) - made_kinds
    assert len(made) > 40


def test_the_page_is_that_of_the_results():
    results = json.loads(RESULTS.read_text())
    assert render(results) == PAGE.read_text(), "`python -m programs page` writes it anew"
    total, counted = results["total"], ("same", "differ", "not_seen_again", "fail_plain", "plain_is_wrong", "plain_differs_from_plain")
    assert total["programs"] == sum(total[key] for key in counted)
    assert len(results["findings"]) == total["differ"] + total["not_seen_again"]
