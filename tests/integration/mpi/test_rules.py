"""Rules M1 to M12 on a covering subset of MPIs × nodes × ranks: one job runs all rules of a point.

The programs check themselves, and pass plain too: then a failure is MPIsec's. Each rule is in the file of its name.
"""

import pytest
from mpi_programs import RULES, YIELD, build_rules, run_rules
from slow import slow

# (MPI, nodes, ranks): each MPI with 2 and 4 nodes, 1 to 3 ranks per node; ranks that are not a multiple of the nodes lie unevenly.
POINTS = [
    ("mpich-5", 4, 6), ("openmpi-5", 2, 4), ("mpich-4", 2, 3), ("openmpi-4", 2, 6),
]
MORE = [("mpich-5", 2, 2), ("mpich-5", 4, 12), ("openmpi-5", 4, 4), ("mpich-4", 4, 4), ("openmpi-4", 4, 4)]
SMOKE = [("impi", 2, 2), ("mpich-5-abi", 2, 4)]
PLAIN = [("openmpi-5", 2, 3)]
MORE_PLAIN = [("mpich-5", 2, 2), ("mpich-4", 2, 2), ("openmpi-4", 2, 2)]  # a core per rank: plain MPICH polls without pause
# What these libraries do not do between nodes by themselves: Open MPI 4.1 has no one-sided component for TCP; one of the windows of MPICH 4.0
# keeps what it held, and its files read what is behind their end; MPICH does not combine Fortran's types in windows, and MPICH 5 tells other
# ranks another class of error where a file exists.
PLAIN_CANNOT = {("openmpi-4", "one_sided"), ("openmpi-4", "one_sided_locks"), ("openmpi-4", "one_sided_epochs"),
                ("openmpi-4", "constructors"), ("openmpi-4", "fortran_kinds"), ("mpich-4", "one_sided"),
                ("mpich-4", "fortran_kinds"), ("mpich-5", "fortran_kinds"), ("mpich-5", "error_handlers"), ("mpich-4", "files")}


def broken(verdicts):
    """The rules that did not hold, and why."""
    return {rule: why for rule, why in verdicts.items() if why}


def name(point):
    """How a point is called in a test's name."""
    return f"{point[0]}-{point[1]}x{point[2] / point[1]:g}"


@pytest.fixture(scope="module")
def verdicts(run, compile_mpi):
    """verdicts(point, plain): what became of each rule; the job runs once per point."""
    known = {}

    def get(point, plain=False, options=(), env=None):
        mpi, nodes, ranks = point
        key = (point, plain, tuple(options), str(env))
        if key not in known:
            app = build_rules(compile_mpi, mpi)
            known[key] = run_rules(run, app, RULES, nodes=nodes, ranks=ranks, mpi=mpi, plain=plain, timeout=240,
                                   options=list(options), env=YIELD | (env or {}))
        return known[key]

    return get


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("point", [*POINTS, *SMOKE, *slow(*((point,) for point in MORE))], ids=name)
def test_rule_sealed(verdicts, point, rule):
    """M1 M2 M3 M4 M5 M6 M7 M8 M9 M10: the rule (rules/*.c) holds between nodes and on a node."""
    why = verdicts(point)[rule]
    assert why is None, why


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("point", [*PLAIN, *slow(*((point,) for point in MORE_PLAIN))], ids=name)
def test_rule_plain(verdicts, point, rule):
    """The same without MPIsec: what a rule asks for is what the MPI gives."""
    why = verdicts(point, plain=True)[rule]
    if why and (point[0], rule) in PLAIN_CANNOT:
        pytest.xfail(why)
    assert why is None, why


@pytest.mark.parametrize(("mpi", "workers"), [("mpich-5", "0"), ("openmpi-5", "2"), *slow(("mpich-5", "2"), ("openmpi-5", "0"))])
def test_without_threads(verdicts, mpi, workers):
    """M10: programs that initialize with MPI_Init are served too, worker threads or not."""
    assert not broken(verdicts((mpi, 2, 2), options=["--single"], env={"MPISEC_WORKERS": workers}))


def test_nodes_of_two_ranks_on_intel(run, compile_mpi):
    """M2 M3: Intel MPI's statuses of receives from MPI_ANY_SOURCE say that they were cancelled, and it does not see that a message is longer
    than a buffer without room."""
    rules = ["any_source", "truncation", "one_sided"]
    assert not broken(run_rules(run, build_rules(compile_mpi, "impi"), rules, nodes=2, ranks=4, mpi="impi", timeout=100))


def test_keys_renewed_while_running(verdicts):
    """S6: with keys renewed after every few messages everything works as before."""
    found = verdicts(("mpich-5", 2, 4), env={"MPISEC_REKEY_MESSAGES": "7"})
    assert not broken(found)


@pytest.mark.parametrize("threshold,segment", [("1K", "4K"), *slow(("1M", "64K"))])
def test_other_thresholds(verdicts, threshold, segment):
    """M3 M4: where messages begin to travel in segments, and how long these are, changes nothing that a program sees."""
    found = verdicts(("mpich-5", 2, 3), env={"MPISEC_PIPELINE_THRESHOLD": threshold, "MPISEC_SEGMENT": segment})
    assert not broken(found)


@pytest.mark.slow
def test_whole_messages(verdicts):
    """M3 M4: nor does it when the rest of a large message travels whole."""
    assert not broken(verdicts(("mpich-5", 2, 3), env={"MPISEC_PIPELINE": "off", "MPISEC_PIPELINE_THRESHOLD": "1K"}))


@pytest.mark.parametrize("mpi", ["openmpi-5", *slow("mpich-5")])
def test_same_node_sealed(run, compile_mpi, mpi):
    """M1 M2: with MPISEC_SAME_NODE=seal every message is sealed, a rank's to itself too, and every rule holds as before (windows
    are then refused inside nodes as between them)."""
    rules = [rule for rule in RULES if rule not in ("inside_node", "locks")]
    found = run_rules(run, build_rules(compile_mpi, mpi), rules, nodes=2, ranks=4, mpi=mpi, timeout=90,
                      env=YIELD | {"MPISEC_SAME_NODE": "seal"})
    assert not broken(found)


@pytest.mark.parametrize(("same_node", "mpi"), [
    ("verify", "mpich-5"), ("plain", "openmpi-5"), *slow(("verify", "openmpi-5"), ("plain", "mpich-5"))])
def test_same_node_verified_and_plain(verdicts, mpi, same_node):
    """M1 to M12: with records of what ranks of a node send each other, and without, every rule holds."""
    found = verdicts((mpi, 2, 4), env={"MPISEC_SAME_NODE": same_node})
    assert not broken(found)


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["", "MPISEC_PIPELINE_THRESHOLD=1K MPISEC_SEGMENT=4K", "MPISEC_SAME_NODE=seal"])
@pytest.mark.parametrize("point", [("mpich-5", 2, 3), ("mpich-5", 4, 8), ("openmpi-5", 2, 4), ("openmpi-5", 4, 4)], ids=name)
def test_many_random_programs(run, compile_mpi, point, settings):
    """M5 M8 M13: windows and files against models of them, by many random programs."""
    mpi, nodes, ranks = point
    env = YIELD | {"MPISEC_LAB_ROUNDS": "200"} | dict(setting.split("=") for setting in settings.split())
    found = run_rules(run, build_rules(compile_mpi, mpi), ["one_sided_random", "files_random"], nodes=nodes, ranks=ranks, mpi=mpi, timeout=600, env=env)
    assert not broken(found)
