"""Draws what `mpisec sim --json` prints: time against size, a curve for each algorithm.

    mpisec sim allgather --ranks 128 --nodes 8 --plot figure.svg
    mpisec sim allgather --ranks 128 --nodes 8 --json | PYTHONPATH=bench python3 -m mpisec_bench.plot_sim -o figure.svg
"""

import argparse
import json
import sys
from typing import Any

_MARKERS = "osD^v<>pP*Xh"


def curves(document: dict[str, Any]) -> dict[str, tuple[list[int], list[float]]]:
    """Algorithm -> ([sizes], [microseconds]), in the document's order."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    for row in document["results"]:
        sizes, times = found.setdefault(row["algorithm"], ([], []))
        sizes.append(row["bytes"])
        times.append(row["microseconds"])
    return found


def size_text(size: int) -> str:
    """65536 -> 64K."""
    for suffix, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)


def draw(document: dict[str, Any], file: str) -> None:
    """Writes the figure; its name decides whether it is an SVG or a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "mpisec"  # so that equal figures are equal files
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    found = curves(document)
    for (name, (sizes, times)), marker in zip(found.items(), _MARKERS * len(found), strict=False):
        axes.plot(sizes, times, marker=marker, markersize=4, linewidth=1.2, label=name)
    sizes = sorted({row["bytes"] for row in document["results"]})
    axes.set_xscale("symlog" if sizes[0] == 0 else "log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [size_text(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel(document["size"])
    axes.set_ylabel("virtual microseconds")
    axes.set_title(
        f"{document['collective']}, {document['ranks']} ranks on {document['nodes']} nodes, "
        f"{document['placement']} placement; {document['model_name']}",
        fontsize=10,
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(file, dpi=150, metadata={"Date": None} if str(file).endswith(".svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help=".svg or .png")
    arguments = parser.parse_args()
    if not arguments.output.endswith((".svg", ".png")):
        sys.exit(f"mpisec sim: {arguments.output} is neither an .svg nor a .png")
    try:
        draw(json.load(sys.stdin), arguments.output)
    except ImportError as error:
        sys.exit(f"mpisec sim: plots need matplotlib ({error}): apt install python3-matplotlib, or pip install matplotlib in a virtual environment")
    except OSError as error:
        sys.exit(f"mpisec sim: {error}")


if __name__ == "__main__":
    main()
