"""OpenCoarrays' own tests as Debian has compiled them: Fortran's coarrays on one-sided communication (dynamic windows, locks, atomics, events,
teams), and programs whose images stop or end early."""

from pathlib import Path

from harness.description import Program, Suite, here, package_version

HOME = Path("/usr/lib/x86_64-linux-gnu/open-coarrays/openmpi/bin")
# Plain Open MPI 4.1 allocates no window over TCP by its own choice of component.
ENV = {"OMPI_MCA_osc": "pt2pt"}
RANKS = {"issue-515-mimic-mpi-gatherv": 2, "issue-552-send_by_ref-singleton": 2}  # 4 otherwise
# Images that fail need another MPI. Some tests do not run plain: they crash, need eight images or take minutes over this component.
LEFT_OUT = ("alloc_comp_multidim_shape", "coarray_burgers_pde", "coarray_distributed_transpose", "get_array", "issue-488-multi-dim-cobounds",
            "send_array", "sendget_convert_char_array", "sendget_convert_nums", "sync_team", "team_number")


def programs(mpi, place):
    """One program per test."""
    here(HOME)
    tests = sorted(path for path in HOME.glob("OpenCoarrays-*-tests/*") if path.name not in LEFT_OUT and not path.name.startswith("image_fail_"))
    return [Program(name=test.name, command=[test], ranks=RANKS.get(test.name, 4), env=ENV) for test in tests]


SUITE = Suite(
    name="coarrays",
    origin="Debian package libcoarrays-openmpi-dev",
    version=package_version("libcoarrays-openmpi-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="exit status, and standard output's verdicts; what some print before images have met depends on which was faster",
    keep=(r"(?i)pass|fail|error|wrong",),
    unordered=True,
)
