#!/usr/bin/env python3
"""site.py [--program MPISEC] [--top DIRECTORY] [-o DIRECTORY]: the documentation site (Sphinx, docs/site/conf.py): README, CONTRIBUTING and
the like, docs/, and a page for each command of MPISEC. A dead link or anchor, or a page without a place in the navigation, is an error.
`make site` runs this with the Python of .deps/site-venv."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def files(top: Path) -> list[str]:
    """Those of the tree, without what git ignores; all where there is no repository."""
    listed = subprocess.run(["git", "-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    names = listed.stdout.split("\0") if listed.returncode == 0 else [str(path.relative_to(top)) for path in top.rglob("*")]
    return [name for name in names if name and (top / name).is_file()]


def stage(top: Path, program: Path, directory: Path) -> None:
    """What Sphinx reads: the tree as it is, so that pages reach every file of it, and the commands' pages."""
    shutil.rmtree(directory, ignore_errors=True)
    for name in files(top):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(top / name, directory / name)
    subprocess.run([sys.executable, TOP / "tools/manual.py", program, directory / "commands", "--markdown"], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=TOP / "build/release/bin/mpisec", type=Path)
    parser.add_argument("--top", default=TOP, type=Path, help="the tree whose pages are taken")
    parser.add_argument("-o", "--output", default=TOP / "build/site", type=Path)
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    source = output.with_name(output.name + "-source")
    stage(arguments.top.resolve(), arguments.program, source)
    shutil.rmtree(output, ignore_errors=True)
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env", "-c", TOP / "docs/site",
         "-d", output.with_name(output.name + "-doctrees"), source, output]
    )
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
