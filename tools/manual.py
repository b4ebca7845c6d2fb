#!/usr/bin/env python3
"""manual.py PROGRAM DIRECTORY [--markdown]: manual pages of mpisec and all of its subcommands, made of what they say with --help, so that
no option can be missing: DIRECTORY/mpisec.1, mpisec-bench.1, mpisec-bench-pingpong.1, …; as Markdown for the documentation site with
--markdown. DIRECTORY is emptied first."""

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# What may change the help: settings, and the width of the terminal.
_FOREIGN = ("MPISEC_", "COLUMNS", "LINES", "PYTHONWARNINGS")


Item = tuple[str, str]  # an option or the like, and what the help says of it


@dataclass
class Page:
    """What the help of one command says."""

    words: list[str]  # ["mpisec", "bench", "pingpong"]
    summary: str
    synopsis: list[str] = field(default_factory=list)
    description: list[list[str]] = field(default_factory=list)  # paragraphs of lines
    sections: list[tuple[str, list[Item]]] = field(default_factory=list)  # by title
    subcommands: list[tuple[list[str], str]] = field(default_factory=list)  # its names, text
    footer: list[list[str]] = field(default_factory=list)  # paragraphs of lines

    @property
    def name(self) -> str:
        return "-".join(self.words)


def ask(program: str, words: list[str]) -> str:
    """The help of a command; ends this program with a sentence when it has none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    environment |= {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    environment["MPISEC_LAB_MPISEC"] = str(Path(program).absolute())  # whose lists some commands' help shows
    asked = subprocess.run([program, *words[1:], "--help"], env=environment, capture_output=True, text=True, timeout=60)
    if asked.returncode:
        raise SystemExit(f"manual.py: {' '.join(words)} --help ended with status {asked.returncode}:\n{asked.stderr}")
    return asked.stdout


# --- Reading a help text: CLI11's ("Usage:", "Options:") or argparse's ("usage:", "options:").

_SECTION = re.compile(r"^\S.*:$")
_ITEM = re.compile(r"^(?: {2}| {4})(\S.*?)(?: {2,}(\S.*))?$")


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Blocks between empty lines."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _items(lines: list[str]) -> list[tuple[str, str, int]]:
    """[(term, text, indentation), …] of the lines of a section."""
    found: list[tuple[str, str, int]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        item = _ITEM.match(line)
        if indent <= 4 and item:
            found.append((item[1], item[2] or "", indent))
        else:
            term, text, first = found[-1]
            found[-1] = (term, f"{text} {line.strip()}".strip(), first)
    return found


def _add_section(page: Page, title: str, lines: list[str]) -> None:
    options: list[Item] = []
    below = False
    for term, text, indent in _items(lines):
        if re.fullmatch(r"\{[\w,-]+\}", term) and indent == 2:  # argparse's subcommands stand below, indented
            below = True
        elif title == "Subcommands" or (below and indent == 4):
            page.subcommands.append((term.split(", "), text))
        else:
            options.append((term, text))
    if options:
        page.sections.append((title, options))


def parse(words: list[str], summary: str, text: str) -> Page:
    page = Page(words, summary)
    seen_usage = False
    blocks = list(_paragraphs(re.sub(r"^(Usage: .*)$", r"\n\1\n", text, count=1, flags=re.MULTILINE).splitlines()))
    for block in blocks:
        if re.match(r"[Uu]sage: ", block[0]):
            page.synopsis = [re.sub(r"^[Uu]sage: ", "", block[0]), *(line.strip() for line in block[1:])]
            seen_usage = True
        elif _SECTION.match(block[0]) and len(block) > 1 and _ITEM.match(block[1]) and seen_usage:
            _add_section(page, block[0][:-1], block[1:])
        elif page.sections or page.subcommands:
            page.footer.append(block)
        else:
            page.description.append(block)
    if page.description and " ".join(page.description[0]).rstrip(".") == summary.rstrip("."):
        del page.description[0]
    if not seen_usage:
        raise SystemExit(f"manual.py: {' '.join(words)} --help has no line that begins with usage")
    if text[:5] == "Usage" or "\nUsage: " in text:
        page.sections = [(title, [_plain_words(*option) for option in options]) for title, options in page.sections]
    return page


def _plain_words(term: str, text: str) -> Item:
    """CLI11's notation of types and conditions, in words: ("--nodes INT:INT in [2 - 9] …", "") → ("--nodes INT", "(2 to 9)")."""
    notes = []
    for keyword, meaning in (("Excludes", "not with"), ("Needs", "only with")):
        found = re.search(rf" {keyword}: ((?:-\S+ ?)+)", term)
        if found:
            notes.append(f"{meaning} {', '.join(found[1].split())}")
            term = term.replace(found[0].rstrip(), "")
    if term.endswith(" REQUIRED"):
        term = term.removesuffix(" REQUIRED")
        notes.append("required")
    several = term.endswith(" ...")
    head, *constraints = re.split(r":(?=[A-Z{])", term.removesuffix(" ..."))
    for constraint in constraints:
        between = re.fullmatch(r"\w+ in \[(\S+) - (\S+)\]", constraint)
        if between:
            notes.append(f"{between[1]} to {between[2]}")
        elif constraint.startswith("{"):
            notes.append("one of " + constraint.strip("{}").replace(",", ", "))
        elif constraint.startswith("SIZE "):
            notes.append("bytes, or with a unit: 64K, 2M")
        else:
            notes.append(constraint)
    if several:
        head += "..."
    return head, f"{text} ({'; '.join(notes)})".strip() if notes else text


def read_all(program: str) -> list[Page]:
    """[Page, …] of mpisec and everything below it, in the order of the help."""

    def read(words: list[str], summary: str) -> list[Page]:
        page = parse(words, summary, ask(program, words))
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
            below = pool.map(lambda item: read([*words, item[0][0]], item[1]), page.subcommands)
            return [page, *(one for pages in below for one in pages)]

    return read(["mpisec"], "encrypt the network traffic of unmodified MPI programs")


def version(program: str) -> str:
    """As "mpisec 0.1.0"."""
    return " ".join(subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[:2])


# --- Writing: roff (man macros).


def _roff(text: str) -> str:
    """Text as it stands, on one line of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    text = "".join(letter if ord(letter) < 128 else f"\\[u{ord(letter):04X}]" for letter in text)
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def _roff_paragraphs(blocks: list[list[str]]) -> Iterator[str]:
    for block in blocks:
        yield ".PP"
        for run in _runs(block):
            if run[0].startswith(" "):
                yield from [".RS 4", ".nf", *(_roff(line.strip()) for line in run), ".fi", ".RE"]
            else:
                yield _roff(" ".join(line.strip() for line in run))


def _runs(block: list[str]) -> list[list[str]]:
    """Lines of text and indented lines (examples) of a paragraph apart."""
    runs: list[list[str]] = []
    for line in block:
        if runs and runs[-1][0].startswith(" ") == line.startswith(" "):
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def _roff_items(items: Iterable[Item]) -> Iterator[str]:
    for term, text in items:
        yield from [".TP", f"\\fB{_roff(term)}\\fR", _roff(text) if text else "\\&"]


def _footer_title(page: Page) -> str:
    return "Examples" if all(line.startswith(" ") for block in page.footer for line in block) else "Notes"


def _see_also(page: Page, pages: list[Page]) -> tuple[list[str], list[str]]:
    """The command above and those below."""
    above = ["-".join(page.words[:length]) for length in range(1, len(page.words))]
    below = [one.name for one in pages if one.words[:-1] == page.words]
    return above, below


def roff(page: Page, pages: list[Page], release: str) -> str:
    lines = [f'.TH {_roff(page.name.upper())} 1 "" "{_roff(release)}" "MPIsec"', ".SH NAME", f"{_roff(page.name)} \\- {_roff(page.summary)}"]
    lines += [".SH SYNOPSIS", ".nf", *(_roff(line) for line in page.synopsis), ".fi"]
    if page.description:
        lines += [".SH DESCRIPTION", *_roff_paragraphs(page.description)]
    if page.subcommands:
        lines += [".SH COMMANDS", *_roff_items((", ".join(names), text) for names, text in page.subcommands)]
    for title, options in page.sections:
        lines += [f".SH {_roff(title.upper())}", *_roff_items(options)]
    if page.footer:
        lines += [f".SH {_footer_title(page).upper()}", *_roff_paragraphs(page.footer)]
    above, below = _see_also(page, pages)
    if above or below:
        lines += [".SH SEE ALSO", ",\n".join(f"\\fB{_roff(name)}\\fR(1)" for name in [*above, *below])]
    return "\n".join(lines) + "\n"


# --- Writing: Markdown (MyST) for the documentation site.


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)


def _markdown_paragraphs(blocks: list[list[str]]) -> Iterator[str]:
    for block in blocks:
        for run in _runs(block):
            if run[0].startswith(" "):
                indent = min(len(line) - len(line.lstrip()) for line in run)
                yield from ["```text", *(line[indent:] for line in run), "```", ""]
            else:
                yield from [_markdown(" ".join(line.strip() for line in run)), ""]


def _markdown_items(items: list[Item]) -> Iterator[str]:
    for term, text in items:
        yield from [f"`` {term} ``", f": {_markdown(text) or '—'}", ""]


def markdown(page: Page, pages: list[Page], release: str) -> str:
    lines = [f"# {' '.join(page.words)}", "", _markdown(page.summary[:1].upper() + page.summary[1:]) + ".", ""]
    lines += ["```text", *page.synopsis, "```", "", *_markdown_paragraphs(page.description)]
    below = [one for one in pages if one.words[:-1] == page.words]
    if below:
        lines += ["## Commands", ""]
        for one in below:
            lines += [f"[{' '.join(one.words)}]({one.name}.md)", f": {_markdown(one.summary)}", ""]
    for title, options in page.sections:
        lines += [f"## {title[:1].upper() + title[1:]}", "", *_markdown_items(options)]
    if page.footer:
        lines += [f"## {_footer_title(page)}", "", *_markdown_paragraphs(page.footer)]
    if below:
        lines += ["```{toctree}", ":hidden:", "", *(one.name for one in below), "```", ""]
    lines.append(f"Made from `{' '.join(page.words)} --help` of {_markdown(release)}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    pages, release = read_all(arguments.program), version(arguments.program)
    shutil.rmtree(arguments.directory, ignore_errors=True)
    arguments.directory.mkdir(parents=True)
    write: Callable[[Page, list[Page], str], str]
    write, suffix = (markdown, ".md") if arguments.markdown else (roff, ".1")
    for page in pages:
        (arguments.directory / (page.name + suffix)).write_text(write(page, pages, release), encoding="utf-8")


if __name__ == "__main__":
    main()
