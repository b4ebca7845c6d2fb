"""The collectives and their algorithms, as `mpisec algorithms` says: the list is src/base/collectives.def."""

import functools
import json
import subprocess

from mpisec_lab import places
from mpisec_lab.errors import LabError


@functools.cache
def algorithms() -> dict[str, list[str]]:
    """{collective: names of its algorithms}, in MPIsec's order. Raises LabError when there is no such `mpisec` here."""
    program = places.find_mpisec()
    ran = subprocess.run([program, "algorithms", "--json"], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise LabError(f"{program} does not know `mpisec algorithms`: it is another version; build it anew, or name another (MPISEC_LAB_MPISEC)")
    known: dict[str, list[str]] = json.loads(ran.stdout)
    return known
