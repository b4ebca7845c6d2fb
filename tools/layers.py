#!/usr/bin/env python3
"""layers.py [DIRECTORY]: includes of the C++ sources in DIRECTORY (src) that point upward, one per line; exit status 1 when there are any.

Modules, and the directories inside the two large ones, stand in layers. What may include what is the tables below, which
docs/architecture.md explains.
"""

import re
import sys
from pathlib import Path

# Module: the modules that it may include besides itself.
MODULES = {
    "base": (),
    "config": ("base",),
    "keys": ("base",),
    "aead": ("base", "keys"),
    "wire": ("base", "aead"),
    "transport": ("base", "keys", "aead"),
    "engine": ("base", "aead", "wire"),
    "gpu": ("base",),
    "provider": ("base", "aead"),
    "fabric": ("base", "aead", "wire"),
    "coll": ("base", "config", "fabric"),
    "shim": ("base", "config", "keys", "aead", "wire", "transport", "engine", "gpu", "fabric", "coll"),
    "profile": (),
    "spank": (),
    "cli": ("base", "config", "keys", "aead", "wire", "engine", "gpu", "fabric", "coll"),
}
# Module: its layers from the lowest to the highest; one includes itself and those before it. "": files of the module itself.
LAYERS = {
    "coll": ("", "patterns", "alltoall", "barrier", "bcast", "rooted", "reduce", "neighbor", "allgather", "selection"),
    "shim": (
        *("process", "pmpi", "runtime", "sockets", "startup", "p2p", "partitioned", "collective"),
        *("communicators", "rma", "io", "sessions", "dynamic", "calls"),
    ),
}
SOURCES = (".hpp", ".cpp", ".h", ".c", ".cu")
Place = tuple[str, str]  # module, layer
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:\w+/)+)\w+\.(?:hpp|def|h)"', re.MULTILINE)


def place(directory: str) -> Place:
    """("shim", "p2p") of "shim/p2p/"; a module without layers has the layer ""."""
    module, *inside = directory.strip("/").split("/")
    return module, inside[0] if module in LAYERS and inside else ""


def allowed(includer: Place, included: Place) -> bool:
    """Whether files at one place may include those at another."""
    (module, layer), (other, other_layer) = includer, included
    if other not in MODULES:  # the public header, mpisec/
        return True
    if module != other:
        return other in MODULES[module]
    layers = LAYERS.get(module, ("",))
    return layers.index(other_layer) <= layers.index(layer)


def upward_of(path: Path, source: Path) -> list[str]:
    """["shim/p2p/peer_state.cpp includes shim/calls/", …] of one file below the directory `source`."""
    here = path.relative_to(source)
    directories = INCLUDE.findall(path.read_text(encoding="utf-8"))
    return [f"{here} includes {directory}" for directory in directories if not allowed(place(here.parent.as_posix()), place(directory))]


def upward(source: Path) -> list[str]:
    """The same of all sources in the directory."""
    return [found for path in sorted(source.rglob("*")) if path.suffix in SOURCES for found in upward_of(path, source)]


if __name__ == "__main__":
    lines = upward(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "src")
    print("\n".join([*lines, f"layers: {len(lines)} includes point upward"]))
    sys.exit(1 if lines else 0)
