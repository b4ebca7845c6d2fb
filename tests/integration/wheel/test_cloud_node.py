"""deploy/cloud: an empty machine becomes a node with MPIsec and the site's key, from which a job's key is derived (docs/cloud.md). Needs
debootstrap, and networks for Debian's packages and PyPI."""

import shutil
from pathlib import Path

import pytest
import yaml
from bare_system import BareSystem

from mpisec_lab.capture import count, read_streams

CLOUD = Path(__file__).resolve().parents[3] / "deploy/cloud"
MARKER = "CLOUD-MARKER-7d20"
SITE_KEY = "/root/secret-store"  # what the provider would keep
JOB_KEY = "/run/mpisec/7/key"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def system(request, lab, wheel, tmp_path_factory):
    """An empty Debian with the files that a machine would fetch."""
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed: apt-get install debootstrap")
    one = BareSystem(tmp_path_factory.mktemp("system") / "root", request.param, ["python3-venv", "iproute2", "procps", "tcpdump"])
    for file in (CLOUD / "node.sh", CLOUD / "cloud-init.yaml", wheel, Path(__file__).with_name("marker.py")):
        one.copy(file)
    yield one
    one.remove()


@pytest.fixture
def secret(system, tmp_path):
    """secret(line): a command whose one line of sh prints what a store would."""

    def make(line):
        (tmp_path / "a-secret").write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "a-secret").chmod(0o755)
        return Path(system.copy(tmp_path / "a-secret", "usr/local/bin")).name

    return make


def node(wheel, *command):
    return " ".join(["sh /root/node.sh", f"/root/{wheel.name}", *command])


def test_cloud_init_knows_the_user_data(system):
    system("apt-get update && apt-get install -y --no-install-recommends cloud-init")
    said = system("cloud-init schema --config-file /root/cloud-init.yaml 2>&1")
    assert "valid" in said.lower() and "invalid" not in said.lower(), said


def test_the_commands_of_the_user_data(system, wheel, secret):
    """With the provider's part played by files: curl fetches what the test put there, fetch-secret prints a file."""
    data = yaml.safe_load((CLOUD / "cloud-init.yaml").read_text())
    (fetch, install) = data["runcmd"]
    assert fetch[0] == "curl" and install[0] == "sh" and fetch[fetch.index("--output") + 1] == install[1] == "/root/node.sh"
    ours = {"fetch-secret": secret(f"test $1 = mpisec-site-key && cat {SITE_KEY}")}
    words = [f"/root/{wheel.name}" if word.startswith("https:") else ours.get(word, word) for word in install]
    system(node(wheel))
    system(f"rm -f {SITE_KEY} && mpisec key new {SITE_KEY}")
    system(" ".join(words))
    mode = (system.root / "etc/mpisec/site.key").stat()
    assert (mode.st_mode & 0o777, mode.st_uid) == (0o600, 0)
    assert system("MPISEC_KEY_FILE=/etc/mpisec/site.key mpisec key show") != ""


def test_a_job_with_a_key_derived_from_the_sites(system, wheel):
    """S1. The job's key is made on each node, as Slurm's prologue does."""
    system(node(wheel) + " && /opt/mpisec/bin/pip install --quiet --no-cache-dir mpich mpi4py")
    system(f"rm -f {SITE_KEY} && mpisec key new {SITE_KEY}")
    system(node(wheel, "cat", SITE_KEY))
    derive = f"mkdir -p /run/mpisec/7 && mpisec key derive --from /etc/mpisec/site.key --label job-7 {JOB_KEY}"
    job = f"MPISEC_KEY_FILE={JOB_KEY} mpisec lab run --nodes 2 -n 4 --capture /root/pcap --timeout 120 python3 /root/marker.py {MARKER[::-1]} 500"
    said = system(f"cd /root && {derive} && . /opt/mpisec/bin/activate && {job}")
    assert "right 1000 of 1000, sum of ranks 6" in said, said
    streams = list(read_streams(system.root / "root/pcap"))
    assert streams and count(streams, MARKER.encode()) == 0


def test_a_wheel_in_a_bucket(system, wheel, tmp_path):
    """With a stand-in for `aws`; nothing stays of what was fetched."""
    (tmp_path / "aws").write_text('#!/bin/sh\ntest "$1 $2 $3" = "s3 cp --only-show-errors" && cp "/root/${4##*/}" "$5"\n')
    (tmp_path / "aws").chmod(0o755)
    system.copy(tmp_path / "aws", "usr/local/bin")
    before = set((system.root / "tmp").iterdir())
    system(f"rm -rf /opt/mpisec && sh /root/node.sh s3://my-files/{wheel.name} && mpisec --version")
    assert set((system.root / "tmp").iterdir()) == before


@pytest.mark.parametrize("line, words", [("echo no such secret >&2; false", "no such secret"), ("echo", "key"), ("echo mpisec-key-1 00 00", "key")])
def test_a_key_that_cannot_be_had_is_an_error(system, wheel, secret, line, words):
    """The key of before stays."""
    system(node(wheel))
    system(f"rm -f {SITE_KEY} && mpisec key new {SITE_KEY}")
    system(node(wheel, "cat", SITE_KEY))
    before = (system.root / "etc/mpisec/site.key").read_bytes()
    said = system(f"! PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin {node(wheel, secret(line))} 2>&1")
    assert words in said, said
    assert (system.root / "etc/mpisec/site.key").read_bytes() == before
    assert [file.name for file in (system.root / "etc/mpisec").iterdir()] == ["site.key"]


@pytest.mark.parametrize("line", [f'printf %s "$(cat {SITE_KEY})"', f"cat {SITE_KEY}; echo"])
def test_a_store_that_adds_or_removes_the_end_of_a_line(system, wheel, secret, line):
    system(node(wheel))
    system(f"rm -f {SITE_KEY} && mpisec key new {SITE_KEY}")
    system(node(wheel, secret(line)))
    fingerprints = {system(f"MPISEC_KEY_FILE={file} mpisec key show").split()[-1] for file in (SITE_KEY, "/etc/mpisec/site.key")}
    assert len(fingerprints) == 1, fingerprints
