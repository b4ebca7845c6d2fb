"""Compiles MPI programs for a given MPI, once per content."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mpisec_lab import places
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import find_mpi

_WHOLE_LINES = Path(__file__).with_name("whole_lines.c")
_LANGUAGES = {".c": "c", ".cc": "c++", ".cpp": "c++", ".f": "fortran", ".f90": "fortran", ".F90": "fortran"}


def _headers_beside(file: Path, known: dict[Path, str] | None = None) -> dict[Path, str]:
    """{path: text} of the files that `file` includes by a path relative to its own, and of those that they
    do."""
    known = {} if known is None else known
    for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read_text(), re.MULTILINE):
        header = file.parent / name
        if header.is_file() and header not in known:
            known[header] = header.read_text()
            _headers_beside(header, known)
    return known


def compile_mpi(source: str | Path, mpi: str, *, flags: Sequence[object] = (), name: str | None = None, suffix: str = ".c") -> Path:
    """Compiles a program for `mpi` and returns the executable's Path.

    source: a file (Path or str that exists), or the program text itself, whose language `suffix` tells.
    flags: further options, after -O1 -g -Wall. The result is kept under build/lab and made again when the
    text, the flags, the compiler or headers beside the source (`#include "…"`) change; other files that it
    includes are not looked at. C and C++ programs write standard output and error by whole lines
    (whole_lines.c). Raises LabError with the compiler's words.
    """
    implementation = find_mpi(mpi)
    path = Path(source) if isinstance(source, Path) or "\n" not in str(source) else None
    text = path.read_text() if path else str(source)
    suffix = path.suffix if path else suffix
    language = _LANGUAGES[suffix]
    compiler = implementation.compiler_for(language)
    if shutil.which(compiler[0]) is None:
        raise LabError(
            f"{implementation.title} is not here ({compiler[0]}): {implementation.how_to_install()}"
        )
    includes = [f"-I{path.resolve().parent}"] if path else []
    options = ["-O1", "-g", "-Wall", *includes, *map(str, flags)]
    headers = _headers_beside(path.resolve()).values() if path else ()
    beside = [_WHOLE_LINES] if language != "fortran" and "-shared" not in options else []
    parts = [text, *headers, *(file.read_text() for file in beside), *compiler, *options, *implementation.link]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    directory = places.build() / "apps" / f"{implementation.name}-{digest}"
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / (name or (path.stem if path else "app"))
    with open(directory / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            file = directory / f"source{suffix}"
            file.write_text(text)
            unfinished = target.with_suffix(".unfinished")
            command = [*compiler, *options, "-o", str(unfinished), str(file), *map(str, beside), *implementation.link]
            # There, not where we were called: gfortran leaves the modules of a program where it runs.
            made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
            if made.returncode != 0:
                raise LabError(f"{' '.join(command)} failed:\n{made.stderr}")
            os.replace(unfinished, target)
    return target
