"""The suites, one description per file; all that are here are found."""

from importlib import import_module
from pathlib import Path

_NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")
SUITES = [import_module(f"suites.{name}").SUITE for name in _NAMES]
