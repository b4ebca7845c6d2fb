"""The image of deploy/container: two containers of it on the lab's network are two nodes, and a job across them is sealed. Needs podman and
debootstrap, which the test does not install."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from bare_environment import ask, bare

from mpisec_lab.capture import count

TOP = Path(__file__).resolve().parents[3]
MARKER = "CONTAINER-MARKER-91c3"
IMAGE = "localhost/mpisec-job:mpich"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


class Podman:
    """podman with a storage of its own, in a mount namespace of its own: it does not get on with a second hierarchy of control groups."""

    LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000")  # no more than this machine has

    def __init__(self, directory):
        self.directory = directory
        hold = "umount /sys/fs/cgroup/unified 2>/dev/null; echo ready; exec sleep infinity"
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", hold], stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.inside = ["nsenter", "--mount", "-t", str(self.holder.pid)]
        self.options = ["--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "--root", directory / "store", "--runroot", directory / "run"]

    def __call__(self, *words, **options):
        return ask([*self.inside, "podman", *self.options, *words], env=bare(), **options)

    def close(self):
        self("rm", "--all", "--force", "--time", "0")
        self.holder.kill()
        self.holder.wait()
        shutil.rmtree(self.directory)  # gigabytes


@pytest.fixture(scope="session")
def programs():
    """Of the session, as the wheel is: no wheel is made where these are missing."""
    for program in ("podman", "debootstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: apt-get install podman crun debootstrap")


@pytest.fixture(scope="module")
def podman(lab, programs, tmp_path_factory):
    one = Podman(tmp_path_factory.mktemp("podman"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def image(programs, podman, wheel, tmp_path_factory):
    """The image, on a Debian that debootstrap makes."""
    root, context = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("context")
    ask(["debootstrap", "--variant=minbase", "bookworm", root], env=bare())
    root.chmod(0o755)  # it becomes the container's
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as packed:
        podman("import", "-", "localhost/debian:12", stdin=packed.stdout)
    shutil.rmtree(root)
    shutil.copy(wheel, context)
    podman("build", "--network", "host", *podman.LIMITS, "--build-arg", "BASE=localhost/debian:12", "-f", TOP / "deploy/container/Containerfile",
           "-t", IMAGE, context)
    return IMAGE


def owned(path, mode):
    """Gives it to the image's user."""
    os.chown(path, 1000, 1000)
    path.chmod(mode)


@pytest.fixture
def secrets(image, podman, tmp_path):
    """The directory of the job's ssh keys, and that of MPIsec's key, as an operator mounts them."""
    ssh, key = tmp_path / "ssh", tmp_path / "key"
    for directory in (ssh, key):
        directory.mkdir()
    make = "ssh-keygen -q -t rsa -N '' -f /ssh/id_rsa && cp /ssh/id_rsa.pub /ssh/authorized_keys && mpisec key new /key/key"
    podman("run", "--rm", "--user", "root", *podman.LIMITS, "-v", f"{ssh}:/ssh", "-v", f"{key}:/key", image, "sh", "-c", make)
    for path in (*ssh.iterdir(), key / "key"):
        owned(path, 0o600)
    for directory in (ssh, key):
        owned(directory, 0o700)
    return ssh, key


@pytest.fixture
def containers(image, podman, secrets, cluster, compile_mpi, tmp_path):
    """(the cluster, names of a container on each of its two nodes), which run an sshd as the image's user, without capabilities."""
    one, (ssh, key) = cluster(2), secrets
    app = compile_mpi(TOP / "tests/integration/lab/marker.c", "mpich-4")
    shutil.copy(app, tmp_path / "marker")
    hosts = [word for name, address in zip(one.names, one.addresses, strict=True) for word in ("--add-host", f"{name}:{address}")]
    holders = [one.popen(node, ["sleep", "infinity"]) for node in range(2)]
    for name, holder in zip(one.names, holders, strict=True):
        network = f"ns:/proc/{namespace_of(holder.pid)}/ns/net"
        podman("run", "--detach", "--name", name, "--hostname", name, "--network", network, *hosts, *podman.LIMITS, "--cap-drop", "all",
               "--security-opt", "no-new-privileges", "-v", f"{ssh}:/home/mpiuser/.ssh", "-v", f"{key}:/home/mpiuser/.config/mpisec",
               "-v", f"{tmp_path}/marker:/usr/local/bin/marker:ro", image, "/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config")
    yield one
    podman("rm", "--all", "--force", "--time", "0")
    one.sweep()


def namespace_of(launcher):
    """The process in the node, below what popen() has started."""
    pid = launcher
    for _ in range(200):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children:
            if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                return pid
        else:
            pid = children[0]
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("nothing runs on the node")


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "sealed"])
def test_a_job_across_two_containers(containers, podman, tmp_path, plain):
    """S1: what the plain job shows on the wire, the sealed one does not."""
    repeats = 20_000
    words = ["marker", MARKER, str(repeats)] if plain else ["mpisec", "exec", "marker", MARKER, str(repeats)]
    with containers.capture(tmp_path / "pcap") as wire:
        said = podman("exec", containers.names[0], "mpiexec", "-launcher", "ssh", "-hosts", ",".join(containers.names), "-ppn", "1", "-n", "2",
                      *words, timeout=120)
    assert re.search(rf"right {repeats} of {repeats}", said)
    seen = count(wire.streams(), MARKER.encode())
    assert seen > repeats * 0.9 if plain else seen <= 10, "only the launcher's command line may hold it"
