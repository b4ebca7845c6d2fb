"""LAMMPS: molecular dynamics, the package's own examples."""

import re
from pathlib import Path

from harness.description import Program, Suite, here, package_version

HOME = Path("/usr/share/lammps/examples")
# Those that end within seconds here and need no optional library that Debian's build lacks.
EXAMPLES = ("melt/in.melt", "min/in.min", "crack/in.crack", "flow/in.flow.couette", "friction/in.friction", "indent/in.indent", "shear/in.shear",
            "dipole/in.dipole", "nemd/in.nemd", "peptide/in.peptide", "peri/in.peri.pmb", "eim/in.eim",
            "rigid/in.rigid", "deposit/in.deposit.atom", "balance/in.balance", "srd/in.srd.mixture", "body/in.body")
STEPS = 200  # of every run in an example: theirs are made for bigger machines


def programs(mpi, place):
    """A job per example, in a copy of its directory."""
    here(HOME)
    found = []
    for example in EXAMPLES:
        directory, script = example.split("/")
        if not (HOME / example).exists():
            continue
        files = {path.name: path for path in (HOME / directory).iterdir() if not path.name.startswith("log.")}
        files[script] = re.sub(r"(?m)^run\s+\d+", f"run {STEPS}", (HOME / example).read_text())
        found.append(Program(name=example, command=["/usr/bin/lmp", "-in", script, "-log", "none"], files=files, timeout=180))
    return found


SUITE = Suite(
    name="lammps",
    origin="Debian packages lammps, lammps-examples",
    version=package_version("lammps"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output (all thermodynamic quantities), but for lines with times and the shares of CPU time",
    drop=(r"^(Loop time|Performance|Total wall time|CPU total)|CPU use|wall clock|seconds|\bCPU =",
          r"^(Pair|Bond|Kspace|Neigh|Comm|Output|Modify|Other|Rigid) *\|"),
)
