"""User-Level Failure Mitigation: when ranks die under a launcher that lets the others go on, they agree and go on with a shrunken
communicator, sealed.

Open MPI 5 now and then stays in MPI_Finalize when a rank was killed, on a machine that does much else: after ten seconds there survivors
leave. Those jobs are slow tests."""

from pathlib import Path

import pytest

from mpisec_lab.capture import count

HERE = Path(__file__).parent
LAUNCHER = ["--with-ft", "ulfm"]
# Open MPI 5's `han` crashes in a collective that meets a dead process, plain too. Its launcher ends with an error when a rank was killed.
ENVIRONMENT = {"OMPI_MCA_coll": "^han", "MPISEC_STALL_TIME": "20"}
MARKER = b"SIPM" * 4


def go_on(run, compile_mpi, where, victims, ranks=4, plain=False):
    app = compile_mpi(HERE / "survivors.c", "openmpi-5", flags=["-O2"])
    result = run([app, where, *victims], nodes=2, ranks=ranks, mpi="openmpi-5", plain=plain, launcher=LAUNCHER, env=ENVIRONMENT, timeout=60)
    assert not result.timed_out, result.stdout + result.stderr[-3000:]
    left = ranks - sum(int(victim) >= 0 for victim in victims)
    assert result.stdout.count("ok ") == left, result.stdout + result.stderr[-3000:]
    assert "integrity" not in result.stderr, result.stderr[-3000:]
    # MPIsec's part of MPI_Finalize is done then.
    assert result.stderr.count("a process has died, so the counts") == (left if left < ranks and not plain else 0), result.stderr[-3000:]
    return result


@pytest.mark.slow
@pytest.mark.parametrize(("where", "victims"), [("barrier", ["3"]), ("allreduce", ["0"]), ("large", ["1"]), ("any", ["2"]), ("agree", ["0"]), ("agree", ["3"])])
def test_survivors_go_on(run, compile_mpi, where, victims):
    """S8 M11: one of four ranks on two nodes dies."""
    go_on(run, compile_mpi, where, victims)


@pytest.mark.slow
def test_one_after_the_other_dies(run, compile_mpi):
    """M11: the shrunken communicator loses a rank too. (When a node has lost all, Open MPI waits for it in MPI_Finalize for ever.)"""
    go_on(run, compile_mpi, "barrier", ["1", "2"])


def test_nobody_dies(run, compile_mpi):
    """M11: agreeing and shrinking are calls like others."""
    go_on(run, compile_mpi, "barrier", ["-1", "-1"])


@pytest.mark.slow
def test_survivors_say_nothing_in_clear(run, compile_mpi, cluster, tmp_path):
    """S1: no marker of the survivors' data, before or after, is on the wire; plain shows it."""
    seen = {}
    for plain in (True, False):
        with cluster(2).capture(tmp_path / "pcap") as capture:
            go_on(run, compile_mpi, "allreduce", ["2"], plain=plain)
        seen[plain] = count(capture.streams(), MARKER)
    assert seen[True] > 100 and seen[False] == 0, seen


@pytest.mark.parametrize("lying", [False, True], ids=["truth", "lie"])
def test_no_agreement_is_believed_that_the_network_made_up(run, compile_mpi, lying):
    """S2: where the exchange under seal gave no result, the library's word that all agree makes none. Rank 1 believes that rank 0 has died,
    so it agrees with itself. (MPICH 5.0 ends every program that calls MPIX_Comm_shrink.)"""
    app = compile_mpi(HERE / "believers.c", "openmpi-5")
    liar = compile_mpi(HERE / "survivors_liar.c", "openmpi-5", flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"], name="survivors_liar.so")
    env = {**ENVIRONMENT, **({"LD_PRELOAD": str(liar)} if lying else {})}
    result = run([app], nodes=2, ranks=2, mpi="openmpi-5", launcher=LAUNCHER, env=env, timeout=60)
    shrunk = "shrink error none" if lying else "shrink fine some"
    expected = [f"0 agree fine 4, {shrunk}", f"1 agree fine {5 if lying else 4}, {shrunk}"]
    assert sorted(result.stdout.split("\n")) == ["", *expected], result.stdout + result.stderr[-3000:]
    assert ("integrity error" in result.stderr) == lying, result.stderr[-3000:]


@pytest.mark.parametrize(("mpi", "plain"), [("openmpi-5", False), ("openmpi-5", True), ("mpich-5", False)])
def test_both_sides_of_an_intercommunicator_agree(run, compile_mpi, mpi, plain):
    """M11: whether the call waits or not, where nobody may die. (Plain MPICH 5.0 ends the program.)"""
    app = compile_mpi(HERE / "two_sides.c", mpi, flags=["-O2"])
    result = run([app], nodes=2, ranks=5, mpi=mpi, plain=plain, env=ENVIRONMENT, timeout=60)
    assert result.stdout.count("ok ") == 5, result.stdout + result.stderr[-3000:]
