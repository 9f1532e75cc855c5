"""A command under a Slurm of its own: one controller, two node daemons, all of them on this host.

    python tests/cluster/slurm.py COMMAND [ARGUMENT ...]
    python tests/cluster/slurm.py --missing  prints the packages to install

Configuration, key, sockets, spool and logs lie in a temporary folder, ports are free ones, and
COMMAND reaches this Slurm through its PATH; nothing under /etc is written, and nobody needs to be
root. A host that has a Slurm already is refused. The Slurm ends with COMMAND, and so does every
process that either of them started, however it ends.
"""

from __future__ import annotations

import ctypes
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

__all__ = ["NODES", "main"]

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")  # of Debian
NODES = ("n1", "n2")
_DAEMONS = ("munged", "slurmctld", "slurmd")
_COMMANDS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun")
_CONFIGURED = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf")
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_SECONDS = 60  # that a start may take on a busy machine
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>

_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
PlugStackConfig={folder}/no-plugins
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
KillWait=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=64000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=64000
PartitionName=test Nodes=n1,n2 Default=YES MaxTime=60 State=UP
"""


class _Stop(BaseException):
    """A signal that ends this command."""


def _stop(number: int, _frame: object) -> None:
    raise _Stop(number)


def main(command: list[str]) -> int:
    """Run the command under a Slurm: its exit status, or 2 if there can be none here."""
    if command == ["--missing"]:
        print(" ".join(PACKAGES) if _missing() else "")
        return 0
    if why := _missing() or _occupied():
        print(f"no Slurm is started: {why}", file=sys.stderr)
        return 2
    for number in _SIGNALS:
        signal.signal(number, _stop)
    folder, parent = Path(tempfile.mkdtemp(prefix="slurm-")), os.getpid()
    try:
        _take_over()
        # Two processes watch over what is started: if one is killed, the other ends it all.
        if watcher := os.fork():
            return os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1]) % 256
        _end_with(parent)
        _take_over()
        return subprocess.call(command, env=_start(folder))
    except _Stop as stop:
        return 128 + int(stop.args[0])
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _end_all()
        shutil.rmtree(folder, ignore_errors=True)


def _missing() -> str:
    """Which programs are not installed, and how they are; empty if all are."""
    lacking = [name for name in (*_DAEMONS, *_COMMANDS) if not shutil.which(name, path=_PATH)]
    install = f"as root, apt-get install {' '.join(PACKAGES)}"
    return f"{', '.join(lacking)} not found; {install}" if lacking else ""


def _occupied() -> str:
    """What there is of another Slurm, which nothing here may touch; empty if there is none."""
    if named := os.environ.get("SLURM_CONF"):
        return f"SLURM_CONF names another one: {named}"
    for path in filter(os.path.exists, _CONFIGURED):
        return f"this host has one: {path}"
    for process, name in _processes():
        if name in ("slurmctld", "slurmd", "slurmdbd"):
            return f"this host has one: {name} runs as process {process}"
    return ""


def _processes() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                yield int(entry.name), (entry / "comm").read_text().strip()


def _children() -> list[int]:
    """What this process started, and what came to it when those that had started it ended."""
    found = []
    for process, _ in _processes():
        with suppress(OSError):
            parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                found.append(process)
    return found


def _end_all() -> None:
    """Kill children until there is none; those of a child that ended come to this process."""
    while children := _children():
        for process in children:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(process, 0)


def _take_over() -> None:
    """Become the parent of what descendants leave behind when they end."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _end_with(parent: int) -> None:
    """Be told to end when the parent does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _start(folder: Path) -> dict[str, str]:
    """Start the daemons; the environment of commands that reach them."""
    for name in ("munge", "state", "bin", *(f"spool.{node}" for node in NODES)):
        (folder / name).mkdir()
    (folder / "no-plugins").touch()
    key, configuration = folder / "munge" / "key", folder / "slurm.conf"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    configuration.write_text(
        _CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            user=getpass.getuser(),
            folder=folder,
            ports=_free_ports(1 + len(NODES)),
        )
    )
    # Jobs inherit the PATH, but of the variables of Slurm only those that Slurm sets itself.
    for name in _COMMANDS:
        wrapper = folder / "bin" / name
        program = shutil.which(name, path=_PATH)
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={configuration} exec {program} "$@"\n')
        wrapper.chmod(0o755)
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}

    munge = {name: folder / "munge" / name for name in ("socket", "pid-file", "log-file")}
    munge |= {"key-file": key, "seed-file": folder / "munge" / "seed"}
    options = [f"--{name}={value}" for name, value in munge.items()]
    _daemon(folder, "munged", "--foreground", "--force", *options)
    _until(munge["socket"].exists, folder)
    _daemon(folder, "slurmctld", "-D", "-f", str(configuration))
    for node in NODES:
        _daemon(folder, "slurmd", "-D", "-f", str(configuration), "-N", node)
    _until(lambda: _idle(environment) == len(NODES), folder)
    return environment


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:  # all at once, so that they differ
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _daemon(folder: Path, name: str, *arguments: str) -> None:
    parent = os.getpid()
    with (folder / "daemons.log").open("ab") as log:
        subprocess.Popen(
            [str(shutil.which(name, path=_PATH)), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: _end_with(parent),
            start_new_session=True,
        )


def _idle(environment: dict[str, str]) -> int:
    """How many nodes are ready."""
    command = ["sinfo", "--noheader", "--Node", "--format=%T"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return told.stdout.split().count("idle")


def _until(true: Callable[[], bool], folder: Path) -> None:
    """Wait until it is so; if that takes too long, end with what the daemons wrote."""
    late = time.monotonic() + _SECONDS
    while not true():
        if time.monotonic() > late:
            logs = [path for path in sorted(folder.rglob("*log*")) if path.is_file()]
            told = "\n".join(path.read_text(errors="replace")[-2000:] for path in logs)
            sys.exit(f"Slurm did not start in {_SECONDS} s:\n{told}")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
