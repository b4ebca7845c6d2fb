"""Start-up across nodes: who shares memory, who may take part, what is said when not (S1, S5, S7)."""

import os
import pathlib
import re
import stat
import subprocess
import sys

import pytest

from mpisec_lab.mpis import MPIS as ALL_MPIS

SOURCE = pathlib.Path(__file__).with_name("startup.c")
MPIS = ["mpich-5", "openmpi-5"]


@pytest.mark.parametrize("mpi", list(ALL_MPIS))
def test_every_mpi_starts(mpi, compile_mpi, run):
    result = run([compile_mpi(SOURCE, mpi)], nodes=3, ranks=6, mpi=mpi)
    assert right(result) == 6, result.stdout + result.stderr


@pytest.fixture(params=MPIS)
def startup(request, compile_mpi, run):
    """Runs startup.c on this MPI."""
    app = compile_mpi(SOURCE, request.param)
    return lambda nodes=2, ranks=4, **options: run([app], nodes=nodes, ranks=ranks, mpi=request.param, **options)


@pytest.fixture
def make_key(tmp_path):
    """make_key(name): the path of a new key file, from `mpisec key new`."""
    from mpisec_lab import places

    def make(name):
        path = tmp_path / name
        environment = os.environ | {"MPISEC_KEY_FILE": str(path)}
        subprocess.run([places.find_mpisec(None), "key", "new"], env=environment, check=True, capture_output=True)
        return path

    return make


def right(result):
    return len(re.findall(r"rank \d+ right 1", result.stdout))


def refused(result, *words):
    """The job ended by itself, with a failure, after a sentence that holds all `words`."""
    assert result.returncode not in (0, 124), result.stdout + result.stderr
    sentences = [line for line in (result.stdout + result.stderr).splitlines() if "mpisec: rank " in line]
    assert any(all(word in line for word in words) for line in sentences), result.stdout + result.stderr
    assert right(result) == 0


@pytest.mark.parametrize("nodes, ranks", [(2, 2), (2, 5), (3, 6), (2, 9), (4, 12), (3, 13), (7, 7)])
def test_every_shape_of_tree_starts(startup, nodes, ranks):
    result = startup(nodes, ranks)
    assert result.returncode == 0, result.stderr
    assert right(result) == ranks


def test_one_node_needs_no_key(startup, tmp_path):
    result = startup(1, 3, key=str(tmp_path / "nothing"))
    assert result.returncode == 0, result.stderr
    assert right(result) == 3


def test_wrong_key_on_one_node(startup, make_key):
    one, other = str(make_key("one")), str(make_key("other"))
    result = startup(3, 3, key=one, node_key={1: other})
    refused(result, "rank 1 (node1)", "another key", "mpisec key show")


def test_missing_key_on_one_node(startup, make_key, tmp_path):
    result = startup(2, 2, key=str(make_key("one")), node_key={1: str(tmp_path / "missing")})
    refused(result, "rank 1 (node1)", "There is no key file", "mpisec key new")


def test_key_that_others_can_read(startup, make_key):
    key = make_key("one")
    key.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP)
    refused(startup(2, 2, key=str(key)), "open to others")


@pytest.mark.parametrize(
    "setting, words",
    [
        ({"MPISEC_AEAD": "openssl:aes-128-gcm"}, ["aes-128-gcm", "aes-256-gcm"]),
        ({"MPISEC_PIPELINE_THRESHOLD": "32K"}, ["rank 2 (node1)", "MPISEC_PIPELINE_THRESHOLD 32K instead of 64K"]),
        ({"MPISEC_SEGMENT": "64K"}, ["rank 2 (node1)", "MPISEC_SEGMENT 64K instead of auto"]),
        ({"MPISEC_REKEY_BYTES": "1G"}, ["rank 2 (node1)", "MPISEC_REKEY_BYTES 1G instead of 256G"]),
        ({"MPISEC_PIPELINE": "off"}, ["rank 2 (node1)", "MPISEC_PIPELINE off instead of auto"]),
        ({"MPISEC_SAME_NODE": "seal"}, ["rank 2 (node1)", "MPISEC_SAME_NODE seal instead of auto"]),
        ({"MPISEC_SAME_NODE": "plain"}, ["rank 2 (node1)", "MPISEC_SAME_NODE plain instead of auto"]),
        ({"MPISEC_SAME_NODE": "verify"}, ["rank 2 (node1)", "MPISEC_SAME_NODE verify instead of auto"]),
        ({"MPISEC_CONNECTIONS": "plain"}, ["MPISEC_CONNECTIONS"]),  # Open MPI's connections are refused before ranks compare settings
        ({"MPISEC_UNPROTECTED": "allow"}, ["rank 2 (node1)", "MPISEC_UNPROTECTED allow instead of refuse"]),
        ({"MPISEC_JOB": "another"}, ["rank 2 (node1)", "is of another job"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_node_with_another_setting(startup, setting, words):
    env = {"MPISEC_AEAD": "openssl:aes-256-gcm"}
    refused(startup(2, 4, env=env, node_env={1: setting}), *words)


def test_node_with_another_table(startup, tmp_path):
    table = tmp_path / "table.toml"
    table.write_text("[[message]]\nbytes = [0, inf]\nsegment = inf\n")
    refused(startup(2, 4, node_env={1: {"MPISEC_TUNING": str(table)}}),
            "rank 2 (node1) has other algorithms of collectives or other rules for messages (MPISEC_TUNING")


def test_another_library_for_the_same_cipher_is_fine(startup):
    env = {"MPISEC_AEAD": "openssl:aes-256-gcm"}
    result = startup(2, 4, env=env, node_env={1: {"MPISEC_AEAD": "aes-256-gcm"}})
    assert result.returncode == 0, result.stderr
    assert right(result) == 4


def test_shared_memory_has_no_name_while_the_job_runs(startup):
    """The object had a name for a moment only; no file of it is left for others, or after a crash."""
    result = startup(2, 4)
    assert len(re.findall(r"rank \d names 0\n", result.stdout)) == 4, result.stdout + result.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_the_key_file_is_forgotten(mpi, compile_mpi, run, make_key):
    """S5: after MPI_Init nothing of the key is in a rank's memory; the one secret that follows from it alone and is kept is out of the
    reach of core dumps and children."""
    key = make_key("one")
    scanner = pathlib.Path(__file__).with_name("remembered.py")
    result = run([compile_mpi(scanner.with_suffix(".c"), mpi), sys.executable, scanner, key], nodes=2, ranks=4, mpi=mpi, key=str(key),
                 env={"MPISEC_CONNECTIONS": "authenticate"})
    assert right(result) == 4, result.stdout + result.stderr
    places = re.findall(r"^remembered: (\w+ \w+)", result.stdout, re.MULTILINE)
    assert set(places) == {"connections hidden"}, result.stdout  # these are found, so the key would be
