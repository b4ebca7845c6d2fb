"""docs/troubleshooting.md: its headings are what the programs really say."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
HEADINGS = re.findall(r"^### `(.*)`$", (TOP / "docs/troubleshooting.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def literals():
    """All C++ sources, in which literals that follow each other are one."""
    return re.sub(r'"\s*\n?\s*"', "", "\n".join(file.read_text() for file in sorted((TOP / "src").rglob("*.[ch]pp"))))


@pytest.mark.parametrize("heading", HEADINGS)
def test_the_programs_say_so(literals, heading):
    assert heading in literals


def test_there_are_headings():
    assert len(HEADINGS) > 15
