#!/usr/bin/env python3
"""links.py [DIRECTORY]: links of the Markdown pages below DIRECTORY (this repository) that lead to no file or heading, and sources in
backticks that are not there, one per line; exit status 1 when there are any. Addresses on the web are not looked up."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
SOURCE = re.compile(r"`((?:\w+/)+\w+\.(?:cpp|hpp|h|c|py|sh|toml|vp|pml))`")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# Where a source in backticks may lie: pages leave out src/.
ROOTS = ("", "src")


def anchors(page: Path) -> set[str]:
    """What its headings are called in links, as forges make it."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in HEADING.findall(page.read_text())}


def dead(page: Path, top: Path) -> Iterator[str]:
    """["LINK: no such heading", …] of one page."""
    text = page.read_text()
    for link in LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{link}: no such heading"
    for source in SOURCE.findall(text):
        if not any((top / root / source).exists() for root in (*ROOTS, page.parent.relative_to(top))):
            yield f"{source}: no such source"


def pages(top: Path) -> list[Path]:
    """Those that git does not ignore; all where there is no repository."""
    listed = subprocess.run(["git", "-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], capture_output=True, text=True)
    names = listed.stdout.split("\0") if listed.returncode == 0 else []
    return sorted(top / name for name in names if name) or sorted(top.rglob("*.md"))


if __name__ == "__main__":
    directory = (Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent).resolve()
    found = [f"{page.relative_to(directory)}: {what}" for page in pages(directory) if page.exists() for what in dead(page, directory)]
    print("\n".join([*found, f"links: {len(found)} lead nowhere"]))
    sys.exit(1 if found else 0)
