"""An executor of Dask workers: those of a cluster that somebody runs, or some on this machine.

Each worker does one task at a time, whatever threads it has: tasks hold Python's lock, and what
they keep between them is not made for threads. A worker that dies costs a retry of what it was
doing; a task that kills one worker after the other is divided (`tasks.py`).
"""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from tracekit.base.children import SAFE_PATH, safe_search_path
from tracekit.base.errors import UsageError
from tracekit.judge.executors.tasks import Done, Lost, Outcome, R, T, Work

if TYPE_CHECKING:
    from distributed import Client, Future

#: What is said in place of an address for workers on this machine.
LOCAL: Final = "local"
_PACKAGE: Final = "kube-tracekit"
_ANSWERS_S: Final = 15
#: A store that is away for a moment costs a retry, too.
_RETRIES: Final = 2
_one_at_a_time = threading.Lock()


class Cluster:
    """The workers behind a scheduler; `close` lets go of them, as `with` does."""

    def __init__(self, address: str, workers: int) -> None:
        """`workers`: how many to begin, where the address is `LOCAL`.

        Raises:
            UsageError: Dask is not installed, nobody answers, or the workers are others' kind.
        """
        if "@" in address:  # nor is it printed: what stands before may be a password
            raise UsageError(
                "--scheduler takes no user or password: name it like tcp://tracekit-scheduler:8786"
            )
        try:
            import distributed  # noqa: PLC0415 - an extra, and slow to import
        except ImportError as error:
            raise UsageError(
                f"--scheduler needs a package that is not installed ({error}): pip install "
                "'kube-tracekit[dask]'"
            ) from error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        #: Whether all workers see the files of this machine.
        self.shares_disk = address == LOCAL
        self._address = address
        self._cluster: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if address == LOCAL:
            # What workers put aside is pickled: Dask's own folder below TMPDIR may be anybody's.
            self._folder = tempfile.TemporaryDirectory(
                prefix="tracekit-dask-", ignore_cleanup_errors=True
            )
            self._cluster = _workers_here(workers, self._folder.name)
        # Made in two steps, so that one that failed to begin can be told that it is over: else it
        # waits half a minute for its scheduler when it is forgotten, and prints a traceback.
        self._client: Client = distributed.Client.__new__(distributed.Client)
        try:
            self._client.__init__(  # type: ignore[misc]
                self._cluster or address, timeout=_ANSWERS_S, set_as_default=False
            )
        except (OSError, ValueError, TypeError) as error:
            self._client.status = "closed"
            self._end()
            why = f" ({error})" if isinstance(error, OSError) else ""
            raise UsageError(
                f"--scheduler {address}: no Dask scheduler answers there{why}; name it like "
                "tcp://tracekit-scheduler:8786, or local for workers on this machine"
            ) from error
        try:
            self.size = self._checked(address)
        except BaseException:
            self.close()
            raise

    def _checked(self, address: str) -> int:
        """How many workers there are; all of them must be of this tracekit."""
        from distributed import TimeoutError as Late  # noqa: PLC0415 - as above

        try:
            self._client.wait_for_workers(1, timeout=_ANSWERS_S)
        except (Late, TimeoutError) as error:
            raise UsageError(
                f"--scheduler {address}: it has no workers; start some with tracekit installed"
            ) from error
        found: Any = self._client.get_versions(packages=[_PACKAGE])
        workers = {name: reported for name, reported in found["workers"].items() if reported}
        for worker, reported in sorted(workers.items()):
            check_worker(address, worker, reported, found["client"])
        return len(workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the workers; those that were begun here end."""
        self._client.close()
        self._end()

    def _end(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        if self._folder is not None:
            self._folder.cleanup()

    def begin(self, ready: Callable[[], object]) -> None:
        """Have all workers import what their work needs."""
        self._client.run(ready, wait=False, on_error="ignore")

    def run(
        self,
        work: Work[T, R],
        tasks: Sequence[T],
        divide: Callable[[T], Sequence[T]],
    ) -> Iterator[Outcome[T, R]]:
        """What became of each task, as it is done.

        Raises:
            UsageError: The scheduler is gone.
        """
        from distributed.client import FutureCancelledError  # noqa: PLC0415 - as above
        from distributed.comm.core import CommClosedError  # noqa: PLC0415 - as above

        try:
            yield from self._run(work, tasks, divide)
        except (FutureCancelledError, CommClosedError) as error:
            raise UsageError(
                f"--scheduler {self._address}: it is gone, and what was begun there is lost: run "
                "this again once it is back (with --parts what was finished is not done again)"
            ) from error

    def _run(
        self,
        work: Work[T, R],
        tasks: Sequence[T],
        divide: Callable[[T], Sequence[T]],
    ) -> Iterator[Outcome[T, R]]:
        from distributed import KilledWorker, as_completed  # noqa: PLC0415 - as above

        asked: dict[Future[R], T] = {}

        def ask(task: T) -> Future[R]:
            future: Future[R] = self._client.submit(
                do, work, task, pure=False, retries=_RETRIES, priority=-len(asked)
            )
            asked[future] = task
            return future

        suspects: list[T] = []
        coming = as_completed([ask(task) for task in tasks], loop=self._client.loop)
        for future in coming:
            task = asked.pop(future)
            error = future.exception() if future.status == "error" else None
            if error is None:
                yield Done(task, future.result())
            elif not isinstance(error, KilledWorker):
                raise error
            elif parts := divide(task):
                for part in parts:
                    coming.add(ask(part))
            else:
                suspects.append(task)
            future.release()
        for task in suspects:  # with nobody beside it: others may have killed its workers
            future = ask(task)
            error = future.exception()
            if error is None:
                yield Done(task, future.result())
            elif isinstance(error, KilledWorker):
                yield Lost(task, "it killed each worker that worked on it")
            else:
                raise error


def do(work: Work[T, R], task: T) -> R:
    """Do a task on a worker."""
    with _one_at_a_time:
        return work.do(task)


def _workers_here(workers: int, folder: str) -> Any:
    """So many workers on this machine; what they put aside lies in the folder."""
    import dask.config  # noqa: PLC0415 - an extra, and slow to import
    import distributed  # noqa: PLC0415 - as above

    settings = {
        # A task whose worker died is divided at once, or tried again alone (`run`).
        "distributed.scheduler.allowed-failures": 0,
        # A sampling profiler in each worker that nobody looks at, and what looks after
        # each process: as often as by default it takes a tenth of what tasks take.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "10s",
        "distributed.worker.memory.monitor-interval": "1s",
        "temporary-directory": folder,
        # Dask has its workers give each freed block back; they take it again at once.
        "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, SAFE_PATH: 1},
    }
    with safe_search_path(), dask.config.set(settings):
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=folder,
            silence_logs=logging.CRITICAL,
        )


def check_worker(
    address: str, worker: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]
) -> None:
    """Raise unless a worker is of this tracekit and this Python, by what Dask tells of each."""
    if _kind(theirs) != _kind(ours):
        raise UsageError(
            f"--scheduler {address}: the worker {worker} has {_kind(theirs)}, and here is "
            f"{_kind(ours)}; start workers from the same image as this one"
        )


def _kind(reported: Mapping[str, Any]) -> str:
    version = reported["packages"].get(_PACKAGE)
    python = ".".join(str(reported["host"]["python"]).split(".")[:2])
    return f"{f'tracekit {version}' if version else 'no tracekit'} on Python {python}"
