"""CP2K: the package's examples: density functional dynamics and its relatives, classical dynamics, both together."""

import gzip
from pathlib import Path

from harness.description import Missing, Program, Suite, here, package_version

EXAMPLES = Path("/usr/share/doc/cp2k/examples")
# Dynamics of a water molecule by density functional theory; a geometry by a semi-empirical method; a metal's smearing; excited states;
# Hartree-Fock exchange; 108 argon atoms; 32 water molecules with Ewald sums; quantum mechanics in a classical surrounding (two of them).
INPUTS = ("H2O.inp", "h2o.inp", "C.inp", "H2O_tddfpt-s-1.inp", "H2O-hfx-1.inp", "argon.inp", "H2O-32_ewald.inp", "Ar-qmmm.inp", "h2_dbg_0.inp")
# What examples write beside standard output: energies and positions of each step.
WRITTEN = {"H2O.inp": ["H2O_OT-1.ener", "H2O_OT-pos-1.xyz"], "h2o.inp": ["h2o-pos-1.xyz"], "argon.inp": ["ar108-1.ener", "ar108-pos-1.xyz"]}


def _text(name):
    for path in (EXAMPLES / name, EXAMPLES / f"{name}.gz"):
        if path.exists():
            return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    raise Missing(f"{EXAMPLES / name} is not here: `make conformance` installs it")


def programs(mpi, place):
    """A job per example."""
    here("/usr/bin/cp2k.psmp")
    return [Program(name=name, command=["/usr/bin/cp2k.psmp", "-i", name], files={name: _text(name)}, outputs=WRITTEN.get(name, []), timeout=240)
            for name in INPUTS]


SUITE = Suite(
    name="cp2k",
    origin="Debian package cp2k",
    version=package_version("cp2k"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="energies, convergence, coordinates and quantities of each step, of standard output, and the trajectories and energies that three of the "
    "examples write; not times, memory and counts of messages",
    keep=(r"(?i)energ(y|ies)\b|\bSCF run converged|hartree|[Dd]ensity|[Cc]harge|Temperature|Conserved|Eigenvalue|Excitation|OPT\||MD(_INI)?\|",
          r"^\d+ \S+/(Diag|OT)", r"^[A-Z][a-z]?( +-?\d+\.\d+){3}$", r"^\d+( +-?\d+\.\d+){4,}$", r"^TDDFPT\|", r"^--- ", r"PROGRAM ENDED"),
    drop=(r"(?i)cpu|\btime\b|memory|\[MiB\]", r"^\w+ \d+ \d+\.\d( \d+\.\d{3}){4}$"),  # the latter: the table of where time went
    replace=(
        (r"^(\s*\d+ \S+/(?:Diag\.|OT \S+)\s+\S+)\s+\d+\.\d\b", r"\1"),  # a step of the SCF cycle: the seconds that it took
        (r"^(\s*\d+(?:\s+-?\d+\.\d+){5})\s+-?\d+\.\d+$", r"\1"),  # a line of the file of energies: the last column is seconds
        (r"PROGRAM ENDED.*", "PROGRAM ENDED"),
        (r"(\.\d{9})\d+", r"\1"),  # the last digits depend on the order of summation
        (r"-(0\.0+)(?!\d)", r"\1"),
    ),
    tolerance=1e-6,
)
