"""python3 -m mpisec_bench.report [FILES or DIRECTORIES …] -o report.html [--plots DIRECTORY]

`mpisec report` runs this. Exit status: 0 all is well; 1 nothing was written, a sentence says why; 3 the page
was written, but a run was interrupted or a file could not be read, and page and stderr say which.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mpisec_bench.report import needs
from mpisec_bench.report.reading import ReportError, Result, find_files, read_all

_INCOMPLETE = 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mpisec report",
        description="Makes one page, and plots, of results of mpisec bench.",
        epilog="The page needs no network. Exit status 3: written, but a run was interrupted or a file bad.",
    )
    parser.add_argument(
        "results",
        nargs="*",
        default=["."],
        metavar="FILE|DIRECTORY",
        help="result files; directories: their *.json (.)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), help="the page (report.html)"
    )
    parser.add_argument("--plots", type=Path, metavar="DIRECTORY", help="also every figure as PNG and SVG")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Writes what is asked for; returns the exit status. Raises ReportError."""
    arguments = _parser().parse_args(words)
    results, unreadable = read_all(find_files(arguments.results))
    if all(result.is_empty for result in results):
        why = unreadable or [
            f"{result.file} has no rows: its run ended before the first one" for result in results
        ]
        raise ReportError("there is nothing to show. " + "; ".join(why))
    problems = unreadable + [
        f"{r.file} is of an interrupted run; it is shown, and marked" for r in results if not r.complete
    ]
    _write(arguments, results, unreadable)
    for problem in problems:
        print(f"mpisec report: {problem}", file=sys.stderr)
    return _INCOMPLETE if problems else 0


def _write(arguments: argparse.Namespace, results: Sequence[Result], unreadable: Sequence[str]) -> None:
    if lacking := needs.missing():
        raise ReportError(lacking)
    try:
        from mpisec_bench.report import page
        from mpisec_bench.report.summary import summarise

        html = page.render(results, summarise(results, unreadable))
        arguments.output.write_text(html, encoding="utf-8")
        plots = page.write_plots(results, arguments.plots) if arguments.plots else []
    except OSError as error:
        raise ReportError(f"{error.filename} cannot be written: {error.strerror}") from error
    print(f"{arguments.output}" + (f" and {len(plots)} plots in {arguments.plots}" if plots else ""))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ReportError as error:
        sys.exit(f"mpisec report: {error}")
