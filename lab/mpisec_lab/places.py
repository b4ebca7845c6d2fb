"""Where things are: the source tree or an installed prefix, the MPIs, the build directory, mpisec."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from mpisec_lab.errors import LabError

_PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """The source tree when the lab runs from one, else the installed prefix's share/mpisec."""
    return _PACKAGE.parent.parent


def in_source_tree() -> bool:
    """Whether the lab runs from a source tree rather than from an installed prefix."""
    return (root() / "CMakeLists.txt").exists()


def mpis() -> Path:
    """The directory that `mpisec lab setup` fills: MPISEC_LAB_MPIS, else .mpis in the source tree, else in
    the cache."""
    given = os.environ.get("MPISEC_LAB_MPIS")
    if given:
        return Path(given)
    if in_source_tree():
        return root() / ".mpis"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mpisec" / "mpis"


def build() -> Path:
    """A directory for what the lab compiles (made when missing)."""
    if in_source_tree():
        directory = root() / "build" / "lab"
    else:
        directory = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mpisec" / "lab"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def find_mpisec(given: str | Path | None = None) -> Path:
    """The mpisec program: `given`, MPISEC_LAB_MPISEC, the installed one beside this package,
    build/release, or PATH."""
    asked = given or os.environ.get("MPISEC_LAB_MPISEC")
    if asked:
        found = shutil.which(str(asked))
        if not found:
            raise LabError(f"there is no program {asked} (--mpisec, MPISEC_LAB_MPISEC)")
        return Path(found).absolute()
    beside = root() / "build/release/bin/mpisec" if in_source_tree() else root().parent.parent / "bin/mpisec"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("mpisec")
    if found:
        return Path(found)
    raise LabError("mpisec is not built: `make build`, or give its path (--mpisec), or run --plain")


def libraries(mpisec: Path) -> Path:
    """The directory of what that program preloads, as it says itself: lib, lib64, Debian's lib/x86_64-linux-gnu. Raises LabError."""
    # Its exit status says whether every part is installed, which not everybody needs.
    told = subprocess.run([mpisec, "info"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"^libraries +(\S.*)$", told, re.MULTILINE)
    if found is None:
        raise LabError(f"{mpisec} finds no libraries of its own: install MPIsec again")
    return Path(found[1])
