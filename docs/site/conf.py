"""Sphinx's settings for the documentation site (tools/site.py, `make site`): the repository's Markdown pages as they are."""

import shutil
from pathlib import Path

project = "MPIsec"
author = "The MPIsec developers"
copyright = author

# The order in which a reader needs them. Every page has its place here: one without is an error.
NAVIGATION = {
    "First success": ["Overview <self>", "docs/install"],
    "Use": ["commands/mpisec", "docs/slurm", "docs/kubernetes", "docs/cloud", "docs/troubleshooting", "docs/procedures", "docs/provider", "docs/gpu",
            "docs/failures", "docs/lab"],
    "Configuration": ["docs/configuration", "docs/crypto-libraries", "docs/collectives"],
    "How it works": ["docs/architecture", "docs/protocol", "docs/adr/README", "docs/glossary"],
    "Proof": ["SECURITY", "docs/security-questions", "docs/threat-model", "docs/adversary", "docs/formal/README", "docs/conformance", "docs/programs"],
    "Measurements": ["docs/performance", "docs/performance-history", "docs/benchmarking", "docs/tracing", "docs/report", "docs/results/README"],
    "Contributing": ["CONTRIBUTING", "CHANGELOG"],
}

# Pages that have others below them.
BELOW = {"docs/adr/README": ["[0-9]*"]}

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "commands/*.md"]
highlight_language = "none"
smartquotes = False  # "--option" stays as it is
nitpicky = True

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4  # anchors as forges make them

html_theme = "furo"
html_title = project
html_static_path = []
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False


def _tree(pages, *options):
    return "\n".join(["```{toctree}", ":hidden:", ":glob:", *options, "", *pages, "```"])


def _add_navigation(app, page, source):
    """Tables of contents, at the end of pages: on a forge the pages have their own."""
    trees = [_tree(pages, f":caption: {caption}") for caption, pages in NAVIGATION.items()] if page == root_doc else []
    trees += [_tree(BELOW[page])] if page in BELOW else []
    source[0] = "\n\n".join([source[0], *trees]) + "\n"


def _make_front_page(app, error):
    """The site's address, without a page's name, shows the front page too."""
    if not error and app.builder.name == "html":
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app):
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _make_front_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
