"""What a cluster for tests needs to know of the machine that it is on."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
from pathlib import Path

PROGRAMS = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"))
"""Where programs are looked for; daemons are often not on the PATH of a user."""

NEEDED = {
    "munge": ("munged",),
    "slurm-wlm": ("slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel"),
    "util-linux": ("setpriv",),
}
"""Debian's packages, and the programs of each that a cluster uses."""


def missing() -> str | None:
    """Return why there can be no cluster here, or None if there can be one."""
    absent = {
        package: [name for name in names if shutil.which(name, path=PROGRAMS) is None]
        for package, names in NEEDED.items()
    }
    lines = [f"{', '.join(names)} of {package}" for package, names in absent.items() if names]
    if lines:
        return f"not on PATH: {'; '.join(lines)} (on Debian: apt-get install slurm-wlm munge)"
    if os.geteuid() != 0:
        return "slurmd of Debian's slurm-wlm starts jobs as root only"
    return None


def processes_with(entry: str) -> dict[int, set[str]]:
    """Return the processes that were started with ``NAME=VALUE`` in their environment.

    Returns:
        all names in the environment of each, by its number. Zombies have no environment.
    """
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        # It may end meanwhile, and those of the kernel do not tell.
        with contextlib.suppress(OSError):
            had = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            if entry in had:
                found[int(folder.name)] = {one.partition("=")[0] for one in had}
    return found


def program_of(pid: int) -> str:
    """Return the name of the program of a process, which is empty when there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def free_ports(number: int) -> list[int]:
    """Return different ports that nobody listens on now.

    They are below those that the system gives to connections, so that none takes them meanwhile.
    """
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        candidates = iter(random.SystemRandom().sample(range(20_000, 32_000), 200))
        while len(ports) < number:
            port = next(candidates)
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                ports.append(port)
        return ports
