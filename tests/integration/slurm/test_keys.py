"""How the key gets to the nodes of a job: what of it is on the wire, and that the job then runs sealed."""

import stat

from slurm_jobs import script

from mpisec_lab.capture import count

JOB = "right 100 of 100, ranks 2, nodes 2"
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


def test_sbcast_of_a_key_wrapped_by_munge(slurm, ring, marker, mpisec, tmp_path):
    cluster = slurm()
    ran, streams = run(cluster, tmp_path, "umask 077", f"munge -i {cluster.key()} -o {tmp_path}/wrapped -u root", f"sbcast {tmp_path}/wrapped {PLACE}.wrapped",
                       f"srun unmunge -i {PLACE}.wrapped -m /dev/null -o {PLACE}", f"export MPISEC_KEY_FILE={PLACE}",
                       f"srun {mpisec} key check", f"srun --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} 50", f"srun rm {PLACE} {PLACE}.wrapped")
    text = (tmp_path / "out").read_text()
    assert ran.returncode == 0 and JOB in text, text
    assert text.count(f"{PLACE} is usable") == 2
    assert count(streams, secret_of(cluster.key())) == 0
    assert count(streams, bytes(byte + 1 for byte in marker.encode())) == 0


def test_prologue_derives_a_key_for_each_job(lab, slurm, ring, marker, mpisec, tmp_path):
    """Nothing is sent: every node derives the job's key from the site's, for the job's user, and removes it afterwards."""
    site = tmp_path / "site.key"
    prologue, epilogue = tmp_path / "prologue", tmp_path / "epilogue"
    script(prologue, "umask 077", "mkdir -p /run/mpisec/$SLURM_JOB_ID || exit 1",
           f'{mpisec} key derive --from {site} --label "job $SLURM_JOB_ID of user $SLURM_JOB_UID" /run/mpisec/$SLURM_JOB_ID/key >&2 || exit 1',
           "chmod 711 /run/mpisec; chown -R $SLURM_JOB_UID /run/mpisec/$SLURM_JOB_ID").chmod(0o755)
    script(epilogue, "rm -rf /run/mpisec/$SLURM_JOB_ID").chmod(0o755)
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
