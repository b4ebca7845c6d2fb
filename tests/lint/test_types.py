"""The Python packages have types, and mypy finds nothing wrong with them (pyproject.toml)."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def mypy(*arguments):
    """(exit status, lines of output)."""
    ran = subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert not ran.stderr, ran.stderr
    return ran.returncode, ran.stdout.splitlines()


def test_the_packages_are_clean():
    status, lines = mypy()
    assert status == 0, "\n".join(lines)


def test_every_package_is_looked_at_strictly():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"] is True
    assert {"lab/mpisec_lab", "bench/mpisec_bench", "gen", "tools", "demo", "tests/programs"} <= set(settings["files"])


def test_a_function_without_types_is_found(tmp_path):
    file = tmp_path / "untyped.py"
    file.write_text("def f(x):\n    return x\n")
    status, lines = mypy("--config-file", ROOT / "pyproject.toml", file)
    assert status == 1 and "[no-untyped-def]" in lines[0], lines
