"""Jupyter: kernels that are forks of a process which has imported what a kernel imports."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from typing import Any

__all__ = ["IMPORTED", "import_what_kernels_import", "provisioner", "run_kernel"]

# The last ones as late as they can.
IMPORTED = (
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "nbclient.client", "nbformat.validator", "yaml"),
    *("ipykernel.debugger", "IPython.core.completerlib", "IPython.extensions.storemagic"),
    "tornado.platform.asyncio",
)


def import_what_kernels_import() -> None:
    """Import what a kernel and its client import by themselves, for all forks to come.

    Written for ipykernel 7.4.0, IPython 9 and nbclient 0.11.0. Buys 0.6 s when eight chapters
    are executed. A module that is no longer there is left out.
    """
    for module in IMPORTED:
        with suppress(ImportError):
            importlib.import_module(module)


def run_kernel(connection_file: str) -> None:
    """Be a kernel that listens as its connection file says, until this process ends.

    Written for ipykernel 7.4.0, whose application takes its arguments from a list and again from
    `sys.argv`. Buys kernels that need no start of Python: without, a chapter costs two seconds
    more.
    """
    from ipykernel.kernelapp import IPKernelApp

    arguments = [f"--f={connection_file}", f"--IPKernelApp.parent_handle={os.getppid()}"]
    sys.argv = ["ipykernel_launcher", *arguments]
    IPKernelApp.launch_instance(argv=arguments)


def provisioner(process: Any) -> Any:
    """What a kernel's manager asks about a kernel that runs already, a process of multiprocessing.

    Written for jupyter-client 8.10.0, whose `AsyncKernelManager.provisioner` may be set. Buys that
    a forked kernel has nbclient for its client: a kernel that ends itself is noticed at once.
    """
    from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

    class Forked(KernelProvisionerBase):
        """A kernel that runs already."""

        has_process = True

        async def poll(self) -> int | None:
            return process.exitcode  # type: ignore[no-any-return]

        async def wait(self) -> int | None:
            process.join()
            return process.exitcode  # type: ignore[no-any-return]

        async def send_signal(self, signum: int) -> None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signum)

        async def kill(self, restart: bool = False) -> None:  # noqa: ARG002
            process.kill()

        async def terminate(self, restart: bool = False) -> None:  # noqa: ARG002
            process.terminate()

        async def launch_kernel(self, cmd: list[str], **_arguments: Any) -> Any:
            raise NotImplementedError(f"{cmd}: the kernel runs already")

        async def cleanup(self, restart: bool = False) -> None:
            """Nothing is left of it but its folder, which is its user's."""

    return Forked()
