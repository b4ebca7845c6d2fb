"""What Slurm's configuration files say on the lab's nodes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpisec_lab.namespace_init import address

# Every %n is a node's name. TmpFS is where the PMIx plug-in makes its directory, whose name does not tell nodes apart.
_SLURM_CONF = """\
ClusterName=lab
SlurmctldHost={head}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
ReturnToService=2
PropagateResourceLimits=NONE
SlurmdParameters=config_overrides
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd-%n.log
TmpFS={base}/%n.tmp
SwitchType=switch/none
LaunchParameters=disable_send_gids
KillWait=2
CompleteWait=0
InactiveLimit=0
TaskProlog={directory}/task-prolog
{more}NodeName={nodes} CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 State=UNKNOWN
PartitionName=open Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=sealed Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO
"""

# What is set where a job was submitted goes with it to every node, and TMPDIR is a directory of the head's.
_TASK_PROLOG = "#!/bin/sh\necho export TMPDIR={base}/$SLURMD_NODENAME.tmp\n"

# The variables of a job's steps need not be signed by PMIx with munge's socket, which its plug-in looks for elsewhere.
_MPI_CONF = 'PMIxEnv="PMIX_MCA_psec=native"\n'

# slurmd would look for mounted control groups else, which a node of the lab has not. Nothing here uses any.
_CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"


def cpus_per_node() -> int:
    """What Slurm is told that a node has: this machine's CPUs, which all nodes share, but at least two, to place several tasks."""
    return max(2, len(os.sched_getaffinity(0)))


def write(base: Path, names: Sequence[str], settings: Mapping[str, str], plugstack: str) -> Path:
    """Writes slurm.conf, mpi.conf, plugstack.conf and the task prologue into `base`/slurm/etc, and returns that. `names`: of the nodes, the head's last.
    `settings`: more of slurm.conf."""
    directory = base / "slurm"
    configuration = directory / "etc"
    configuration.mkdir(parents=True)
    (directory / "state").mkdir()
    *nodes, head = names
    text = _SLURM_CONF.format(
        head=head,
        address=address(len(nodes)),
        directory=directory,
        base=base,
        nodes=",".join(nodes),
        cpus=cpus_per_node(),
        more="".join(f"{name}={value}\n" for name, value in settings.items()),
    )
    (configuration / "slurm.conf").write_text(text)
    (configuration / "cgroup.conf").write_text(_CGROUP_CONF)
    (configuration / "mpi.conf").write_text(_MPI_CONF)
    (configuration / "plugstack.conf").write_text(plugstack)
    prolog = directory / "task-prolog"
    prolog.write_text(_TASK_PROLOG.format(base=base))
    prolog.chmod(0o755)
    return configuration
