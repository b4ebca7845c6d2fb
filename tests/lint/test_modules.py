"""The table of modules (tools/modules.py)."""

from pathlib import Path

TOOL = "modules.py"
SOURCE = Path(__file__).resolve().parents[2] / "src"
HEADS = ["module", "files", "lines", "includes up", "longest function", "most parameters", "over the limits"]


def test_every_source_is_in_one_row(judged):
    status, (heads, *lines) = judged()
    assert status == 0 and [head.strip() for head in heads.split("  ") if head] == HEADS
    rows = {name: [int(cell) for cell in cells] for name, *cells in (line.split() for line in lines)}
    total = rows.pop("all")
    assert {"base", "coll", "coll/bcast", "shim/p2p", "shim/calls", "cli", "spank"} <= rows.keys()
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".cpp", ".hpp", ".c", ".h", ".cu", ".def"}]
    assert total[:2] == [len(files), sum(len(path.read_text().splitlines()) for path in files)]
    assert total[:3] + total[5:] == [sum(column) for column in list(zip(*rows.values(), strict=True))[:3]] + [0]
    assert total[3:5] == [max(row[3] for row in rows.values()), max(row[4] for row in rows.values())]
    assert 40 < total[3] <= 60 and total[4] == 6


def test_an_unknown_option(judged):
    assert judged("--all") == (2, ["modules.py [--tidy]"])
