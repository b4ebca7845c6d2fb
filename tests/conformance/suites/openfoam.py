"""OpenFOAM: the package's tutorials on four subdomains, with each way in which it exchanges messages."""

import os
import re
import shutil
from pathlib import Path

from harness.description import Program, Suite, here, package_version
from harness.sources import called

EXAMPLES = Path("/usr/share/doc/openfoam-examples/examples")
INSTALLED = "/usr/share/openfoam"
SUBDOMAINS = 4
DICTIONARY = f"""FoamFile {{ version 2.0; format ascii; class dictionary; object decomposeParDict; }}
numberOfSubdomains {SUBDOMAINS};
method simple;
coeffs {{ n (2 2 1); }}
"""
# {tutorial: (solver, programs that prepare it, {entry of controlDict: value}, last time, fields that are compared then)}: whole tutorials take minutes.
CASES = {
    "incompressible/icoFoam/cavity/cavity": ("icoFoam", ["blockMesh"], {}, "0.5", ("U", "p")),
    "incompressible/simpleFoam/pitzDaily": ("simpleFoam", ["blockMesh"], {"endTime": "20", "writeInterval": "20"}, "20", ("U", "k")),
    "multiphase/interFoam/laminar/damBreak/damBreak": ("interFoam", ["blockMesh", "setFields"], {"endTime": "0.05"}, "0.05", ("alpha.water", "U")),
    "compressible/rhoCentralFoam/obliqueShock": ("rhoCentralFoam", ["blockMesh"], {"endTime": "0.5", "writeInterval": "0.5"}, "0.5", ("T", "p")),
    "lagrangian/icoUncoupledKinematicParcelFoam/hopper/hopperInitialState": (
        "icoUncoupledKinematicParcelFoam", ["blockMesh"], {"endTime": "0.001", "writeInterval": "0.001"}, "0.001",
        ("lagrangian/kinematicCloud/positions", "lagrangian/kinematicCloud/U")),
}
# Ways of exchange (commsType): non-blocking by default. A name, then what goes into controlDict, then options.
EXCHANGES = {
    "scheduled": ("OptimisationSwitches { commsType scheduled; }", []),
    "blocking": ("OptimisationSwitches { commsType blocking; }", []),  # MPI_Bsend
    "collated files": ("OptimisationSwitches { maxThreadFileBufferSize 0; }", ["-fileHandler", "collated"]),
}


def _environment():
    return {"WM_PROJECT_DIR": INSTALLED}


def _prepared(place, tutorial, extra="", options=()):
    """A copy of the tutorial that is meshed and decomposed, and the name of its last time."""
    _, preparing, entries, _, _ = CASES[tutorial]
    directory = place / "cases" / re.sub(r"\W+", "-", f"{tutorial.rpartition('/')[2]} {extra}".strip())
    if not (directory / "ready").exists():
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(EXAMPLES / tutorial, directory)
        control = directory / "system/controlDict"
        text = re.sub(r"(?s)^functions\s*\{.*?^\}", "", control.read_text(), flags=re.MULTILINE)  # streamlines and the like
        text = text.replace('#sinclude   "sampling"', "")
        for entry, value in entries.items():
            text = re.sub(rf"(?m)^{entry}\s.*$", f"{entry} {value};", text)
        control.write_text(text + extra + "\n")
        (directory / "system/decomposeParDict").write_text(DICTIONARY)
        for program in preparing:
            called([f"/usr/bin/{program}"], directory, env=os.environ | _environment())
        called(["/usr/bin/decomposePar", *options], directory, env=os.environ | _environment())
        (directory / "ready").touch()
    return directory


def _job(place, tutorial, name="", extra="", options=()):
    solver, _, _, last, fields = CASES[tutorial]
    case = _prepared(place, tutorial, extra, options)
    parts = [f"processors{SUBDOMAINS}"] if "collated" in options else [f"processor{number}" for number in range(SUBDOMAINS)]
    return Program(name=f"{solver} {tutorial.rpartition('/')[2]} {name}".strip(), command=[f"/usr/bin/{solver}", "-parallel", *options],
                   files={path.name: path for path in case.iterdir()}, outputs=[f"{part}/{last}/{field}" for part in parts for field in fields],
                   env=_environment(), timeout=180)


def programs(mpi, place):
    """Each tutorial, and the first once more with each way of exchange."""
    here(EXAMPLES, INSTALLED, "/usr/bin/decomposePar")
    tutorials = [_job(place, tutorial) for tutorial in CASES]
    exchanges = [_job(place, next(iter(CASES)), name, extra, options) for name, (extra, options) in EXCHANGES.items()]
    return [*tutorials, *exchanges]


SUITE = Suite(
    name="openfoam",
    origin="Debian packages openfoam, openfoam-examples",
    version=package_version("openfoam"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="residuals, iteration counts, Courant numbers, continuity errors and what is said of particles on standard output, not times; the fields that "
    "the subdomains write at the end",
    drop=(r"^(Date|Time|Host|PID|Case|Hosts|nProcs) *:", r"^\(? ?\(?node\d", r"ExecutionTime", r"^location "),
)
