"""GROMACS: molecular dynamics of a box of water, domain-decomposed, with and without ranks of their own for the long-range electrostatics."""

from harness.description import Program, Suite, here, package_version
from harness.sources import called

COORDINATES = "/usr/share/gromacs/top/spc216.gro"
BOX = "3.72412"  # nm: twice the edge of spc216.gro, so that no molecules overlap at the faces
TOPOLOGY = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spc.itp"

[ system ]
Water

[ molecules ]
"""
BASE = """dt = 0.002
nstcalcenergy = 10
nstenergy = 20
nstlog = 20
nstxout-compressed = 50
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.8
rvdw = 0.8
fourierspacing = 0.12
"""
DYNAMICS = """integrator = md
nsteps = 200
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = {temperature}
ld-seed = 1993
gen-vel = yes
gen-temp = {temperature}
gen-seed = 173529
"""
PARAMETERS = {
    "300K": DYNAMICS.format(temperature=300),
    "305K": DYNAMICS.format(temperature=305),
    "pressure": DYNAMICS.format(temperature=300) + "pcoupl = C-rescale\ntau-p = 2\nref-p = 1\ncompressibility = 4.5e-5\n",
    "minimum": "integrator = steep\nnsteps = 60\nemtol = 10\n",
}
MDRUN = ("mdrun", "-ntomp", "1", "-pin", "off", "-reprod")


def _inputs(place):
    """{name: run input file}, made once."""
    made = {name: place / f"{name}.tpr" for name in PARAMETERS}
    if not all(path.exists() for path in made.values()):
        (place / "water.top").write_text(TOPOLOGY)
        called(["gmx", "solvate", "-cs", COORDINATES, "-box", BOX, BOX, BOX, "-o", "water.gro", "-p", "water.top"], place)
        for name, text in PARAMETERS.items():
            (place / f"{name}.mdp").write_text(BASE + text)
            called(["gmx", "grompp", "-f", f"{name}.mdp", "-c", "water.gro", "-p", "water.top", "-po", f"{name}.out.mdp",
                    "-o", made[name].name, "-maxwarn", "5"], place)
    return made


def programs(mpi, place):
    """Dynamics and minimisation in single and double precision, and two replicas that exchange their temperatures."""
    here(COORDINATES, "/usr/bin/gmx", "/usr/bin/gmx_mpi", "/usr/bin/gmx_mpi_d")
    inputs = _inputs(place)
    outputs, replicas = ["md.log", "confout.gro"], {f"{name}/topol.tpr": inputs[name] for name in ("300K", "305K")}

    def job(name, state, *options, program="/usr/bin/gmx_mpi"):
        return Program(name=name, command=[program, *MDRUN, *options], files={"topol.tpr": inputs[state]}, outputs=outputs, timeout=180)

    return [
        job("dynamics, PME on all ranks", "300K", "-npme", "0"),
        job("dynamics, PME on two ranks", "300K", "-npme", "2"),
        job("dynamics at constant pressure", "pressure", "-npme", "0"),
        job("dynamics, double precision", "300K", "-npme", "0", program="/usr/bin/gmx_mpi_d"),
        job("minimisation", "minimum", "-npme", "0"),
        Program(name="replica exchange", command=["/usr/bin/gmx_mpi", *MDRUN, "-multidir", "300K", "305K", "-replex", "20", "-reseed", "7"], files=replicas,
                outputs=[f"{name}/{output}" for name in ("300K", "305K") for output in outputs], timeout=180),
    ]


SUITE = Suite(
    name="gromacs",
    origin="Debian package gromacs",
    version=package_version("gromacs"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="all energies of md.log, the steps of the minimisation and the exchanges of the replicas, and the final coordinates and velocities "
    "(confout.gro)",
    keep=(
        r"^(-?\d\.\d+e[+-]\d+ ?)+$", r"^\d+ \d+\.\d{5}$",  # energies; step and time
        r"^--- ", r"^\d+SOL\b", r"^(-?\d+\.\d+ ?){3}$",  # files; atoms and the box of confout.gro
        r"^Step=", r"^Repl (ex|pr|There|average)", r"^(Potential Energy|Maximum force|Norm of force) +=", r"converged", r"^Finished mdrun",
    ),
    replace=((r"^(Finished mdrun).*", r"\1"),),
    tolerance=1e-5,
)
