"""NWChem: a water molecule by density functional theory, with the gradient, and by coupled clusters. Its Global Arrays stand on ARMCI-MPI, which is
one-sided communication: windows of MPI_Win_allocate that all ranks keep locked (MPI_Win_lock_all), puts, gets and accumulates of vectors and subarrays,
flushes, and MPI_Fetch_and_op as the counter that hands out tasks."""

from pathlib import Path

from harness.description import Program, Suite, here, package_version

EXAMPLE = Path("/usr/share/doc/nwchem/examples/h2o.nw")
COUPLED_CLUSTERS = """start h2o_ccsd
geometry
   O                    -0.091502   -0.000000   -0.071590
   H                    -0.108430   -0.000000    0.892753
   H                     0.840442    0.000000   -0.320034
end
basis spherical
* library sto-3g
end
task ccsd
"""
# Plain Open MPI 4.1 allocates no window over TCP by its own choice of component.
OSC = {"OMPI_MCA_osc": "pt2pt"}


def programs(mpi, place):
    """The package's example in a small basis, for plain Open MPI's one-sided communication over TCP is slow, and an input of our own."""
    here(EXAMPLE, "/usr/bin/nwchem.openmpi")
    small = EXAMPLE.read_text().replace("6-31+G*", "sto-3g").replace("grid fine", "grid coarse")
    inputs = {"h2o.nw": small, "h2o_ccsd.nw": COUPLED_CLUSTERS}
    return [Program(name=name, command=["/usr/bin/nwchem.openmpi", name], files={name: text}, env=OSC, timeout=450) for name, text in inputs.items()]


SUITE = Suite(
    name="nwchem",
    origin="Debian package nwchem",
    version=package_version("nwchem"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="energies, orbitals' energies, convergence, coordinates, gradients and amplitudes of standard output, to eight decimals; not times and sizes of "
    "caches in memory",
    keep=(r"(?i)energ(y|ies)\b", r"^d= 0,ls=", r"^\d+ [OH]( +-?\d+\.\d+){3,6}$", r"^Vector +\d+ ", r"^\d+( +-?\d+\.\d+(D[-+]\d+)?){2,}$", r"\bDipole\b"),
    drop=(r"(?i)convergence on|\btime\b|U\.S\. Department|Energy (Office|Sciences)",),
    replace=(
        (r"^(\s*d= 0,ls=.*\S)\s+\d+\.\d\s*$", r"\1"),  # the seconds of an iteration
        (r"^(\s*\d+\s+-\d+\.\d+\s.*D[-+]\d+)(\s+\d+\.\d+)+\s*$", r"\1"),
        (r"(\.\d{8})\d+", r"\1"),  # the last digits depend on the order of summation
        (r"-(0\.0+)(?!\d)", r"\1"),
    ),
    tolerance=1e-6,
)
