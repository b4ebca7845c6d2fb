"""The lab itself: nodes, MPI jobs, link rate, and that nothing stays behind. All jobs are plain."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from slow import slow

from mpisec_lab import link, mpis
from mpisec_lab.cluster import Cluster, block_placement, remove_stale
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import MPIS
from mpisec_lab.rate import check_rate

HERE = Path(__file__).resolve().parent
LAB = HERE.parents[2] / "lab"


def lab_command(*arguments):
    return [sys.executable, "-m", "mpisec_lab", *map(str, arguments)]


def lab_environment(**variables):
    return os.environ | {"PYTHONPATH": str(LAB)} | variables


def processes_with(word):
    """Pids on this machine whose command line holds `word`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def nap():
    """A sleep that nobody else on this machine sleeps: its argument identifies the process."""
    return f"{600 + int.from_bytes(os.urandom(4), 'big') / 2**32:.9f}"


# --- nodes and jobs ---


@pytest.mark.parametrize("mpi", MPIS)
def test_lines_leave_a_rank_whole(run, compile_mpi, mpi):
    """Else the lines of several ranks run into each other where the C library writes an unbuffered stream in pieces."""
    result = run(compile_mpi(HERE / "lines.c", mpi), ranks=1, nodes=1, mpi=mpi, plain=True, timeout=30).check()
    assert result.stdout.strip() == "output 1 errors 1"


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize(("nodes", "ranks"), [(2, 4), *slow((4, 6))])
def test_ranks_are_on_separate_nodes(run, compile_mpi, mpi, nodes, ranks):
    result = run(compile_mpi(HERE / "whereami.c", mpi), nodes=nodes, ranks=ranks, mpi=mpi, plain=True, timeout=30)
    if not (mpi == "mpich-4" and result.timed_out):  # MPICH 4.0 may hang in MPI_Finalize, plain too, and is killed then
        assert result.check().left_over == []
    placement = block_placement([f"node{i}" for i in range(nodes)], ranks)
    expected = {}
    for name, share in placement:
        for _ in range(share):
            expected[len(expected)] = f"host {name} processor {name} sharing {share} foreign 0"
    said = dict(re.findall(r"rank (\d+) (.*)", result.stdout))
    assert {int(rank): line for rank, line in said.items()} == expected


def version_of(mpi):
    """As its MPI_Get_library_version says it."""
    if mpi == "impi":
        return "Intel"
    if MPIS[mpi].requirement:
        return MPIS[mpi].requirement.partition("==")[2]
    package = MPIS[mpi].debian.split()[0]
    said = subprocess.run(["dpkg-query", "-W", "-f", "${source:Upstream-Version}", package], capture_output=True, text=True, check=True).stdout
    return said.rpartition("really")[2]


@pytest.mark.parametrize("mpi", [name for name, mpi in MPIS.items() if mpi.mpi4py])
def test_mpi4py_uses_the_chosen_mpi(run, mpi_python, mpi):
    program = (
        "from mpi4py import MPI; import time; world = MPI.COMM_WORLD\n"
        "print(world.allreduce(world.rank), MPI.Get_library_version()); world.barrier(); time.sleep(0.02)"
    )
    result = run([mpi_python(mpi), "-c", program], nodes=2, ranks=2, mpi=mpi, plain=True).check()
    assert result.stdout.startswith("1 ") and version_of(mpi) in result.stdout


@pytest.mark.parametrize(("options", "said"), [
    (("--env", "2:A=B"), "--env 2:A=B: there is no node 2; the nodes are 0 to 1"),
    (("--key", "7:file"), "--key 7:file: there is no node 7; the nodes are 0 to 1"),
    (("--env", "1:A"), "--env A: give NAME=VALUE"),
    (("--env", "A B=C"), "--env A B=C: give NAME=VALUE"),
    (("--nodes", "1", "--plain", "--capture", "x.pcap"), "a capture needs two nodes"),
    (("--plain", "--key", "file"), "--plain runs the job without MPIsec, so --key has no effect"),
])
def test_options_that_would_have_no_effect(options, said):
    ran = subprocess.run(lab_command("run", *options, "true"), env=lab_environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and said in ran.stderr, ran.stderr


def test_environment_is_set_on_the_node_and_not_carried(cluster):
    one = cluster(2)
    printing = ["sh", "-c", "echo $(hostname) [$COLOUR] [$FROM_LAUNCHER]"]
    os.environ["FROM_LAUNCHER"] = "yes"
    try:
        result = one.run(
            printing,
            ranks=2,
            mpi="mpich-5",
            plain=True,
            env={"COLOUR": "red"},
            node_env={1: {"COLOUR": 'it\'s "blue" $HOME'}},
        ).check()
    finally:
        del os.environ["FROM_LAUNCHER"]
    assert sorted(result.stdout.splitlines()) == ["node0 [red] []", 'node1 [it\'s "blue" $HOME] []']


def test_status_output_and_timeout_of_a_job(run):
    failed = run(["sh", "-c", "echo out; echo err >&2; exit 3"], ranks=1, mpi="mpich-5", plain=True)
    assert (failed.returncode, failed.stdout.strip(), "err" in failed.stderr) == (3, "out", True)
    slow = run(["sleep", nap()], ranks=2, plain=True, timeout=1)
    assert slow.timed_out and slow.returncode == 124
    with pytest.raises(LabError, match="ran out of time"):
        slow.check()


def test_unknown_mpi_and_bad_sizes_are_sentences(cluster):
    with pytest.raises(LabError, match="knows mpich-5, "):
        cluster(2).run(["true"], ranks=2, mpi="lam", plain=True)
    with pytest.raises(LabError, match="at least one rank"):
        cluster(2).run(["true"], ranks=0, plain=True)
    with pytest.raises(LabError, match="1 to 64 nodes"):
        Cluster(0)


@pytest.mark.parametrize("package", ["mpisec_lab", "mpisec_bench"])
def test_an_older_python_is_told(package):
    program = f"import sys; sys.version_info = (3, 9, 2); import {package}"
    path = {"PYTHONPATH": f"{LAB}:{LAB.parent / 'bench'}"}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | path, capture_output=True, text=True)
    assert done.returncode == 1 and "needs Python 3.11 or newer" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_block_placement():
    names = ["a", "b", "c"]
    assert block_placement(names, 7) == [("a", 3), ("b", 2), ("c", 2)]
    assert block_placement(names, 2) == [("a", 1), ("b", 1)]


def test_nodes_have_cores_of_their_own_when_there_are_enough(cluster):
    one = cluster(2)
    masks = [set(_cores(one, node)) for node in range(2)]
    if len(os.sched_getaffinity(0)) >= 2:
        assert masks[0] and masks[1] and not masks[0] & masks[1]
    else:
        assert masks[0] == masks[1]


def _cores(cluster, node):
    program = "import os; print(*sorted(os.sched_getaffinity(0)))"
    return map(int, cluster.execute(node, [sys.executable, "-c", program]).check().stdout.split())


def test_two_clusters_at_once(cluster, compile_mpi):
    app = compile_mpi(HERE / "whereami.c", "openmpi-5")
    with Cluster(2) as other:
        jobs = [one.popen(0, ["sleep", nap()]) for one in (cluster(2), other)]
        for one in (other, cluster(2)):
            assert one.directory != (other if one is not other else cluster(2)).directory
        result = other.run([app], ranks=4, mpi="openmpi-5", plain=True).check()
        assert result.stdout.count("sharing 2 foreign 0") == 4
        assert jobs[0].poll() is None, "a job's end on one cluster has ended another cluster's process"
        assert cluster(2).sweep() and jobs[0].wait(10) != 0


# --- link rate ---


def test_raw_tcp_keeps_the_rate(cluster):
    rate = 200e6
    free = check_rate(cluster(2), None, seconds=0.5)
    limited = check_rate(cluster(2), rate, seconds=0.5)
    assert limited.measured <= 1.1 * rate
    assert limited.measured >= 0.5 * rate  # machines that test are busy ones
    assert free.measured > 2 * limited.measured, "the link is no faster without a rate: this test shows nothing"


@pytest.mark.parametrize(
    ("streams", "links"),
    [
        (((0, 1), (0, 1)), 1),  # two connections of two nodes
        (((0, 1), (0, 2)), 1),  # one node to two
        (((0, 2), (1, 2)), 1),  # two nodes to one
        (((0, 1), (1, 0)), 2),  # the two directions of a link
    ],
)
def test_connections_share_a_link(cluster, streams, links):
    rate = 200e6
    check = check_rate(cluster(3), rate, seconds=1, streams=streams)
    assert 0.6 * links * rate <= check.measured <= 1.1 * links * rate


def test_a_stream_that_fails_is_an_error(cluster):
    with pytest.raises(LabError, match=r"a raw TCP stream failed: .*"):
        check_rate(cluster(2), 1e6, seconds=-1)


def test_a_rate_that_the_kernel_refuses_is_an_error(lab):
    with Cluster(2) as own:
        own.execute(1, ["ip", "link", "delete", "eth0"]).check()
        with pytest.raises(LabError, match="tc qdisc replace dev p1 root tbf rate 1000000bit"):
            own.set_rate(1e6)
        with pytest.raises(LabError, match="tc qdisc replace dev p1 root noqueue"):
            own.set_rate(None)


@pytest.mark.parametrize("mpi", ["mpich-5", *slow(*(name for name in MPIS if name != "mpich-5"))])
def test_jobs_keep_the_rate(cluster, compile_mpi, mpi):
    source = HERE / "stream.c"
    rate = 100e6
    measured = {}
    for limit in (None, rate):
        result = cluster(2).run(
            [compile_mpi(source, mpi), "24"], ranks=2, mpi=mpi, plain=True, rate=limit, timeout=60
        )
        measured[limit] = float(result.check().stdout)
    assert 0.4 * rate <= measured[rate] <= 1.1 * rate
    assert measured[None] > 2 * measured[rate]


@pytest.mark.parametrize(
    ("text", "rate"), [("10gbit", 1e10), ("2.5g", 2.5e9), ("500mbit/s", 5e8), ("9600", 9600)]
)
def test_rates_are_read(text, rate):
    assert link.parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "-1gbit", "0", "10 parsec", "inf", "nan"])
def test_other_rates_are_refused(text):
    with pytest.raises(LabError, match="no link rate"):
        link.parse_rate(text)


# --- nothing stays ---


def nothing_left(directory, word):
    return wait_until(lambda: not processes_with(word) and not list(Path(directory).glob("mpisec-lab-*")))


@pytest.fixture
def short_tmp(lab):
    """A directory with a short path: MPIs put sockets there, whose paths may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def start_lab(short_tmp):
    """start_lab(mpi, *command): a plain job of four ranks on two nodes, in a lab of its own."""
    started = []

    def start(mpi, *command):
        arguments = lab_command("run", "--plain", "-n", "4", "--nodes", "2", "--mpi", mpi, *command)
        started.append(
            subprocess.Popen(
                arguments,
                env=lab_environment(TMPDIR=str(short_tmp)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(short_tmp, start_lab, mpi, number):
    word = nap()
    process = start_lab(mpi, "sh", "-c", f"setsid sleep {word} & exec sleep {word}")
    assert wait_until(lambda: len(processes_with(f"\0{word}\0")) >= 8), "the job did not start"
    directory = next(short_tmp.glob("mpisec-lab-*"))
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == (-number if number == signal.SIGKILL else 130), errors
    assert nothing_left(short_tmp, word)
    assert not processes_with(str(directory))


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_nothing_is_left_after_a_crash(short_tmp, start_lab, mpi):
    word = nap()
    # The sleep lets go of everything that it has inherited: launchers wait for the last holder of their
    # pipes.
    daemon = f'for f in /proc/self/fd/*; do eval "exec ${{f##*/}}>&-"; done; exec setsid sleep {word}'
    process = start_lab(mpi, "bash", "-c", f"({daemon}) & sleep 0.1; kill -SEGV $$")
    _, errors = process.communicate(timeout=60)
    assert process.returncode not in (0, 124)
    assert "still ran after the job and was killed" in errors and word in errors
    assert nothing_left(short_tmp, word)


def test_nothing_is_left_after_a_normal_end(short_tmp, start_lab):
    process = start_lab("mpich-5", "hostname")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and sorted(output.split()) == ["node0"] * 2 + ["node1"] * 2
    assert list(short_tmp.iterdir()) == []


def test_nothing_is_left_after_an_exception(lab):
    word = nap()
    with pytest.raises(ZeroDivisionError), Cluster(2) as one:
        one.popen(1, ["sleep", word])
        assert wait_until(lambda: processes_with(word))
        directory = one.directory
        raise ZeroDivisionError
    assert not processes_with(word) and not directory.exists()


def test_files_of_killed_labs_are_removed_and_those_of_living_ones_kept(lab, monkeypatch, short_tmp):
    monkeypatch.setattr("tempfile.tempdir", str(short_tmp))
    stale = short_tmp / "mpisec-lab-stale"
    stale.mkdir()
    (stale / "owner").write_text("")
    with Cluster(1) as living:
        assert not stale.exists()
        assert remove_stale() == [] and living.directory.exists()


# --- privileges ---


def unprivileged(*command):
    """The command without capabilities, in a user namespace that allows no further one."""
    drop = (
        'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    )
    return [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount-proc",
        "--pid",
        "--fork",
        "sh",
        "-c",
        drop,
        "sh",
        *command,
    ]


def test_refuses_politely_without_privileges(lab):
    done = subprocess.run(
        unprivileged(*lab_command("run", "--plain", "-n", "2", "hostname")),
        env=lab_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("mpisec lab: ") and "run it as root" in done.stderr
    assert "Traceback" not in done.stderr


_RATE_SET = """
from mpisec_lab.cluster import Cluster
with Cluster(2) as cluster:
    cluster.set_rate(1e8)
    print(cluster.execute(1, ["tc", "qdisc", "show", "dev", "eth0"]).check().stdout)
"""


_SAY_MPI = "from mpi4py import MPI; print(MPI.Get_library_version().split()[0], MPI.COMM_WORLD.size)"


@pytest.mark.parametrize(("mpi", "said"), [("mpich-5", "MPICH 2"), ("openmpi-5", "Open 2")])
def test_python_is_the_one_whose_mpi4py_fits(lab, mpi, said):
    """A bare python3 is the interpreter that was set up for the job's MPI; another MPI's is refused with both names."""
    other = MPIS["openmpi-5" if mpi == "mpich-5" else "mpich-5"]
    for python, status in (("python3", 0), (other.python, 1)):
        done = subprocess.run(lab_command("run", "--plain", "--mpi", mpi, python, "-c", _SAY_MPI.replace("[0]", "[0].rstrip(',')")),
                              env=lab_environment(), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == status, done.stderr
        if status == 0:
            assert said in done.stdout and f"whose mpi4py fits {MPIS[mpi].title}" in done.stderr
        else:
            assert other.title in done.stderr and MPIS[mpi].title in done.stderr and f"--mpi {other.name}" in done.stderr


def test_intels_own_programs_run(lab):
    """They look for their library where LD_LIBRARY_PATH says."""
    if not MPIS["impi"].available():
        pytest.skip("Intel MPI is not here")
    done = subprocess.run(lab_command("run", "--plain", "--mpi", "impi", MPIS["impi"].venv / "bin/IMB-MPI1", "-msglog", "4:5", "PingPong"),
                          env=lab_environment(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and "#bytes" in done.stdout, done.stdout + done.stderr


def test_a_reader_who_has_read_enough(tmp_path):
    """`mpisec lab list | head -1`: the listing ends without a traceback."""
    done = subprocess.run(f"{shlex.join(map(str, lab_command('list')))} | true", shell=True, env=lab_environment(), capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (lab_command("run", "--plain", "-n", "4", "--mpi", "mpich-5", "hostname"), "(?s)(?=(.*node0){2})(.*node1){2}"),
        (["python3", "-c", _RATE_SET], "qdisc tbf .* rate 100Mbit .*\n"),
    ],
)
def test_works_in_a_user_namespace(short_tmp, command, said):
    """An ordinary user's lab, where the kernel allows user namespaces: no capability outside its own, and no
    administrator's programs on the path."""
    if os.geteuid() != 0:
        pytest.skip("every other test here runs in a user namespace already")
    if not all(directory.stat().st_mode & 0o001 for directory in Path(__file__).resolve().parents):
        pytest.skip("another user cannot read this tree, which is in a directory that is closed to others")
    os.chown(short_tmp, 65534, 65534)
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    variables = {"TMPDIR": str(short_tmp), "HOME": str(short_tmp), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*drop, "/usr/bin/python3", *command[1:]],
        env=lab_environment(**variables, PATH="/usr/local/bin:/usr/bin:/bin"),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert re.search(said, done.stdout), done.stdout + done.stderr
    assert list(short_tmp.iterdir()) == []


@pytest.mark.parametrize("there", [(), ("mpichversion",), ("mpiexec", "mpichversion"), ("mpiexec", "ompi_info")])
def test_an_mpi_that_pip_has_installed_beside_the_lab(tmp_path, monkeypatch, there):
    """Is found where `mpisec lab setup` has installed none."""
    monkeypatch.setenv("MPISEC_LAB_MPIS", str(tmp_path / "mpis"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    (tmp_path / "environment/bin").mkdir(parents=True)
    for name in there:
        (tmp_path / "environment/bin" / name).touch()
    found = {name: mpi.venv.parent == tmp_path for name, mpi in mpis._table().items()}
    assert found["mpich-5"] == found["mpich-5-abi"] == ("mpiexec" in there and "mpichversion" in there)
    assert found["openmpi-5"] == ("ompi_info" in there) and not found["impi"] and not found["mpich-4"]
    (tmp_path / "mpis/mpich-5").mkdir(parents=True)
    assert mpis._table()["mpich-5"].venv == tmp_path / "mpis/mpich-5"
