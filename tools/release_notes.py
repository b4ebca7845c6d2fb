#!/usr/bin/env python3
"""release_notes.py VERSION: what CHANGELOG.md says of it, as the text of a release; exit status 1 when it says nothing."""

import re
import sys
from pathlib import Path


def notes(changelog: str, version: str) -> str:
    """The section whose heading has this version. Links into the tree lead nowhere from a release's page: their files are named instead."""
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if version in re.findall(r"[\w.]+", heading):
            return re.sub(r"\[[^]]+\]\((?!https?:)([^)]+)\)", r"`\1`", text.strip())
    return ""


def main() -> int:
    version = sys.argv[1].removeprefix("v")
    text = notes((Path(__file__).resolve().parent.parent / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if not text:
        print(f"CHANGELOG.md has no section for {version}", file=sys.stderr)
        return 1
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
