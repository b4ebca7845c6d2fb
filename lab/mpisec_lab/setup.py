"""Provisions the MPIs: a virtual environment each, with mpi4py, numpy and, where PyPI has it, the MPI.

Debian's MPICH and Open MPI are only checked for: installing packages is left to the user or the Makefile.
"""

import fcntl
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpisec_lab import places
from mpisec_lab.mpis import MPIS, Mpi, find_mpi

_COMMON = ("mpi4py==4.1.2", "numpy>=1.24")
GROUPS = {"demo": ("mpich-5", "openmpi-5"), "test": tuple(MPIS)}
_STAMP = "mpisec-lab-setup"


def setup(names: Sequence[str] = ()) -> dict[str, str | None]:
    """Provisions the named MPIs or groups (all by default) side by side; returns {name: problem or None}."""
    wanted = [name for given in names for name in GROUPS.get(given, (given,))]
    chosen = [find_mpi(name) for name in wanted] or list(MPIS.values())
    venvs: dict[Path, Mpi] = {}
    for mpi in chosen:
        venvs.setdefault(mpi.venv, mpi)
    with ThreadPoolExecutor() as pool:
        problems = dict(zip(venvs, pool.map(_provision, venvs.values())))
    return {mpi.name: problems[mpi.venv] or _missing_programs(mpi) or _link_alias(mpi) for mpi in chosen}


def _provision(mpi: Mpi) -> str | None:
    """Makes the virtual environment of `mpi`, unless it stands; returns what went wrong, or None."""
    wanted = "\n".join([*([mpi.requirement] if mpi.requirement else []), *_COMMON])
    mpi.venv.parent.mkdir(parents=True, exist_ok=True)
    with open(mpi.venv.parent / f"{mpi.venv.name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = mpi.venv / _STAMP
        if stamp.exists() and stamp.read_text() == wanted and mpi.python.exists():
            return None
        # Also over one that stands: an interrupted set-up may have left it without pip.
        problem = _run([sys.executable, "-m", "venv", str(mpi.venv)])
        if problem:
            return f"no virtual environment ({problem}): `apt-get install python3-venv`"
        problem = _run(
            [
                str(mpi.python),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *wanted.splitlines(),
            ]
        )
        if problem:
            return f"pip could not install {' '.join(wanted.split())}: {problem}"
        stamp.write_text(wanted)
    return None


def _missing_programs(mpi: Mpi) -> str | None:
    """What Debian's part of `mpi` lacks, as a sentence, or None."""
    if mpi.available():
        return None
    return (
        f"`apt-get install {mpi.debian}`"
        if mpi.debian
        else f"{mpi.mpiexec} is missing from {mpi.requirement}"
    )


def _link_alias(mpi: Mpi) -> str | None:
    """Gives Debian's library the name that mpi4py's wheel looks for; returns what went wrong, or None."""
    if not mpi.alias:
        return None
    wanted, debian = mpi.alias
    asked = subprocess.run(["cc", f"-print-file-name={debian}"], capture_output=True, text=True, check=False)
    library = Path(asked.stdout.strip())
    if not library.is_absolute():
        return f"{debian} is not in the compiler's library path: `apt-get install {mpi.debian}`"
    link = mpi.venv / "lib" / wanted
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(library)
    return None


def _run(command: list[str]) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
    return lines[-1]


def main(names: Sequence[str]) -> int:
    """`mpisec lab setup`: prints a line per MPI; returns the exit status."""
    status = 0
    for name, problem in setup(names).items():
        print(f"{name:12} {'ready' if problem is None else problem}")
        status |= problem is not None
    if status:
        print(f"The environments are under {places.mpis()}.")
    return int(status)
