"""An adversary below the MPI library (below.py): what each rank gets is what it gets without MPIsec and attacker, or the job ends.

A sample of the systematic run, drawn with a fixed seed: some attacks of each family. And the oracle itself: it sees plaintext and changed
results where there are some."""

import random
import shutil
import sys
from pathlib import Path

import pytest

from mpisec_lab import places

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from below import AS_PLAIN, CLEAR, DIFFERENT, MISSED, Jobs, judge, lies, plan, program_of  # noqa: E402

pytestmark = pytest.mark.slow  # minutes: a job of its own for each attack
SEED = 20261123
EACH = 1  # attacks of each other family
LIES = 6  # of those that once worked
MPIS = ["mpich-5", "openmpi-5"]


@pytest.fixture(scope="module")
def jobs(cluster, compile_mpi):
    """jobs(mpi, ranks, connections): a Jobs on the session's cluster."""

    def jobs_(mpi, ranks, connections="plain"):
        compile_mpi(HERE / "victim.c", mpi, flags=["-std=gnu11", "-ldl"])  # skips where the MPI is missing
        return Jobs(mpi, ranks, places.find_mpisec(), {"MPISEC_CONNECTIONS": connections}, cluster(2))

    return jobs_


def check(tried):
    """No attack changed a result or showed plaintext; most were carried out."""
    broken = [said for said in tried if said["outcome"] in (DIFFERENT, CLEAR)]
    assert not broken, "\n".join(str(said) for said in broken)
    reached = [said for said in tried if said["outcome"] != MISSED]
    assert len(reached) >= len(tried) / 2, [said["attack"] for said in tried]


@pytest.mark.parametrize("mpi", MPIS)
def test_the_oracle_sees_what_plain_mpi_suffers(jobs, mpi):
    """Without MPIsec the marker is found on the wire, and a changed bit of a message changes what some rank got."""
    job = jobs(mpi, 2)
    expected = job.plain(["small"])
    frames = job.record(["small"], plain=True)
    result, directory = job.run(only=["small"], plain=True)
    clear = [line for file in directory.glob("clear-*") for line in file.read_text().splitlines()]
    shutil.rmtree(directory)
    assert clear and judge(result, expected, 2, clear)[0] == CLEAR
    assert judge(result, expected, 2, [])[0] == AS_PLAIN, "a job under a relay that changes nothing is as without"
    outcomes = []
    for frame in frames:  # control messages in between may move the numbers
        if frame.section == 1 and frame.length - frame.header == 1000:
            result, directory = job.run(f"{frame.sender}>{frame.receiver}#{frame.number} flip:payload:4000", ["small"], plain=True)
            shutil.rmtree(directory)
            outcomes.append(judge(result, expected, 2, [])[0])
    assert DIFFERENT in outcomes, outcomes


@pytest.mark.parametrize("mpi,connections", [("mpich-5", "plain"), ("openmpi-5", "plain"), ("mpich-5", "authenticate"), ("openmpi-5", "auto")])
def test_sample(jobs, mpi, connections):
    """S1, S2, S3: an attack of each family, on messages of every sort; or on the records that MPIsec makes of them."""
    job = jobs(mpi, 4, connections)
    attacks, _ = plan(job, SEED)
    random.Random(SEED).shuffle(attacks)
    families = {}
    for attack in attacks:
        families.setdefault(attack.family, []).append(attack)
    expected = job.plain()
    check([job.attack(attack, expected) for family in sorted(families) for attack in families[family][:EACH]])


@pytest.mark.parametrize("mpi,section", [("mpich-5", "cart"), ("mpich-5", "inter"), ("mpich-5", "session"), ("openmpi-5", "cart"), ("openmpi-5", "inter")])
def test_nobody_believes_what_the_library_was_told(jobs, mpi, section):
    """S1, S2: both sides are told the same untruth about what the MPI library exchanges to make a communicator."""
    job = jobs(mpi, 2)
    told = [attack for attack in lies(job, [section], [(1000, -1)]) if attack.what in ("4 bytes", "8 bytes")]
    random.Random(SEED).shuffle(told)
    told.sort(key=lambda attack: "mirror" not in attack.text)  # stable
    expected = job.plain(program_of(section))
    check([job.attack(attack, expected) for attack in told[:LIES]])


@pytest.mark.parametrize("mpi", MPIS)
def test_nobody_of_the_node_can_be_impersonated(jobs, mpi):
    """S2: a message whose header names a rank of the receiver's node as its source, while the receiver waits for one."""
    job = jobs(mpi, 4)
    attacks, _ = plan(job, SEED)
    expected = job.plain()
    check([job.attack(attack, expected) for attack in attacks if attack.family == "forged for its node"][:LIES])
