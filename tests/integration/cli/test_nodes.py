"""mpisec key share and doctor --nodes, on nodes of the lab: each keeps its key in memory of its own."""

import shlex
from pathlib import Path

import pytest

from mpisec_lab import places

KEY = "/dev/shm/shared-key"


@pytest.fixture
def on_nodes(cluster):
    """on_nodes(node, words…): a Result; keys of earlier tests are gone."""
    nodes = cluster(3)
    for node in range(3):
        nodes.execute(node, ["rm", "-f", KEY], sweep=False)
    return lambda node, *words: nodes.execute(node, words, sweep=False)


@pytest.fixture
def ssh(cluster, tmp_path):
    """A stand-in for ssh that writes down its arguments and environment."""
    seen = tmp_path / "seen"
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\n{{ printf "%s\\n" "$@"; env; }} >>{seen}\nexec {cluster(3).agent} "$@"\n')
    program.chmod(0o755)
    return program, seen


def test_a_key_is_shared(on_nodes, ssh):
    mpisec, (agent, seen) = places.find_mpisec(), ssh
    on_nodes(0, mpisec, "key", "new", KEY).check()
    shared = on_nodes(0, mpisec, "key", "share", "--ssh", agent, "--file", KEY, "node1", "node2")
    assert shared.returncode == 0, shared.stderr
    assert shared.stdout.count("the key is there now") == 2
    secret = on_nodes(0, "cat", KEY).stdout
    for node in (1, 2):
        assert on_nodes(node, "cat", KEY).stdout == secret
        assert on_nodes(node, "stat", "-c", "%a", KEY).stdout.strip() == "600"
        assert on_nodes(node, "ls", "/dev/shm").stdout.split().count(Path(KEY).name) == 1
        assert Path(KEY).name + "." not in on_nodes(node, "ls", "/dev/shm").stdout, "an unfinished file stays"
    assert secret.split()[1] not in seen.read_text(), "neither an argument nor a variable"
    again = on_nodes(0, mpisec, "key", "share", "--ssh", agent, "--file", KEY, "node1")
    assert again.returncode == 0 and "had this key already" in again.stdout


def test_a_relative_name_is_the_same_file_on_the_node(on_nodes, ssh):
    mpisec, (agent, _), place = places.find_mpisec(), ssh, Path(KEY)
    on_nodes(0, mpisec, "key", "new", KEY).check()
    share = f"cd {place.parent} && {mpisec} key share --ssh {agent} --file {place.name} node1"
    assert f"the key is there now: {KEY}" in on_nodes(0, "sh", "-c", share).stdout
    assert on_nodes(1, "cat", KEY).stdout == on_nodes(0, "cat", KEY).stdout


# Of what sh, csh and fish read alike: text in single quotes, without what csh or fish would change there, and characters behind a backslash.
LIKE_FOR_EVERY_SHELL = r"""/bin/sh -c (?:'[^'\\!\n]*'|\\['\\!])+"""


def test_a_login_shell_that_is_none_of_posix(on_nodes, ssh, tmp_path):
    mpisec, (agent, _) = places.find_mpisec(), ssh
    picky = tmp_path / "picky"
    picky.write_text(f"""#!/usr/bin/python3
import os, re, sys
if not re.fullmatch({LIKE_FOR_EVERY_SHELL!r}, sys.argv[-1]):
    sys.exit("Badly placed ()'s.")
os.execv({str(agent)!r}, sys.argv)
""")
    picky.chmod(0o755)
    key = "/dev/shm/the job's key!"
    on_nodes(0, "rm", "-f", key), on_nodes(1, "rm", "-f", key)
    on_nodes(0, mpisec, "key", "new", key).check()
    shared = on_nodes(0, mpisec, "key", "share", "--ssh", picky, "--file", key, "node1")
    assert shared.returncode == 0 and "the key is there now" in shared.stdout, shared.stdout + shared.stderr
    assert on_nodes(1, "cat", key).stdout == on_nodes(0, "cat", key).stdout
    on_nodes(0, "rm", "-f", key), on_nodes(1, "rm", "-f", key)


def test_another_key_stays(on_nodes, ssh):
    mpisec, (agent, _) = places.find_mpisec(), ssh
    for node in (0, 1):
        on_nodes(node, mpisec, "key", "new", KEY).check()
    theirs = on_nodes(1, "cat", KEY).stdout
    share = [mpisec, "key", "share", "--ssh", agent, "--file", KEY]
    refused = on_nodes(0, *share, "node1", "node2")
    assert refused.returncode == 1 and "another file is at" in refused.stdout
    assert "these nodes do not have the key: node1" in refused.stderr
    assert on_nodes(1, "cat", KEY).stdout == theirs
    assert on_nodes(0, *share, "--replace", "node1").returncode == 0
    assert on_nodes(1, "cat", KEY).stdout == on_nodes(0, "cat", KEY).stdout != theirs


def test_a_node_that_is_not_there(on_nodes, ssh):
    mpisec, (agent, _) = places.find_mpisec(), ssh
    on_nodes(0, mpisec, "key", "new", KEY).check()
    refused = on_nodes(0, mpisec, "key", "share", "--ssh", agent, "--file", KEY, "nowhere", "node1")
    assert refused.returncode == 1 and "these nodes do not have the key: nowhere" in refused.stderr
    assert "node1" in refused.stdout and "the key is there now" in refused.stdout
    assert on_nodes(0, mpisec, "key", "share", "--ssh", agent, "--file", KEY, "--", "-oProxyCommand=x").returncode != 0


@pytest.fixture
def everywhere(cluster, tmp_path):
    """A launcher that runs its arguments on every node, one after the other, with a label as some launchers print. What is in ON_0, ON_1 and
    ON_2 are variables for one node."""
    program = tmp_path / "everywhere"
    lines = [f'{cluster(3).agent} node{node} "env MPISEC_KEY_FILE={KEY} $ON_{node} $line" | sed "s/^/[{node}] /"' for node in range(3)]
    program.write_text('#!/bin/bash\nline=$(printf "%q " "$@")\n' + "\n".join(lines) + "\n")
    program.chmod(0o755)
    return program


def test_a_table_of_nodes(on_nodes, ssh, everywhere, compile_mpi):
    mpisec, (agent, _) = places.find_mpisec(), ssh
    app = compile_mpi(Path(__file__).with_name("preloaded.c"), "mpich-5")
    on_nodes(0, mpisec, "key", "new", KEY).check()
    lacking = on_nodes(0, mpisec, "doctor", "--nodes", shlex.quote(str(everywhere)), "--", app, "a b")
    assert lacking.returncode == 1
    for node in (1, 2):
        assert f"PROBLEM on node{node}: There is no key file at {KEY}" in lacking.stdout, lacking.stdout + lacking.stderr
    on_nodes(0, mpisec, "key", "share", "--ssh", agent, "--file", KEY, "node1", "node2").check()
    fine = on_nodes(0, mpisec, "doctor", "--nodes", everywhere, "--", app)
    assert fine.returncode == 0, fine.stdout + fine.stderr
    table = fine.stdout.splitlines()
    assert table[0].split()[:4] == ["node", "version", "key", "mpi"]
    assert [line.split()[0] for line in table[1:4]] == ["node0", "node1", "node2"]
    assert len({tuple(line.split()[1:]) for line in table[1:4]}) == 1 and "libmpi.so.12" in table[1]
    assert table[-1] == "no problem found on 3 nodes"
    fails_later = on_nodes(0, mpisec, "doctor", "--nodes", f"sh -c '{everywhere} \"$@\"; exit 3' sh", "--", app)
    assert fails_later.returncode == 1 and "PROBLEM: the launcher ended with status 3" in fails_later.stdout, fails_later.stdout
    on_nodes(2, "rm", KEY)
    on_nodes(2, mpisec, "key", "new", KEY).check()
    differs = on_nodes(0, mpisec, "doctor", "--nodes", everywhere, "--", app)
    assert differs.returncode == 1 and "PROBLEM: another key on node2 than elsewhere" in differs.stdout


@pytest.fixture
def doctor(on_nodes, ssh, everywhere):
    """doctor({node: "NAME=VALUE …"}): a Result, of nodes that have the key."""
    mpisec, (agent, _) = places.find_mpisec(), ssh
    on_nodes(0, mpisec, "key", "new", KEY).check()
    on_nodes(0, mpisec, "key", "share", "--ssh", agent, "--file", KEY, "node1", "node2").check()
    return lambda variables: on_nodes(0, "env", *(f"ON_{node}={text}" for node, text in variables.items()), mpisec, "doctor", "--nodes", everywhere)


@pytest.mark.parametrize("variables, problem", [
    ({1: "MPISEC_SEGMENT=64K"}, "PROBLEM: MPISEC_SEGMENT is 64K on node1, and at its default elsewhere"),
    ({0: "MPISEC_REKEY_BYTES=1G", 2: "MPISEC_REKEY_BYTES=1G"}, "PROBLEM: MPISEC_REKEY_BYTES is at its default on node1, and 1G elsewhere"),
    ({1: "MPISEC_AEAD=aes-128-gcm"}, "PROBLEM: another cipher on node1 than elsewhere (aes-256-gcm)"),
    ({1: "MPISEC_BCAST=pipeline"}, "PROBLEM: MPISEC_BCAST is pipeline on node1, and at its default elsewhere"),
    ({1: "MPISEC_JOB=a", 2: "MPISEC_JOB=b"}, "PROBLEM: MPISEC_JOB is a on node1, b on node2, and at its default elsewhere"),
    (dict.fromkeys(range(3), "MPISEC_BCAST=foo"), 'PROBLEM on node2: MPISEC_BCAST cannot be "foo"'),
    ({1: "MPISEC_FOO=1"}, "PROBLEM on node1: The variable MPISEC_FOO is not a setting of MPIsec"),
    (dict.fromkeys(range(3), "MPISEC_UNPROTECTED=allow"), "PROBLEM on node2: MPISEC_UNPROTECTED=allow: calls that MPIsec cannot protect"),
    ({1: "MPISEC_UNPROTECTED=allow"}, "PROBLEM: MPISEC_UNPROTECTED is allow on node1, and at its default elsewhere"),
])
def test_settings_that_keep_a_job_from_starting(doctor, variables, problem):
    asked = doctor(variables)
    assert asked.returncode == 1 and problem in asked.stdout, asked.stdout + asked.stderr
    assert "no problem found" not in asked.stdout and "another key" not in asked.stdout


def test_a_table_whose_content_differs(doctor, tmp_path):
    """Not its name: on nodes without a common file system it is in different places."""
    for name, threshold in (("one", 65536), ("copy", 65536), ("other", 131072)):
        (tmp_path / name).write_text(f"threshold = {threshold}\n")
    of_node = lambda *names: {node: f"MPISEC_TUNING={tmp_path}/{name}" for node, name in enumerate(names)}  # noqa: E731
    asked = doctor(of_node("one", "copy", "one"))
    assert asked.returncode == 0, asked.stdout + asked.stderr
    asked = doctor(of_node("one", "copy", "other"))
    assert asked.returncode == 1 and "PROBLEM: MPISEC_TUNING is table-" in asked.stdout and "on node2" in asked.stdout, asked.stdout


def test_settings_that_may_differ(doctor):
    asked = doctor({1: "MPISEC_WORKERS=0 MPISEC_STALL_TIME=5"})
    assert asked.returncode == 0 and "no problem found on 3 nodes" in asked.stdout, asked.stdout + asked.stderr


def test_no_node_answers(on_nodes):
    silent = on_nodes(0, places.find_mpisec(), "doctor", "--nodes", "true")
    assert silent.returncode == 1 and "no node answered; the launcher ended with status 0" in silent.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_nodes_without_a_key_are_named(run, compile_mpi, mpi):
    """By the job itself: those that lack it say so, with the command that helps. (The first one that does ends the job, so not always all.)"""
    app = compile_mpi("#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }\n", mpi)
    result = run([app], nodes=3, ranks=3, mpi=mpi, node_key={1: "/nonexistent/key", 2: "/nonexistent/key"})
    assert result.returncode != 0
    said = [line for line in result.stderr.splitlines() if "There is no key file at /nonexistent/key" in line]
    assert said and all("(node1)" in line or "(node2)" in line for line in said), result.stderr
    assert all("mpisec key new" in line and "mpisec key share NODES" in line for line in said)
