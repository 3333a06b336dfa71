"""A Slurm cluster of one node on this machine, which a test starts, hurts and stops.

The daemons are Debian's (``slurm-wlm`` and ``munge``). All that they write is in one temporary
folder, they listen on ports that were free, and they share nothing with a Slurm or a munge that
the machine may have. Neither systemd nor cgroups nor accounting are needed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from vcr_cluster.configuration import CGROUP_CONF, Settings, slurm_conf
from vcr_cluster.machine import PROGRAMS, free_ports, processes_with, program_of

Found = TypeVar("Found")

PATIENCE_S = 60.0
POLL_S = 0.05
STEP = "slurmstepd"
UP = frozenset({"IDLE", "MIXED", "ALLOCATED"})
AWAY = frozenset({"DOWN", "DRAIN", "NOT_RESPONDING", "INVALID_REG"})
ENDED = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
    | {"PREEMPTED", "TIMEOUT"}
)
"""States that a job does not leave, unless it is requeued."""


class ClusterError(RuntimeError):
    """A daemon or a command did not do what was asked; the message has the ends of the logs."""


@dataclass(frozen=True)
class Job:
    """A job, or one element of an array, as ``squeue`` prints it.

    Attributes:
        id: number, or ``NUMBER_INDEX`` of an element of an array.
        state: long form, such as ``RUNNING``.
        name: of ``--job-name``.
        partition: ``main`` or ``urgent``, unless settings say otherwise.
        reason: why it waits, or how it ended; ``None`` as Slurm writes it.
    """

    id: str
    state: str
    name: str
    partition: str
    reason: str

    @property
    def over(self) -> bool:
        return self.state in ENDED


class SlurmCluster:
    """Controller, node and their munge, as processes of this one.

    Attributes:
        folder: configuration, state, spool and logs; removed by `stop`.
        environment: what a client needs in ``os.environ``; it is the same for the whole life.
        settings: what ``slurm.conf`` was made from.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        # Short, because the path of a socket has at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="vcr-slurm-"))
        self.conf = self.folder / "slurm.conf"
        self.environment = {"SLURM_CONF": str(self.conf)}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything, and return when the node takes jobs.

        Raises:
            ClusterError: if that does not happen.
        """
        try:
            self._write_configuration()
            self._start_munge()
            self.start_controller()
            self.start_node()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End jobs and daemons and remove the folder; a second call does nothing."""
        for name in ("slurmctld", "slurmd"):
            self._end(name, signal.SIGTERM)
        self._kill_steps()
        self._end("munged", signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_controller(self) -> None:
        """Start ``slurmctld``, and return when it answers."""
        self._launch("slurmctld", "slurmctld", "-D", "-f", str(self.conf))
        self.wait_until(self._answers, "slurmctld answers")

    def stop_controller(self) -> None:
        """End ``slurmctld`` as for maintenance: it remembers every job when it starts again."""
        self._end("slurmctld", signal.SIGTERM)

    def kill_controller(self) -> None:
        """Kill ``slurmctld`` with SIGKILL.

        It writes its state every five seconds: jobs younger than that are unknown afterwards,
        while their processes run on.
        """
        self._end("slurmctld", signal.SIGKILL)

    def start_node(self) -> None:
        """Start ``slurmd``, and return when the controller sends jobs to it."""
        # Whole seconds, as the controller has them.
        since = datetime.now().replace(microsecond=0)  # noqa: DTZ005 - Slurm writes local time
        self._launch("slurmd", "slurmd", "-D", "-f", str(self.conf), "-N", self.settings.node)
        self.wait_until(lambda: self._node_is_up(since), "the node is up")

    def kill_node(self, *, steps: bool = False) -> None:
        """Kill ``slurmd`` with SIGKILL, as if the machine had lost its network.

        Args:
            steps: kill what supervises the jobs and the jobs, too, as if it had lost its power.
        """
        self._end("slurmd", signal.SIGKILL)
        if steps:
            self._kill_steps()

    def set_node_state(self, state: str, reason: str = "a test") -> None:
        """Set the state of the node: ``down``, ``drain``, ``resume``, …

        With ``down``, Slurm requeues the jobs of the node at once, as it does when the node was
        silent for too long.
        """
        node = f"nodename={self.settings.node}"
        self.run("scontrol", "update", node, f"state={state}", f"reason={reason}")

    def node_state(self) -> str:
        """Return state and flags of the node: ``IDLE``, ``MIXED``, ``DOWN+NOT_RESPONDING``, …"""
        return self._node()["State"]

    def step_processes(self) -> list[int]:
        """Return the processes of jobs on this node, and before them what supervises them."""
        ours = processes_with(f"SLURM_CONF={self.conf}")
        supervisors = [pid for pid in ours if program_of(pid) == STEP]
        jobs = [pid for pid, has in ours.items() if "SLURM_JOB_ID" in has]
        return [*supervisors, *(pid for pid in jobs if pid not in supervisors)]

    # -- jobs ------------------------------------------------------------------------------------

    def run(self, *command: str) -> str:
        """Run a client of this cluster and return what it printed.

        Raises:
            ClusterError: if it fails.
        """
        done = self._client(*command)
        if done.returncode:
            raise self._error(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def submit(self, script: str, *options: str) -> str:
        """Submit a shell script with options of ``sbatch``, and return the number of the job."""
        file = self.folder / f"job-{secrets.token_hex(4)}.sh"
        file.write_text(f"#!/bin/sh\n{script}\n")
        return self.run("sbatch", "--parsable", *options, str(file)).strip().partition(";")[0]

    def jobs(self) -> list[Job]:
        """Return all jobs that the controller remembers, elements of arrays one by one."""
        printed = self.run(
            "squeue", "--noheader", "--all", "-r", "-t", "all", "-o", "%i|%T|%j|%P|%r"
        )
        return [Job(*line.split("|", 4)) for line in printed.splitlines()]

    def job(self, id_: str) -> dict[str, str]:
        """Return what ``scontrol show job`` says of one: ``JobState``, ``Restarts``, …"""
        return fields(self.run("scontrol", "show", "job", id_, "--oneliner"))

    def wait_state(self, id_: str, *states: str, timeout: float = PATIENCE_S) -> dict[str, str]:
        """Wait until a job is in one of some states, and return what `job` says then."""

        def there() -> dict[str, str]:
            found = self.job(id_)
            return found if found["JobState"] in states else {}

        return self.wait_until(there, f"job {id_} is {' or '.join(states)}", timeout)

    def wait_idle(self, timeout: float = PATIENCE_S) -> None:
        """Wait until every job is over."""
        self.wait_until(lambda: all(j.over for j in self.jobs()), "every job is over", timeout)

    def preempt(self, seconds: float = 0) -> str:
        """Submit an urgent job that needs the whole node, and so pushes out all others.

        Args:
            seconds: how long it stays there.

        Returns:
            its number.
        """
        options = ("--partition", "urgent", "--job-name", "urgent", "--output", "/dev/null")
        return self.submit(f"sleep {seconds}", *options, "--ntasks", str(self.settings.cpus))

    def reset(self) -> None:
        """Make it as after `start`: daemons that died are started, jobs are cancelled."""
        if not self._lives("slurmctld"):
            self.start_controller()
        for job in self.jobs():
            if not job.over:
                # It may end by itself meanwhile, and then it cannot be cancelled.
                self._client("scancel", job.id)
        self._kill_steps()
        if not self._lives("slurmd"):
            self.start_node()
        if AWAY & set(self.node_state().split("+")):
            self.set_node_state("resume")
        self.wait_idle()
        self.wait_until(lambda: self.node_state() == "IDLE", "the node is idle")

    def wait_until(
        self, condition: Callable[[], Found], what: str, timeout: float = PATIENCE_S
    ) -> Found:
        """Poll until `condition` gives something true, and return that.

        Raises:
            ClusterError: if it does not in `timeout` seconds, or a daemon died by itself.
        """
        deadline = time.monotonic() + timeout
        while True:
            found = condition()
            if found:
                return found
            died = [n for n, daemon in self._daemons.items() if daemon.poll() is not None]
            if died:
                raise self._error(f"{', '.join(died)} died while waiting until {what}")
            if time.monotonic() > deadline:
                raise self._error(f"not in {timeout:g} s: {what}")
            time.sleep(POLL_S)

    # -- how -------------------------------------------------------------------------------------

    def _write_configuration(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        (self.folder / "cgroup.conf").write_text(CGROUP_CONF)
        self.conf.write_text(slurm_conf(self.settings, self.folder, free_ports(2)))

    def _start_munge(self) -> None:
        named = {
            "key-file": "munge.key",
            "socket": "munge.socket",
            "pid-file": "munged.pid",
            "seed-file": "munged.seed",
        }
        options = [f"--{option}={self.folder / name}" for option, name in named.items()]
        # The temporary folder's parent is writable for all, which munged refuses without --force.
        self._launch("munged", "munged", "--foreground", "--force", "--num-threads=2", *options)
        self.wait_until((self.folder / "munge.socket").exists, "munged listens")

    def _launch(self, name: str, *command: str) -> None:
        program = shutil.which(command[0], path=PROGRAMS)
        if program is None:
            raise ClusterError(f"{command[0]} is not on PATH")
        # A daemon must not outlive the tests, even where these are killed.
        with (self.folder / f"{name}.out").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **self.environment, "PATH": PROGRAMS},
                cwd=self.folder,
                # A Ctrl-C is for the tests, which then stop the daemons in their order.
                start_new_session=True,
            )

    def _end(self, name: str, how: signal.Signals) -> None:
        daemon = self._daemons.pop(name, None)
        if daemon is None:
            return
        daemon.send_signal(how)
        try:
            daemon.wait(PATIENCE_S / 4)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _lives(self, name: str) -> bool:
        return name in self._daemons and self._daemons[name].poll() is None

    def _answers(self) -> bool:
        return self._client("scontrol", "ping").returncode == 0

    def _node(self) -> dict[str, str]:
        return fields(self.run("scontrol", "show", "node", self.settings.node, "--oneliner"))

    def _node_is_up(self, since: datetime) -> bool:
        """Return whether a daemon that was started then has told the controller that it is up.

        The controller believes for seconds that a daemon which was killed is up.
        """
        node = self._node()
        state, *flags = node["State"].split("+")
        started = node.get("SlurmdStartTime", "None")
        registered = started != "None" and datetime.fromisoformat(started) >= since
        return registered and state in UP and not AWAY & set(flags)

    def _client(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def _kill_steps(self) -> None:
        """Kill the processes of jobs until none is left.

        What supervises them goes first, because it would tell the controller how they ended.
        """
        deadline = time.monotonic() + PATIENCE_S
        while left := self.step_processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise self._error(f"processes of jobs cannot be killed: {left}")
            time.sleep(POLL_S)

    def _error(self, message: str) -> ClusterError:
        return ClusterError("\n".join([message, *self._tails()]))

    def _tails(self, lines: int = 15) -> list[str]:
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        tails = []
        for file in files:
            end = file.read_text(errors="replace").splitlines()[-lines:]
            tails += [f"--- {file.name}", *end] if end else []
        return tails


def fields(printed: str) -> dict[str, str]:
    """Return the ``KEY=VALUE`` words of a line of ``scontrol show --oneliner``."""
    pairs = (word.partition("=") for word in printed.split())
    return {key: value for key, equals, value in pairs if equals}
