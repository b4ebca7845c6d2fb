"""The documentation site (`make site`): builds without a network, has no dead link, is searched offline, and refuses what is broken. Needs
Sphinx, which `make test` does not install: `make test-all`."""

import importlib.util
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from mpisec_lab import places

TOP = Path(__file__).resolve().parents[2]
REQUIREMENTS = TOP / "docs/site/requirements.txt"

pytestmark = pytest.mark.slow


def _missing(reason):
    (pytest.fail if os.environ.get("MPISEC_LAB_REQUIRED") == "1" else pytest.skip)(reason)


@pytest.fixture(scope="module")
def python():
    """The Python that has Sphinx."""
    venv = Path(os.environ.get("MPISEC_LAB_SITE_VENV", TOP / ".deps/site-venv"))
    made = subprocess.run([TOP / "tools/venv.sh", venv, REQUIREMENTS], cwd=TOP, capture_output=True, text=True)
    if made.returncode:
        _missing(f"Sphinx cannot be installed: {made.stderr}")
    return venv / "bin/python"


def make_site(python, output, *options):
    """Runs tools/site.py, in a network namespace of its own where that is allowed: there is no network then."""
    alone = ["unshare", "--net"] if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0 else []
    command = [*alone, python, TOP / "tools/site.py", "--program", places.find_mpisec(), "-o", output, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


@pytest.fixture(scope="module")
def site(python, tmp_path_factory):
    output = tmp_path_factory.mktemp("site") / "site"
    made = make_site(python, output)
    assert made.returncode == 0, made.stdout + made.stderr
    return output


class _Page(HTMLParser):
    """What a page refers to, and the places in it that others may refer to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag in ("script", "img", "source", "iframe") and attributes.get("src"):
            self.loaded.append(attributes["src"])
        if tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loaded.append(attributes["href"])


@pytest.fixture(scope="module")
def parsed(site):
    return {path: _Page(path) for path in site.rglob("*.html") if "_downloads" not in path.parts}


def test_every_link_leads_somewhere(parsed):
    followed = 0
    for path, page in parsed.items():
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path, link)
            if parts.fragment and target in parsed and path.name != "search.html":
                assert unquote(parts.fragment) in parsed[target].anchors, (path, link)
            followed += 1
    assert followed > 3000


def test_nothing_is_fetched_from_elsewhere(site, parsed):
    for path, page in parsed.items():
        assert not [link for link in page.loaded if urlsplit(link).netloc], path
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet


def test_every_page_of_the_repository_is_there(site):
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "docs/*.md", "*.md"], capture_output=True, text=True, check=True).stdout.split()
    pages = [name for name in listed if name.startswith("docs/") or "/" not in name]
    assert len(pages) > 30
    for name in pages:
        assert (site / name).with_suffix(".html").is_file(), name
    assert (site / "commands/mpisec-bench-pingpong.html").is_file()
    assert (site / "index.html").read_text() == (site / "README.html").read_text()
    assert list(site.glob("_downloads/*/conformance.json"))  # results that pages link to


def test_navigation_is_in_order(site):
    captions = re.findall(r'class="caption-text">([^<]+)<', (site / "index.html").read_text())
    assert captions == ["First success", "Use", "Configuration", "How it works", "Proof", "Measurements", "Contributing"]


def test_search_works_from_files(site):
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program or importlib.util.find_spec("playwright") is None:
        _missing("chromium and playwright are not both here: tools/apt-packages-test.txt, tests/requirements.txt")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = chromium.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "search.html").as_uri() + "?q=fingerprint")
        page.wait_for_selector("ul.search li a", timeout=30_000)
        found = page.eval_on_selector_all("ul.search li a", "links => links.map(link => link.textContent)")
        chromium.close()
    assert "Protocol" in found and "mpisec key show" in found, found
    assert all(url.startswith("file:") for url in asked), asked


def test_what_is_broken_is_refused(python, tmp_path):
    tree = tmp_path / "tree"
    (tree / "docs").mkdir(parents=True)
    shutil.copytree(TOP / "docs", tree / "docs", dirs_exist_ok=True)
    for page in TOP.glob("*.md"):
        shutil.copy(page, tree)
    (tree / "docs/glossary.md").write_text("# Glossary\n\n[a](gone.md) [b](lab.md#gone) [c](results/gone.json) [d](#gone)\n")
    (tree / "docs/nowhere.md").write_text("# A page without a place\n")
    made = make_site(python, tmp_path / "site", "--top", tree)
    assert made.returncode != 0
    warnings = made.stdout + made.stderr
    for what in ("gone.md", "results/gone.json", "nowhere.md: WARNING: document isn't included in any toctree"):
        assert what in warnings, (what, warnings)
    assert len(re.findall(r"glossary\.md:3: WARNING", warnings)) == 4, warnings
