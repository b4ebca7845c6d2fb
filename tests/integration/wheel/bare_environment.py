"""Commands in an environment without traces of this tree, another MPI or Python."""

import os
import subprocess


def ask(command, **options):
    """Runs it and returns what it printed; what it said, where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def bare():
    """This environment without what leads to another MPIsec, MPI or Python."""
    foreign = ("MPISEC_", "PYTHON", "VIRTUAL_ENV", "LD_", "OMPI_", "PMI", "MPI")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
