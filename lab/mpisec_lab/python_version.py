"""Imported first: ends with a sentence what older versions of Python would end with an error in some import."""

import sys

OLDEST = (3, 11)

if tuple(sys.version_info[:2]) < OLDEST:
    raise SystemExit(
        f"mpisec: this command needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and {sys.executable} is {sys.version_info[0]}.{sys.version_info[1]}: "
        "install MPIsec into an environment of a newer one. `mpisec exec` itself needs none."
    )
