"""MPICH's own test suite (test/mpi of its sources): point-to-point, collectives, communicators, datatypes, topologies, attributes, error
handlers, threads. mpich_windows.py has one-sided communication, files and partitioned messages."""

import os
import re
import shlex
from collections import Counter

from harness.description import Missing, Program, Suite
from harness.sources import called, debian_source

from mpisec_lab.mpis import find_mpi

DIRECTORIES = ("pt2pt", "coll", "comm", "topo", "attr", "group", "info", "datatype", "errhan", "threads/pt2pt", "threads/comm")
LEFT_OUT = ("--disable-fortran", "--disable-cxx", "--disable-perftest")
RANKS = {"mpich-5": 2, "openmpi-5": 4}  # at most: MPICH's ranks keep their cores while they wait, and the lab has few
VARIANTS = 1  # of a program with different arguments or settings


def built(mpi, place, directories):
    """The build directory, with the programs of these directories. Programs that this MPI lacks something for do not exist there."""
    source = debian_source("mpich", "test/mpi/*", "confdb/*")
    build = place / "build"
    build.mkdir(exist_ok=True)
    compiler = find_mpi(mpi).compiler[0]
    if not (build / "Makefile").exists():
        called([source / "test/mpi/configure", f"CC={compiler}", f"MPICC={compiler}", "CFLAGS=-O0", *LEFT_OUT, "--enable-threads=multiple",
                "--disable-dependency-tracking", "--disable-static"], build)
    for directory in ("dtpools", "util", *directories):
        try:
            called(["make", "-k", f"-j{os.cpu_count()}", "-C", directory], build)
        except Missing as problem:
            if directory in ("dtpools", "util"):
                raise problem
    return build


def _testlist(build, directory):
    """Some lists are made by configure, the others are in the sources."""
    made = build / directory / "testlist"
    return made if made.exists() else debian_source("mpich") / "test/mpi" / directory / "testlist"


def _entries(file):
    """[(program, ranks, arguments, environment, whether its exit status alone tells)] of a testlist."""
    for line in file.read_text().splitlines():
        words = shlex.split(line.split("#")[0])
        if len(words) < 2 or not words[1].isdigit():
            continue
        options = [word.split("=", 1) for word in words[2:] if "=" in word]
        if any(key == "xfail" or (key == "resultTest" and value != "TestErrFatal") for key, value in options):
            continue
        yield words[0], int(words[1]), [value for key, value in options if key == "arg"], [value for key, value in options if key == "env"]


def programs(mpi, place, directories=DIRECTORIES):
    """The lines of the testlists whose program was built, up to VARIANTS of each."""
    directories = [one for one in directories if find_mpi(mpi).family == "mpich" or not one.startswith("threads/")]
    build, found, seen, times = built(mpi, place, directories), [], set(), Counter()
    for directory in directories:
        for name, ranks, arguments, env in _entries(_testlist(build, directory)):
            ranks = min(ranks, RANKS[mpi])
            label = " ".join([f"{directory}/{name}", *arguments, *env, f"({ranks})"])
            if ranks < 2 or label in seen or times[directory, name] == VARIANTS or not (build / directory / name).exists():
                continue
            seen.add(label)
            times[directory, name] += 1
            found.append(Program(name=label, command=[build / directory / name, *arguments], ranks=ranks,
                                 env=dict(setting.split("=", 1) for setting in env), timeout=30))
    return found


def version_of(mpi):
    """MPICH's, from its sources."""
    version = re.search(r"MPICH_VERSION_m4\],\[([\d.]+)", (debian_source("mpich", "test/mpi/*", "confdb/*") / "test/mpi/version.m4").read_text())
    return version.group(1) if version else "?"


SUITE = Suite(
    name="mpich_tests",
    origin="Debian source mpich",
    version=version_of,
    mpis=("mpich-5", "openmpi-5"),
    programs=programs,
    compared="exit status and standard output (“No Errors”, or the errors found)",
    unordered=True,
    ranks=RANKS,
)
