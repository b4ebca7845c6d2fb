"""What `make lint` says of includes (tools/layers.py)."""

import pytest

TOOL = "layers.py"


def test_no_include_of_the_tree_points_upward(judged):
    assert judged() == (0, ["layers: 0 includes point upward"])


@pytest.mark.parametrize("file, included, upward", [
    ("shim/p2p/peer_state.cpp", "shim/calls/entry.hpp", True),
    ("shim/calls/init.cpp", "shim/p2p/peer_state.hpp", False),
    ("shim/pmpi/real.hpp", "shim/runtime/state.hpp", True),
    ("wire/frame.hpp", "shim/pmpi/real.hpp", True),
    ("spank/plugin.c", "gpu/library.h", True),
    ("gpu/kernels.cu", "gpu/batch.hpp", False),
    ("coll/reduce/scan.cpp", "coll/patterns/rounds.hpp", False),
    ("coll/collective.cpp", "coll/patterns/rounds.hpp", True),
    ("coll/selection/selection.cpp", "shim/runtime/state.hpp", True),
])
def test_an_include(judged, tmp_path, file, included, upward):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(f'// "shim/calls/entry.hpp"\n#include <vector>\n#include "{included}"\n')
    status, lines = judged(tmp_path)
    directory = included.rpartition("/")[0] + "/"
    assert lines[:-1] == ([f"{file} includes {directory}"] if upward else [])
    assert status == int(upward)
