"""`make lint` judges files that git does not track yet (tools/lint.sh)."""

import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.mark.skipif(not (shutil.which("clang-format-14") or shutil.which("clang-format")), reason="clang-format is not installed")
def test_a_new_file_is_judged(tmp_path):
    (tmp_path / "tools").mkdir()
    for tool in "lint.sh", "lib.sh", "layers.py", "links.py":
        shutil.copy(TOOLS / tool, tmp_path / "tools")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "layout.cpp").write_text("int   x ;\n")
    (tmp_path / "syntax.py").write_text("def\n")
    (tmp_path / "page.md").write_text("[a](gone.md)\n")
    ran = subprocess.run([tmp_path / "tools/lint.sh"], capture_output=True, text=True)
    assert ran.returncode == 1
    for name in "layout.cpp", "syntax.py", "page.md: gone.md":
        assert name in ran.stdout + ran.stderr
