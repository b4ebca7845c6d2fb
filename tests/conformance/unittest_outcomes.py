"""Runs modules of a Python test suite on every rank and writes what became of each test to PREFIX.RANK (JSON):

    suite.py TEST-DIRECTORY PREFIX MODULE…

SUITE_SKIP: patterns of the names of tests that are left out.

MPISEC_LAB_RANK: a program that gives what it starts the environment of its node. The interpreter that tests start (sys.executable) is
started by it, for what MPI spawns has none.

Ranks run the same tests in the same order, as mpi4py's own runner does. After a test that failed, the line says why."""

import contextlib
import fnmatch
import importlib
import inspect
import json
import os
import sys
import unittest


class Outcomes(unittest.TestResult):
    """{test: "ok", "skipped" or the end of the traceback}."""

    def __init__(self):
        super().__init__()
        self.outcomes = {}

    def _note(self, test, outcome):
        self.outcomes.setdefault(test.id(), outcome)

    def addSuccess(self, test):
        self._note(test, "ok")

    def addSkip(self, test, reason):
        self._note(test, "skipped")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, f"{err[0].__name__}: {err[1]}"[-600:])

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._note(test, f"{err[0].__name__}: {err[1]}"[-600:])


def main():
    """See above."""
    directory, prefix, *modules = sys.argv[1:]
    sys.path.insert(0, directory)
    from mpi4py import MPI

    MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)
    if "MPISEC_LAB_RANK" in os.environ:
        sys.executable = started_by(os.environ["MPISEC_LAB_RANK"], f"{prefix}.{MPI.COMM_WORLD.Get_rank()}.python")
    outcomes = Outcomes()
    tests = unittest.TestSuite([unittest.defaultTestLoader.loadTestsFromNames(modules), *map(functions, modules)])
    left_out = os.environ.get("SUITE_SKIP", "").split()
    rank = MPI.COMM_WORLD.Get_rank()
    with open(f"{prefix}.{rank}.log", "w", encoding="utf-8") as log:
        prepared = None
        for test in flatten(tests):
            if any(fnmatch.fnmatch(test.id(), pattern) for pattern in left_out):
                continue
            log.write(f"{test.id()}\n")  # the last line of a job that hung
            log.flush()
            prepared = prepare(type(test), prepared)
            test(outcomes)
        prepare(None, prepared)
    with open(f"{prefix}.{rank}", "w", encoding="utf-8") as file:
        json.dump(outcomes.outcomes, file)


def prepare(cls, before):
    """What unittest does before the first test of a class and after the last one of the class `before`. Returns the class."""
    if cls is before:
        return cls
    if prepares(before):
        before.tearDownClass()
        before.doClassCleanups()
    if prepares(cls):
        with contextlib.suppress(unittest.SkipTest):
            cls.setUpClass()
    return cls


def prepares(cls):
    """Whether it is a class of tests that is not skipped as a whole."""
    return hasattr(cls, "setUpClass") and not getattr(cls, "__unittest_skip__", False)


def started_by(starter, file):
    """This interpreter as a program of its own, which starts it by `starter`."""
    with open(file, "w", encoding="utf-8") as script:
        script.write(f'#!/bin/sh\nexec {starter} {sys.executable} "$@"\n')
    os.chmod(file, 0o755)
    return os.path.abspath(file)


def functions(module):
    """A module's tests that are plain functions, in pytest's manner, without arguments."""
    found = [(name, value) for name, value in vars(importlib.import_module(module)).items() if name.startswith("test_") and inspect.isfunction(value)]
    return unittest.TestSuite(Function(f"{module}.{name}", value) for name, value in found if not inspect.signature(value).parameters)


class Function(unittest.FunctionTestCase):
    """A test that is a function, under its full name."""

    def __init__(self, name, function):
        super().__init__(function)
        self._name = name

    def id(self):
        return self._name


def flatten(suite):
    """The single tests of a suite."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


if __name__ == "__main__":
    main()
