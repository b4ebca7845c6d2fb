"""What `make lint` says of includes (tools/layers.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

LAYERS = Path(__file__).resolve().parents[2] / "tools" / "layers.py"


def judged(*arguments):
    """(exit status, lines of output)."""
    ran = subprocess.run([sys.executable, LAYERS, *arguments], capture_output=True, text=True)
    assert not ran.stderr, ran.stderr
    return ran.returncode, ran.stdout.splitlines()


def test_no_include_of_the_tree_points_upward():
    assert judged() == (0, ["layers: 0 includes point upward"])


@pytest.mark.parametrize("file, included, upward", [
    ("shim/p2p/peer_state.cpp", "shim/calls/entry.hpp", True),
    ("shim/calls/init.cpp", "shim/p2p/peer_state.hpp", False),
    ("shim/pmpi/real.hpp", "shim/runtime/state.hpp", True),
    ("wire/frame.hpp", "shim/pmpi/real.hpp", True),
    ("coll/reduce/scan.cpp", "coll/patterns/rounds.hpp", False),
    ("coll/collective.cpp", "coll/patterns/rounds.hpp", True),
    ("coll/selection/selection.cpp", "shim/runtime/state.hpp", True),
])
def test_an_include(tmp_path, file, included, upward):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(f'// "shim/calls/entry.hpp"\n#include <vector>\n#include "{included}"\n')
    status, lines = judged(tmp_path)
    directory = included.rpartition("/")[0] + "/"
    assert lines[:-1] == ([f"{file} includes {directory}"] if upward else [])
    assert status == int(upward)
