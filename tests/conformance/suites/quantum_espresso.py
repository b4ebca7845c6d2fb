"""Quantum ESPRESSO: the self-consistent calculation of silicon of the package's first example, with the k points divided over pools too."""

import gzip
import re
from pathlib import Path

from harness.description import Program, Suite, here, package_version

EXAMPLE = Path("/usr/share/doc/quantum-espresso/examples/PW/examples/example01/run_example")
ELSEWHERE = Path("/usr/share/doc/quantum-espresso/examples/PW/example01/run_example")
PSEUDO = Path("/usr/share/espresso/pseudo")


def _input(diagonalization):
    """The example's input, which its script writes from a here-document."""
    script = next((path for path in (EXAMPLE, ELSEWHERE) if path.exists()), None)
    packed = ELSEWHERE.with_suffix(".gz")
    here(script or packed, PSEUDO)
    text = script.read_text() if script else gzip.decompress(packed.read_bytes()).decode()
    found = re.search(r"cat > si\.scf\.\$diago\.in << EOF\n(.*?)\nEOF", text, re.DOTALL).group(1)
    return found.replace("$PSEUDO_DIR/", f"{PSEUDO}/").replace("$TMP_DIR/", "./").replace("$diago", diagonalization)


def programs(mpi, place):
    """Two ways to diagonalize, and pools."""
    jobs = {"si.scf.david": ("david", []), "si.scf.cg": ("cg", []), "si.scf.david, 2 pools": ("david", ["-nk", "2"])}
    return [Program(name=name, command=["/usr/bin/pw.x", *options, "-in", "si.in"], files={"si.in": _input(how)}, timeout=180)
            for name, (how, options) in jobs.items()]


SUITE = Suite(
    name="quantum_espresso",
    origin="Debian packages quantum-espresso, quantum-espresso-data",
    version=package_version("quantum-espresso"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="energies, forces, stress, eigenvalues and iteration counts of standard output; not times, memory and the signs of zeros",
    drop=(r"(?i)\b(cpu|wall|time|secs?|terminated on|starts on)\b", r"CPU|WALL|RAM|[0-9]s$|MB\b", r"^(General|Called by|Parallel) routines"),
    replace=((r"-(0\.0+)(?!\d)", r"\1"),),  # the sign of a zero depends on the order of summation
    tolerance=1e-6,
)
