"""How the key gets to the nodes of a job: what of it is on the wire, and that the job then runs sealed."""

import re
import stat
from pathlib import Path

from slurm_jobs import script

from mpisec_lab.capture import count

JOB = "right 100 of 100, ranks 2, nodes 2"
PAGE = Path(__file__).resolve().parents[3] / "docs/slurm.md"
WORDS = {"key": "~/.config/mpisec/key", "app": "./app", "site": "/etc/mpisec/site.key", "derive": "mpisec key derive"}  # what stands for what there
PLACE = "/dev/shm/mpisec-key"  # each node's own memory


def run(cluster, tmp_path, *lines, env=None):
    """(Result, streams) of a batch script on two nodes whose output is in tmp_path/out."""
    batch = script(tmp_path / "job.sh", "#SBATCH -N2 -n2", f"#SBATCH -o {tmp_path}/out", "set -e", *lines)
    with cluster.capture(tmp_path / "wire.pcap") as capture:
        ran = cluster.submit(["sbatch", "--wait", batch], env=env, timeout=90)
    return ran, capture.streams()


def secret_of(path):
    """What a key file must not show."""
    return path.read_text().split()[1].encode()


def test_sbcast_shows_the_key_to_the_network(slurm, ring, marker, mpisec, tmp_path):
    """Slurm sends files as they are: why docs/slurm.md tells to wrap the key with munge first."""
    cluster = slurm()
    ran, streams = run(cluster, tmp_path, f"sbcast {cluster.key()} {PLACE}", f"export MPISEC_KEY_FILE={PLACE}",
                       f"srun --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} 50", f"srun rm {PLACE}")
    assert ran.returncode == 0 and JOB in (tmp_path / "out").read_text(), (tmp_path / "out").read_text()
    assert count(streams, secret_of(cluster.key())) > 0


def written_on_the_page(containing, **instead):
    """The script of docs/slurm.md in which these words are, as a user copies it, with other paths."""
    (found,) = (block for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if containing in block)
    for word, other in instead.items():
        assert WORDS[word] in found, word
        found = found.replace(WORDS[word], str(other))
    return found


def test_sbcast_of_a_key_wrapped_by_munge(slurm, ring, marker, mpisec, tmp_path):
    """The page's own script; no copy of the key stays on the nodes."""
    cluster = slurm()
    batch = tmp_path / "job.sh"
    batch.write_text(written_on_the_page("munge --input", key=cluster.key(), app=f"{ring('mpich-5')} {marker} 50"))
    with cluster.capture(tmp_path / "wire.pcap") as capture:
        ran = cluster.submit(["sbatch", "--wait", f"--chdir={tmp_path}", f"--output={tmp_path}/out", batch], timeout=90)
    text, streams = (tmp_path / "out").read_text(), capture.streams()
    assert ran.returncode == 0 and "right 200 of 200, ranks 4, nodes 2" in text, text
    assert count(streams, secret_of(cluster.key())) == 0
    assert count(streams, bytes(byte + 1 for byte in marker.encode())) == 0
    for node in range(2):
        assert "mpisec-key" not in cluster.execute(node, ["ls", "-A", "/dev/shm"], sweep=False).stdout


def test_sbcast_into_what_another_user_has_put_there(slurm, ring, marker, mpisec, tmp_path):
    """unmunge would write the key into a file that everybody can read."""
    cluster = slurm()
    batch = tmp_path / "job.sh"
    batch.write_text(written_on_the_page("munge --input", key=cluster.key(), app=f"{ring('mpich-5')} {marker} 50"))
    for job in range(1, 4):
        plant = f"mkdir -m 777 /dev/shm/mpisec-key-{job}; : >/dev/shm/mpisec-key-{job}/key; chmod 666 /dev/shm/mpisec-key-{job}/key"
        assert cluster.execute(0, ["sh", "-c", plant], sweep=False).returncode == 0
    ran = cluster.submit(["sbatch", "--wait", f"--chdir={tmp_path}", f"--output={tmp_path}/out", batch], timeout=90)
    text = (tmp_path / "out").read_text()
    assert ran.returncode != 0 and "File exists" in text and "right 200" not in text, text
    cluster.execute(0, ["sh", "-c", "rm -rf /dev/shm/mpisec-key-*"], sweep=False)


def test_prologue_derives_a_key_for_each_job(lab, slurm, ring, marker, mpisec, tmp_path):
    """Nothing is sent: every node derives the job's key from the site's, for the job's user, and removes it afterwards."""
    site = tmp_path / "site.key"
    prologue, epilogue = tmp_path / "prologue", tmp_path / "epilogue"
    prologue.write_text(written_on_the_page("mpisec key derive", site=site, derive=f"{mpisec} key derive"))
    epilogue.write_text(written_on_the_page("# Epilog="))
    for hook in (prologue, epilogue):
        hook.chmod(0o755)
    cluster = slurm(2, Prolog=str(prologue), Epilog=str(epilogue))
    made = cluster.submit([mpisec, "key", "new", site]).check()
    assert made.returncode == 0 and stat.S_IMODE(site.stat().st_mode) == 0o600
    ran, streams = run(cluster, tmp_path, "export MPISEC_KEY_FILE=/run/mpisec/$SLURM_JOB_ID/key", f"srun {mpisec} key show",
                       f"srun --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} 50")
    text = (tmp_path / "out").read_text()
    assert ran.returncode == 0 and JOB in text, text + cluster.logs()
    fingerprints = [line for line in text.splitlines() if line.startswith("fingerprint")]
    assert len(fingerprints) == 2 and len(set(fingerprints)) == 1, "the same on both nodes"
    assert count(streams, secret_of(site)) == 0 and count(streams, bytes(byte + 1 for byte in marker.encode())) == 0
    for node in range(2):
        assert cluster.execute(node, ["ls", "-A", "/run/mpisec"], sweep=False).stdout == ""
