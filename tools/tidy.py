#!/usr/bin/env python3
"""tidy.py [FILE…]: what clang-tidy finds in the C++ sources of src, tests/unit and tests/fuzz, or in FILE…; exit status 1 for any finding.

The checks, and why others are left out, are in .clang-tidy and tests/.clang-tidy. How a source is compiled comes from
build/release (`make tidy` builds it); the shim's are judged once, as compiled against MPICH. A FILE that is not compiled there is judged
as C++20 by itself. JOBS is how many run at once. What was clean is not judged again before it, a header, its flags, the checks or
clang-tidy change; build/tidy may be copied from another checkout.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATABASE = ROOT / "build/release/compile_commands.json"
CLEAN = ROOT / "build/tidy"  # an empty file per source without findings, named by the hash of all that was judged
JUDGED = tuple(ROOT / name for name in ("src", "tests/unit", "tests/fuzz"))
OF_SHIM, FOR_MPICH = ROOT / "src/shim", f"-I{ROOT}/build/release/src/shim/mpich"
OUR_HEADERS = rf"^{re.escape(str(ROOT))}/(src|include|tests)/"  # neither those of libraries nor generated ones
FINDING = re.compile(r"^(?:.+?:\d+:\d+: )?(?:fatal )?(?:warning|error): ")


def compiled() -> dict[Path, list[str]]:
    """{source: the command that compiles it}: of several the first, of the shim's the one for MPICH."""
    commands: dict[Path, list[str]] = {}
    for entry in json.loads(DATABASE.read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        for source in grouped(Path(entry["directory"], entry["file"])):
            wanted = FOR_MPICH in words if source.is_relative_to(OF_SHIM) else any(source.is_relative_to(place) for place in JUDGED)
            if wanted:
                commands.setdefault(source, words)
    return commands


def grouped(compiled_file: Path) -> list[Path]:
    """The file itself, or those of the group that CMake has it compile together (cmake/Unity.cmake)."""
    if compiled_file.parent.name != "Unity":
        return [compiled_file]
    return [Path(name) for name in re.findall(r'^#include "(.+)"$', compiled_file.read_text(encoding="utf-8"), re.MULTILINE)]


def flags(command: Iterable[str]) -> list[str]:
    """What a command says of how to read its source: without compiler, input and output."""
    words = iter(command)
    next(words)
    kept = []
    for word in words:
        if word in ("-o", "-c"):
            next(words)
        else:
            kept.append(word)
    return kept


def relative(text: bytes) -> bytes:
    """Text that names files of this checkout, without saying where the checkout is."""
    return text.replace(os.fsencode(ROOT) + b"/", b"")


class Judge:
    def __init__(self, program: str, commands: dict[Path, list[str]]) -> None:
        self.program, self.commands = program, commands
        self.version = self.said("--version")

    def said(self, *arguments: str) -> bytes:
        return subprocess.run([self.program, *arguments], capture_output=True, check=True).stdout

    def findings(self, source: Path) -> list[str]:
        """["FILE:LINE:COLUMN: error: … [check]\n    explanation", …]."""
        how = flags(self.commands.get(source) or ["c++", "-std=c++20", f"-I{ROOT / 'src'}"])
        options = [] if source.is_relative_to(ROOT) else [f"--config-file={ROOT / '.clang-tidy'}"]
        clean = CLEAN / self.key(source, how, options)
        if clean.exists():
            return []
        ran = subprocess.run([self.program, "--quiet", f"--header-filter={OUR_HEADERS}", *options, str(source), "--", *how], capture_output=True, text=True)
        found: list[str] = []
        for line in ran.stdout.splitlines():
            if FINDING.match(line):
                found.append(line.removeprefix(f"{ROOT}/"))
            elif found:
                found[-1] += f"\n{line}"
        if ran.returncode != 0 and not found:
            found.append(f"{source}: clang-tidy ended with status {ran.returncode}: {ran.stderr.strip()}")
        if not found:
            clean.touch()
        return found

    def key(self, source: Path, how: list[str], options: list[str]) -> str:
        """Of the source as preprocessed, with its comments (NOLINT is one): the same wherever the checkout lies."""
        read = subprocess.run(["c++", *how, "-E", "-CC", str(source)], capture_output=True, cwd=ROOT)
        checks = self.said("--dump-config", *options, str(source), "--")
        parts = (self.version, checks, shlex.join([str(source), *how]).encode(), read.stdout, read.stderr)
        return hashlib.sha256(b"".join(hashlib.sha256(relative(part)).digest() for part in parts)).hexdigest()


def ready(named: bool) -> Judge | str:
    """What judges, or why nothing can. `named`: files are named, so that it may do without a build."""
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not program:
        return "clang-tidy is not installed; install the package clang-tidy-14, or clang-tidy where there is no such package"
    if not named and not DATABASE.exists():
        return f"{DATABASE.relative_to(ROOT)} is not there; run `make tidy`, which builds it"
    commands = compiled() if DATABASE.exists() else {}
    missing = sorted(path for path in OF_SHIM.rglob("*.cpp") if path not in commands)
    if not named and missing:
        return f"how {missing[0].relative_to(ROOT)} is compiled against MPICH is not in {DATABASE.relative_to(ROOT)}"
    CLEAN.mkdir(parents=True, exist_ok=True)
    return Judge(program, commands)


def all_findings(judge: Judge, sources: Iterable[Path]) -> Iterator[tuple[Path, list[str]]]:
    """(source, its findings) in their order, each finding once: what is in a header is found in all that include it."""
    said: set[str] = set()
    listed = list(sources)
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        for source, found in zip(listed, pool.map(judge.findings, listed), strict=True):
            new = {finding.partition("\n")[0]: finding for finding in found}
            yield source, [finding for what, finding in new.items() if what not in said]
            said |= new.keys()


def main(names: list[str]) -> int:
    judge = ready(bool(names))
    if isinstance(judge, str):
        print(f"tidy: {judge}")
        return 2
    sources = [Path(name).resolve() for name in names] or sorted(judge.commands)
    count = 0
    for _, found in all_findings(judge, sources):
        count += len(found)
        for finding in found:
            print(finding, flush=True)
    print(f"tidy: {count} findings in {len(sources)} sources")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
