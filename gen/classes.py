"""The class of every procedure: reads gen/classes.toml and holds it against the standard's list."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("classes.toml")
CLASSES = ("sealed", "same-node", "refused", "local")
CHECKS = ("", "always", "early", "world", "hand", "crosses", "window", "file")
BLOCKS = ("never", "loop", "meet", "test", "ahead", "poll", "refused", "open")
LEARNS = ("", "window", "file")
# Remedies that need a wrapper of MPIsec's around a procedure that is otherwise passed through.
WRAPPED = ("meet", "test", "ahead", "poll")


@dataclass(frozen=True)
class Group:
    """Procedures that share a class and the reason for it; the fields are described at the top of classes.toml."""

    title: str
    class_: str
    reason: str
    procedures: tuple[str, ...]
    check: str = ""
    later: str = ""
    blocks: str = ""
    note: str = ""
    own: bool = False
    learns: str = ""
    often: bool = False

    @property
    def wrapped(self) -> bool:
        """MPIsec defines these procedures."""
        return self.class_ != "local" or self.blocks in WRAPPED


# An extension (MPIX_…) that takes a communicator and that the table does not know: a newer library's, so refused between nodes.
UNKNOWN_EXTENSION = Group(
    "Unknown extensions",
    "same-node",
    "what this extension of the MPI library sends is not known",
    (),
    later="a later version (extensions)",
    blocks="open",
)


def load(path: Path = TABLE) -> list[Group]:
    """The groups in the table's order. Raises ValueError with a sentence for a class or check that does not exist."""
    groups = []
    for entry in tomllib.loads(path.read_text())["group"]:
        group = Group(
            entry["title"],
            entry["class"],
            entry["reason"],
            tuple(entry["procedures"].split()),
            entry.get("check", ""),
            entry.get("later", ""),
            entry.get("blocks", ""),
            entry.get("note", ""),
            entry.get("own", False),
            entry.get("learns", ""),
            entry.get("often", False),
        )
        if group.class_ not in CLASSES:
            raise ValueError(f'"{group.title}": class "{group.class_}" is none of {", ".join(CLASSES)}')
        if group.check not in CHECKS:
            raise ValueError(f'"{group.title}": check "{group.check}" is none of {", ".join(CHECKS[1:])}')
        if group.learns not in LEARNS:
            raise ValueError(f'"{group.title}": learns "{group.learns}" is none of {", ".join(LEARNS[1:])}')
        groups.append(group)
    return groups


def class_of(groups: list[Group]) -> dict[str, Group]:
    return {name: group for group in groups for name in group.procedures}


def problems(groups: list[Group], standard: set[str]) -> list[str]:
    """Sentences: procedures of the standard without a class, with two, and names that are no procedure; groups that do not say what
    keeps messages moving while their procedures wait (M5)."""
    found = []
    for group in groups:
        if group.blocks not in BLOCKS:
            found.append(f'"{group.title}": blocks "{group.blocks}" is none of {", ".join(BLOCKS)}')
        if group.blocks == "open" and not group.note:
            found.append(f'"{group.title}" has no remedy for waiting inside the library and no note that says why')
        if group.class_ == "refused" and group.blocks not in ("refused", "never"):
            found.append(f'"{group.title}" is refused, so its procedures cannot wait inside the library')
    named = [name for group in groups for name in group.procedures]
    for name in sorted(standard - set(named)):
        found.append(f"{name} has no class: add it to gen/classes.toml")
    for name in sorted({name for name in named if named.count(name) > 1}):
        found.append(f"{name} is in more than one group of gen/classes.toml")
    removed = {name for group in groups if group.title.startswith("Removed") for name in group.procedures}
    extensions = {name for name in named if name.startswith("MPIX_")}
    for name in sorted(set(named) - standard - removed - extensions):
        found.append(f"{name} is no procedure of the standard: correct its name in gen/classes.toml")
    return found
