"""docs/procedures.md: the classes as a page."""

from __future__ import annotations

from classes import CLASSES, Group
from standard import Procedure

HEAD = """# What MPIsec does with each MPI procedure

Rendered from `gen/classes.toml` by `gen/generate.py docs`; do not edit (a test compares). The list of procedures is that of the
MPI standard as PyPI `pympistandard` carries it, with the few that were removed from it and that MPICH still declares, and the
libraries' extensions (`MPIX_…`) that take a communicator; one that is not listed here is *same-node*.

"""

BLOCKS_HEAD = """## Waiting

A large message travels in segments that MPIsec hands to MPI one after the other, so something of MPIsec's must run while a rank
waits (M5). What keeps messages moving in a procedure that may wait for another process is said in the tables below as:

"""

BLOCKS = {
    "never": "it does not wait for another process, or only for its MPI library to answer, which that does inside every call",
    "loop": "MPIsec's own implementation, which waits in MPIsec's progress loop",
    "meet": "all who take part first meet in the progress loop: inside the library they then wait for each other only",
    "test": "the progress loop asks the library's non-blocking form again and again",
    "ahead": "the progress loop first waits for what the library would wait for",
    "poll": "it does not wait, but programs call it until something has happened: it moves what is under way",
    "refused": "it never gets to the library between nodes",
    "open": "it may wait inside the library, and messages of more than `MPISEC_PIPELINE_THRESHOLD` bytes wait with it; "
            "so do one-sided operations on its rank's memory, locks of that memory and accesses to a shared file pointer that it keeps",
}

MEANING = {
    "sealed": "MPIsec's own implementation: what leaves the node is sealed",
    "same-node": "passed through while every rank concerned is on this node, else an MPI error that names the call",
    "refused": "an MPI error that names the call: it reaches processes that MPIsec has no keys with",
    "local": "passed through: sends nothing, or works on an object that only exists inside a node",
}


def render(groups: list[Group], standard: dict[str, list[Procedure]]) -> str:
    counts = {c: sum(len(g.procedures) for g in groups if g.class_ == c) for c in CLASSES}
    lines = [HEAD + "| class | procedures | what happens |", "| --- | ---: | --- |"]
    lines += [f"| {c} | {counts[c]} | {MEANING[c]} |" for c in CLASSES]
    listed = sum(name in standard for group in groups for name in group.procedures)
    lines.append(
        f"\n{listed} of the standard's {len(standard)} procedures are listed. *+c*: there is a large-count twin `…_c`, in the"
    )
    lines.append(
        "same class. `MPISEC_UNPROTECTED=allow` lets *same-node* and *refused* calls through in clear, loudly.\n"
    )
    lines.append(BLOCKS_HEAD + "| waiting | what keeps messages moving |\n| --- | --- |")
    lines += [f"| {name} | {meaning} |" for name, meaning in BLOCKS.items()]
    lines.append("")
    for class_ in CLASSES:
        lines.append(f"## {class_}\n\n{MEANING[class_]}.\n")
        lines += ["| group | procedures | why | protected by | waiting |", "| --- | --- | --- | --- | --- |"]
        for group in (g for g in groups if g.class_ == class_):
            names = ", ".join(_name(name, standard) for name in group.procedures)
            waiting = group.blocks + (f": {group.note}" if group.note else "")
            lines.append(f"| {group.title} | {names} | {group.reason} | {group.later or '-'} | {waiting} |")
        lines.append("")
    return "\n".join(lines)


def _name(name: str, standard: dict[str, list[Procedure]]) -> str:
    return f"`{name}`" + (" *+c*" if len(standard.get(name, [])) > 1 else "")
