"""What ``slurm.conf`` of a cluster for tests says, and why."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"
"""No cgroups are used, but slurmd looks for those of a kind that it is not told."""


@dataclass(frozen=True)
class Settings:
    """What differs between clusters.

    Attributes:
        cpus: that the node claims to have, whatever it has, so that this many jobs run at once.
        memory_mb: that the node claims to have.
        requeue_wait_s: how long a job that was requeued waits at least; 120 in most clusters,
            and Slurm takes no less than 5.
        node_timeout_s: how long a node may be silent before it is down; 300 in most clusters.
        grace_s: between the signal that tells a job of its preemption and the one that kills it.
        user_signal: whether that first signal is the one of ``sbatch --signal``, for jobs with
            one, instead of SIGTERM.
        node: name of the node.
    """

    cpus: int = 4
    memory_mb: int = 4096
    requeue_wait_s: int = 5
    node_timeout_s: int = 6
    grace_s: int = 5
    user_signal: bool = True
    node: str = "vcr"


def slurm_conf(settings: Settings, folder: Path, ports: Sequence[int]) -> str:
    """Return the text of ``slurm.conf``.

    Args:
        settings: what differs between clusters.
        folder: where the daemons write, with ``state`` and ``spool`` in it.
        ports: one for the controller and one for the node.
    """
    user = getpass.getuser()
    host = socket.gethostname().partition(".")[0]
    controller_port, node_port = ports
    preemption = "SlurmctldParameters=preempt_send_user_signal\n" if settings.user_signal else ""
    return f"""\
ClusterName=vcr
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}

# The time after which a credential expires is also how long a requeued job waits.
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={settings.requeue_wait_s}

StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldDebug=info
SlurmdDebug=info

# A container may allow none of what is usual here.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
MpiDefault=none

# Everything soon, because somebody waits for it.
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
SlurmctldTimeout=5
SlurmdTimeout={settings.node_timeout_s}
MessageTimeout=5
BatchStartTimeout=10
KillWait=2
InactiveLimit=0
OverTimeLimit=0
# Long enough that no test asks for a job that was forgotten.
MinJobAge=300
CompleteWait=0

ReturnToService=2
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
{preemption}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU={settings.memory_mb // settings.cpus}
# The node has as many processors as it says.
SlurmdParameters=config_overrides
NodeName={settings.node} NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} \
CPUs={settings.cpus} RealMemory={settings.memory_mb} State=UNKNOWN
PartitionName=DEFAULT Nodes={settings.node} MaxTime=INFINITE DefaultTime=60 State=UP
PartitionName=main Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime={settings.grace_s}
PartitionName=urgent PriorityTier=10 PreemptMode=OFF
"""
