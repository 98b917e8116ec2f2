"""Child processes that the kernel ends together with this one, and free ports for them."""

import ctypes
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
# The kernel sends the death signal when the *thread* that forked ends: one thread does it for all.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


def spawn(arguments: list[str], log_fd: int) -> subprocess.Popen[bytes]:
    """Start a program that writes to `log_fd` and gets kill -9 when this process ends."""
    return _spawner.submit(_spawn, arguments, log_fd).result()


def _spawn(arguments: list[str], log_fd: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=log_fd,
        stderr=log_fd,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 (one prctl call, no locks, no allocation)
    )


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Return distinct free ports; all are held open together so that none is given twice."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
