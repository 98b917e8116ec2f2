"""What `kubectl get` printed, or another file that `tracekit import` reads, in place of a trace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click

from tracekit.base.durations import span
from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.time_input import looked_ns
from tracekit.cli.messages import tell_all
from tracekit.trace.format.model import HEADER_NAME, TraceHeader
from tracekit.trace.stores.place import is_url

_STDIN = "-"


def as_trace(word: str, *, at: str | None = None, version: str | None = None) -> str:
    """The place of a trace; standard input (-) or a file is imported into a temporary one.

    That one is gone when the verb is done.

    Args:
        word: What the user names.
        at: When the look was, for output that has no time: "now", or a time as `--from` takes it.
            None: what --at says, else standard input now, a file when it was written.
        version: Of the cluster, where the file does not say it.

    Raises:
        UsageError: `at` is no time, or is said of a trace, which has its own.
        TraceFormatError: The file is of no kind that can be imported.
    """
    at = at or click.get_current_context().meta.get(_AT)
    if not is_imported(word):
        if at is not None:
            raise UsageError(
                f"{word} is a trace, which has its own times: leave --at out, or say --to"
            )
        return word
    if word == _STDIN and sys.stdin.isatty():
        raise UsageError(
            "standard input is a terminal: write `kubectl get cronjobs,jobs,pods,events -A -o yaml "
            "| tracekit … -`, or name a trace"
        )
    name = Path(word).name.partition(".")[0] if word != _STDIN else ""
    return _imported([word], name or "look", at, version)


#: In what an import remarks about a file that it was given and did not read.
_LEFT_OUT = " left out, for example "

_Command = TypeVar("_Command", bound=Callable[..., Any])
#: Where the context keeps what --at says.
_AT = "tracekit.at"
_WRITTEN = ", when the file was written: say --at if it was printed at another time"
#: A file whose objects tell of nothing for so long before it was written may be a copy. A choice:
#: in a cluster at work something is written each day; only what is said beside hangs on it.
_COPIED_NS = 86400 * NS_PER_S


def _keep(ctx: click.Context, _: click.Parameter, at: str | None) -> None:
    ctx.meta[_AT] = at


def look_option(command: _Command) -> _Command:
    """Add --at, for verbs that take a file or standard input as well as a trace."""
    return click.option(
        "--at",
        metavar="TIME",
        expose_value=False,
        callback=_keep,
        help="When `kubectl get` printed what is read: now, 22:43, or RFC 3339.  [default: now "
        "for -, else the file's time]",
    )(command)


def as_one_trace(words: Sequence[str], *, version: str | None = None) -> str:
    """The place of a trace of several files, read together as `tracekit import` does.

    Raises:
        UsageError: One is a trace already, or no file, or is standard input.
        TraceFormatError: The files are of no kind that can be imported.
    """
    if len(words) == 1:
        return as_trace(words[0], version=version)
    for word in words:
        if word == _STDIN or not is_imported(word):
            raise UsageError(
                f"{word} is no file that can be read together with others: name one trace, or "
                "only files of what `kubectl get` printed or `tracekit import` reads"
            )
    return _imported(words, "looks", click.get_current_context().meta.get(_AT), version)


def is_imported(word: str) -> bool:
    """Whether `as_trace` imports that: standard input, or a file that is no part of a trace."""
    if word == _STDIN:
        return True
    try:
        return not is_url(word) and Path(word).is_file() and not _is_of_a_trace(Path(word))
    except OSError:  # a name that no system takes
        return False


def _is_of_a_trace(file: Path) -> bool:
    """Whether it is a part of a trace: what is wrong with that is said of traces."""
    return (file.parent / HEADER_NAME).is_file()


def _imported(words: Sequence[str], name: str, at: str | None, version: str | None) -> str:
    """The place of a trace of that name, made of files for as long as the verb takes."""
    from tracekit.trace.importers.run import ImportRequest, import_files  # noqa: PLC0415 - slow

    folder = click.get_current_context().with_resource(
        TemporaryDirectory(prefix="tracekit-", ignore_cleanup_errors=True)
    )
    target = Path(folder) / name
    at_ns, why = _looked_at(words, at)
    header = TraceHeader(kubernetes_version=version)
    results = import_files(ImportRequest(words, target, header, looked_at_ns=at_ns))
    printed = tell_all((problem for result in results for problem in result.problems), set())
    tell_all((said for result in results for said in result.remarks if _LEFT_OUT in said), printed)
    if any(result.times for result in results):
        newest_ns = max((result.newest_ns or 0 for result in results), default=0)
        tell_all([_as_of(target, at_ns, why, newest_ns)], printed)
    return str(target)


def _looked_at(words: Sequence[str], at: str | None) -> tuple[int, str]:
    """When the look was, and what is said of a time that nobody named."""
    now_ns = time.time_ns()
    if at is not None:
        return looked_ns(at, now_ns), ""
    if words[0] == _STDIN:
        return now_ns, ", now: say --at if it was printed before"
    written_ns = max(Path(word).stat().st_mtime_ns for word in words)
    return written_ns, _WRITTEN


def _as_of(target: Path, at_ns: int, why: str, newest_ns: int) -> str:
    """As of when all that follows is.

    A file that was copied, or fetched, has the time of that: what it tells last is named where it
    lies far before.
    """
    from tracekit.trace.reading.reader import TraceReader  # noqa: PLC0415 - slow

    times = [stream.last_ns for stream in TraceReader(target).streams() if stream.last_ns]
    last_ns = max(*times, at_ns)  # Events that were printed are from before that
    if last_ns > at_ns:
        why = ", the latest time that an object tells"
    elif why == _WRITTEN and newest_ns and at_ns - newest_ns >= _COPIED_NS:
        newest = format_rfc3339(newest_ns - newest_ns % NS_PER_S)
        why += (
            f"; the latest time in it is {span(at_ns - newest_ns)} before that, so if it was "
            f"copied say --at {newest}, or later"
        )
    return f"as of {format_rfc3339(last_ns - last_ns % NS_PER_S)}{why}"
