"""What the report needs beyond what a Python of any version brings."""

import importlib.util

_MODULES = {"matplotlib": "python3-matplotlib", "jinja2": "python3-jinja2"}


def missing() -> str | None:
    """A sentence on the first thing that this Python lacks and how to get it; None when all is there."""
    if importlib.util.find_spec("tomllib") is None:
        return "the report needs Python 3.11 or newer"
    for name, package in _MODULES.items():
        if importlib.util.find_spec(name) is None:
            how = f"pip install {name} in a virtual environment, or apt install {package}"
            return f"the report needs {name}, which this Python lacks: {how}"
    return None
