"""Every process that tracekit begins is begun here.

What a child imports, and what it runs as, is chosen: an interpreter that is started with `-c` or
`-m` puts the working directory at the head of its search path, and whoever owns that directory (a
folder of logs that somebody sent) would have its `multiprocessing.py` run. So children of ours have
`PYTHONSAFEPATH`, and no relative entry in `PYTHONPATH`; programs of others (credential plugins) are
run with the environment that kubectl would give them, and with a deadline.

Any room may call this one; it knows none. `tests/tidy/test_bans.py` looks for any other way to
begin a process.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import IO, Any, Final

SAFE_PATH: Final = "PYTHONSAFEPATH"
_PATH: Final = "PYTHONPATH"
_PIECE_BYTES: Final = 1 << 16
#: Far more than any credential, and than the certificates beside it.
_PRINTED_BYTES_MAX: Final = 1 << 20
_lock = threading.RLock()


def environment(inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child that is tracekit's: this process's with a safe search path."""
    result = dict(os.environ if inherited is None else inherited)
    result[SAFE_PATH] = "1"
    entries = [
        entry for entry in result.get(_PATH, "").split(os.pathsep) if Path(entry).is_absolute()
    ]
    if entries:
        result[_PATH] = os.pathsep.join(entries)
    else:
        result.pop(_PATH, None)
    return result


@contextlib.contextmanager
def safe_search_path() -> Iterator[None]:
    """What this process begins meanwhile has a safe search path, whoever begins it.

    For libraries that begin processes by themselves and take no environment.
    """
    with _lock:
        safe = environment()
        before = {name: os.environ.get(name) for name in (SAFE_PATH, _PATH)}
        _set({name: safe.get(name) for name in before})
        try:
            yield
        finally:
            _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class _Process(SpawnProcess):
    """A process of Python's own pools."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - multiprocessing's name
        with safe_search_path():
            return SpawnProcess._Popen(process_obj)  # noqa: SLF001


class _Context(SpawnContext):
    Process = _Process


def spawning() -> SpawnContext:
    """The context for pools of processes: each begins anew, with a safe search path.

    A fork of a process whose libraries run threads may hang, so nothing is forked.
    """
    with safe_search_path():
        resource_tracker.ensure_running()  # a process as well, which locks and queues begin
    return _Context()


def python(
    module: str,
    *arguments: str,
    stdout: int | IO[Any] | None = subprocess.DEVNULL,
    stderr: int | IO[Any] | None = None,
    text: bool = False,
) -> subprocess.Popen[Any]:
    """Begin a module of tracekit's as a process of its own.

    It has a session of its own, since Ctrl-C is for its parent, and the parent's working directory,
    since its arguments may name files relative to it.
    """
    return subprocess.Popen(  # noqa: S603 - this interpreter, our module
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=text,
        encoding="utf-8" if text else None,
        env=environment(),
        cwd=os.getcwd(),  # noqa: PTH109 - as it is, a link is not followed
        start_new_session=True,
    )


class PluginError(Exception):
    """A program of others' gave no answer; the message says which and why, without its output."""


def plugin(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    interactive: bool,
    deadline_s: float,
) -> str:
    """What a program of others' prints, for example a credential plugin.

    It is ended with all that it began when the deadline is over. A command without a slash is
    looked for in the absolute folders of PATH alone.

    Raises:
        PluginError: it cannot be run, fails, or does not end in time.
    """
    name = command[0]
    program = _found(name, env.get("PATH", os.defpath), cwd)
    if program is None:
        raise PluginError("it is not on the PATH")
    try:
        process = subprocess.Popen(  # noqa: S603 - what the kubeconfig names, as kubectl runs it
            [program, *command[1:]],
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.DEVNULL,
            env=dict(env),
            cwd=cwd,
            start_new_session=not interactive,
        )
    except OSError as error:
        raise PluginError(f"it cannot be run: {error.strerror}") from None
    try:
        stdout = _printed(process, deadline_s)
    except subprocess.TimeoutExpired:
        raise PluginError(f"no answer within {deadline_s:g} s") from None
    finally:
        if process.stdout is not None:
            process.stdout.close()
        if process.returncode is None:  # late, too talkative, or we are interrupted
            end(process, its_session=not interactive)
    if process.returncode != 0:
        raise PluginError(f"exit status {process.returncode}")
    return stdout.decode("utf-8", "replace")


def _printed(process: subprocess.Popen[bytes], deadline_s: float) -> bytes:
    """All that a process prints until it ends.

    Raises:
        TimeoutExpired: it has not ended in time.
        PluginError: it prints more than an answer has.
    """
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    late_s = time.monotonic() + deadline_s
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(late_s - time.monotonic(), 0)):
            piece = os.read(process.stdout.fileno(), _PIECE_BYTES)
            if not piece:
                process.wait(max(late_s - time.monotonic(), 0))
                return bytes(data)
            data += piece
            if len(data) > _PRINTED_BYTES_MAX:
                raise PluginError(f"it prints more than {_PRINTED_BYTES_MAX >> 20} MiB")
    raise subprocess.TimeoutExpired(process.args, deadline_s)


def _found(name: str, path: str, cwd: str | None) -> str | None:
    """The program of this name: relative to the kubeconfig's folder, else on the PATH."""
    if os.sep in name:
        return os.path.join(cwd or os.getcwd(), name)  # noqa: PTH109, PTH118 - as Popen reads it
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, name)  # noqa: PTH118 - as above
        if Path(folder).is_absolute() and os.access(candidate, os.X_OK):
            return candidate
    return None


def end(process: subprocess.Popen[Any], *, its_session: bool) -> None:
    """End a process; with its session, all that it began, which may hold its pipe."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if its_session:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)
