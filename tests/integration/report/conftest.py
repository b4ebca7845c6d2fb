"""Fixtures for the tests of `mpisec report`: sample results, a page made of them, Chromium to look at it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "lab"), str(Path(__file__).parent)]

import report_samples  # noqa: E402


def _missing(reason):
    if os.environ.get("MPISEC_LAB_REQUIRED") == "1":
        pytest.fail(f"MPISEC_LAB_REQUIRED=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def drawing():
    """Skips what cannot be without the libraries that draw and write the page."""
    for module in ("matplotlib", "jinja2"):
        if importlib.util.find_spec(module) is None:
            _missing(f"{module} is not here: pip install -r tests/requirements.txt")


@pytest.fixture(scope="session")
def report(drawing):
    """report(*arguments): runs the command; returns its CompletedProcess with text."""

    def run(*arguments, environment=None):
        path = f"{ROOT / 'bench'}:{ROOT / 'lab'}"
        return subprocess.run(
            [sys.executable, "-m", "mpisec_bench.report", *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": path} | (environment or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


@pytest.fixture(scope="session")
def sample_page(report, tmp_path_factory):
    """The page of one result of every kind, one of them interrupted."""
    directory = tmp_path_factory.mktemp("report")
    results = report_samples.write(directory / "results", report_samples.everything())
    done = report(results, "-o", directory / "report.html")
    assert done.returncode == 3, done.stderr
    return directory / "report.html"


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        _missing("chromium is not here: apt install chromium")
    if importlib.util.find_spec("playwright") is None:
        _missing("playwright is not here: pip install -r tests/requirements.txt")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=program, args=flags)
        yield chromium
        chromium.close()


class Opened:
    """A page in the browser: `console` holds complaints, `requests` what it asked for beside itself."""

    def __init__(self, context, path):
        self.console, self.requests = [], []
        self.page = context.new_page()
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.requests = [url for url in self.requests if url != path.as_uri() and not url.startswith("data:")]


@pytest.fixture
def look_at(browser):
    """look_at(path, width=1280, dark=False): an Opened, offline."""
    contexts = []

    def open_(path, width=1280, dark=False):
        scheme = "dark" if dark else "light"
        contexts.append(
            browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        )
        return Opened(contexts[-1], path)

    yield open_
    for context in contexts:
        context.close()
