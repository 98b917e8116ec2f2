"""`tracekit record`: watch a cluster and write what is seen, until told to stop."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from tracekit.base.errors import ClusterError, TraceFormatError, UsageError
from tracekit.base.escaping import for_terminal
from tracekit.base.stopping import ENDING, on_signals
from tracekit.cli.connecting import connection_options, take_connection
from tracekit.cli.entry import INTERRUPTED
from tracekit.cli.record_status import StatusDisplay
from tracekit.cli.units import DURATION, NAMED_AS_PATH, SIZE, format_bytes
from tracekit.cli.watch_beside import watching
from tracekit.record.container_logs.logs import LogMode, LogOptions
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.operation.metrics import MetricsServer
from tracekit.record.operation.recorder import Ending, Limits, Outcome, Recorder, Target, expire
from tracekit.record.operation.resume import known_logs, resume_points
from tracekit.record.operation.uploading import Uploader, spool_of
from tracekit.record.redaction.redact import Redactor, parse_fields, read_key, redacted_fields
from tracekit.record.server.kinds import Plan, Scope, log_refusal, plan_streams
from tracekit.record.server.probe import ClusterInfo, asked, probe_cluster
from tracekit.record.server.transport import ApiClient
from tracekit.record.streams.watcher import WatchPolicy
from tracekit.report.table import counted
from tracekit.trace.format.header import read_header
from tracekit.trace.format.model import HEADER_NAME
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.place import is_url
from tracekit.trace.stores.rotated import rotated_traces
from tracekit.trace.stores.store import open_store

_LOG_TAIL = 200
_DEAD_STREAM = 1
#: Streaming lists are on by default in the API server from here on.
_STREAMING_LISTS_MINOR = 34


class _Options(Struct, frozen=True, kw_only=True):
    """The command line, parsed."""

    output: Path
    namespaces: tuple[str, ...]
    all_namespaces: bool
    selector: str | None
    pods: str
    logs: str | None
    log_tail: int | None
    append: bool
    redact: str | None
    key_file: Path | None
    rotate: float | None
    keep: float | None
    keep_size: int | None
    max_size: int | None
    duration: float | None
    flush_interval: float
    request_timeout: float
    judge: bool
    metrics_port: int | None
    metrics_address: str


@click.command("record")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="TRACE",
    help="Directory to write; with --rotate the folder of the traces, or its URL in object "
    "storage, where what is recorded goes from this machine's disk.",
)
@click.option("-n", "--namespace", "namespaces", multiple=True, help="May be given several times.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Record all namespaces.")
@click.option("-l", "--selector", help="Labels of the jobs, cronjobs and pods to record.")
@click.option(
    "--pods",
    type=click.Choice(["all", "job"]),
    default="all",
    help="job: only pods that jobs made (by their job-name label), for large clusters.",
)
@click.option(
    "--logs",
    type=click.Choice([mode.value for mode in LogMode]),
    help="Also the last lines that containers said: of those that failed, or of all that ended.",
)
@click.option(
    "--log-tail",
    type=click.IntRange(1, 100_000),
    metavar="LINES",
    help="With --logs: so many lines of each.  [default: 200]",
)
@click.option("--append", is_flag=True, help="Go on with TRACE from its last revisions.")
@click.option("--duration", type=DURATION, help="End after this time, for example 10m.")
@click.option("--max-size", type=SIZE, help="End (or rotate) at this size, for example 1GiB.")
@click.option("--rotate", type=DURATION, help="Begin a new trace this often; -o is a folder.")
@click.option("--keep", type=DURATION, help="With --rotate: delete traces older than this.")
@click.option(
    "--keep-size", type=SIZE, help="With --rotate: delete the oldest traces beyond this, together."
)
@click.option("--flush-interval", type=DURATION, default="1s", help="What a crash may lose.")
@click.option("--redact", metavar="FIELDS", help="Hash env, args, … (see docs), all, or strict.")
@click.option("--key-file", type=NAMED_AS_PATH, help="Key of the hashes; random without it.")
@click.option("--judge", is_flag=True, help="Judge it meanwhile: `tracekit watch` beside it.")
@click.option("--metrics-port", type=int, help="Serve /metrics and /healthz here.")
@click.option("--metrics-address", default="127.0.0.1", help="Address of --metrics-port.")
@click.option("--request-timeout", type=DURATION, default="30s", help="Patience for one answer.")
@connection_options
def record(**values: Any) -> int:
    """Record Jobs, CronJobs, pods, Events and what else matters.

    Which cluster is found as kubectl finds it: flags, then KUBECONFIG, then ~/.kube/config, then
    the pod's service account. Without -n and -A the context's namespace is recorded.
    """
    connect = take_connection(values)
    word = values.pop("output")
    url = word if is_url(word) else None
    options = _Options(output=Path(word) if url is None else spool_of(url), **values)
    console = Console(stderr=True)
    if url is not None:
        _check_upload(options, url)
    _check(options)
    connection = Connection(connect)
    client = ApiClient(connection, request_timeout_s=options.request_timeout)
    scope = _scope(options, connection)
    _say(console, f"Recording {scope.describe()} of {connection.shown_host}")
    cluster = probe_cluster(client)
    recorder = _prepare(options, client, cluster, scope, console)
    uploading = nullcontext() if url is None else _uploading(options, url, console)
    with uploading, _judging(options, console):
        outcome = _run(recorder, options, console)
    return _report(outcome, console)


def _judging(options: _Options, console: Console) -> AbstractContextManager[None]:
    """What judges the trace meanwhile, if that is asked for; its lines go where data goes."""
    if not options.judge:
        return nullcontext()
    stdout = sys.stdout  # a live table takes the place of it, and of what is printed to it

    def say(line: str) -> None:
        if console.is_terminal and stdout.isatty():
            console.print(line, highlight=False, markup=False, soft_wrap=True)  # above the table
        else:
            stdout.write(f"{line}\n")
            stdout.flush()

    return watching(options.output, say)


def _say(console: Console, text: str) -> None:
    # One sentence; what a server says may be part of it, and must make no line of its own.
    console.print(for_terminal(text), highlight=False, markup=False, soft_wrap=True)


def _check(options: _Options) -> None:
    """Refuse what does not fit together before anything is asked of the cluster."""
    if options.namespaces and options.all_namespaces:
        raise UsageError("-n and -A exclude each other; give one of them.")
    if options.rotate is None and (options.keep is not None or options.keep_size is not None):
        raise UsageError("--keep and --keep-size delete rotated traces; give --rotate too.")
    if options.log_tail is not None and options.logs is None:
        raise UsageError("--log-tail says how much of each log; give --logs failed or all too.")
    if options.key_file is not None and options.redact is None:
        raise UsageError("--key-file is the key of --redact; give --redact too.")
    if options.redact is not None and options.append and options.key_file is None:
        raise UsageError(
            "--redact with --append needs --key-file, or values would not equal the earlier ones."
        )
    _check_output(options)


def _check_upload(options: _Options, url: str) -> None:
    if options.rotate is None:
        raise UsageError(f"-o {url} takes traces that are ended; give --rotate too, like 1h.")
    if options.keep is not None or options.keep_size is not None:
        raise UsageError(
            "--keep and --keep-size delete what lies on this machine, which goes once it is in the "
            "bucket: have the bucket's own lifecycle rules delete there."
        )
    open_store(url)  # a scheme that nothing here speaks is told before anything is recorded


@contextmanager
def _uploading(options: _Options, url: str, console: Console) -> Iterator[None]:
    """Bring what is recorded to the bucket, meanwhile and at the end."""
    uploader = Uploader(options.output, url, lambda sentence: _say(console, sentence))
    uploader.start()
    try:
        yield
    finally:
        uploader.close()


def _check_output(options: _Options) -> None:
    output = options.output
    if options.rotate is not None:
        if output.exists() and not output.is_dir():
            raise UsageError(f"{output} is no folder; --rotate needs one for its traces.")
        if (output / HEADER_NAME).exists():
            raise UsageError(f"{output} is a trace; with --rotate name a folder for several.")
    elif output.exists() and not options.append:
        raise UsageError(f"{output} exists; choose another name, or go on with it by --append.")
    elif output.exists() and not (output / HEADER_NAME).exists():
        raise UsageError(f"{output} is no trace, so it cannot be appended to; choose another name.")
    _check_writable(output)


def _check_writable(output: Path) -> None:
    parent = output
    while not parent.exists():
        parent = parent.parent
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{parent} may not be written to; choose another place for the trace.")


def _scope(options: _Options, connection: Connection) -> Scope:
    namespaces: tuple[str, ...] = ()
    if not options.all_namespaces:
        namespaces = tuple(dict.fromkeys(options.namespaces)) or (connection.namespace,)
    return Scope(
        namespaces=namespaces,
        selector=options.selector,
        pods_of_jobs_only=options.pods == "job",
    )


def _prepare(
    options: _Options, client: ApiClient, cluster: ClusterInfo, scope: Scope, console: Console
) -> Recorder:
    """Plan the streams, open the trace, and say what will not be seen."""
    plan = asked(client, "look at its streams", lambda: plan_streams(client, scope))
    logs = _log_options(options, client, scope, plan)
    for name, reason in plan.unseen.items():
        _say(console, f"Not recorded: {name}: {reason}")
    for note in cluster.notes:
        _say(console, f"Note: {note}")
    limits = Limits(
        flush_interval_s=options.flush_interval,
        duration_s=options.duration,
        max_bytes=options.max_size,
        rotate_s=options.rotate,
        keep_s=options.keep,
        keep_bytes=options.keep_size,
    )
    if options.rotate is not None:
        expire(options.output, limits)
    append_to = _trace_to_append_to(options)
    resume = {}
    transform = None
    if options.redact is not None:
        transform = Redactor(read_key(options.key_file), parse_fields(options.redact))
    if append_to is not None:
        try:
            _check_redacted(append_to, transform)
            _check_same(append_to, scope, cluster)
            resume = resume_points(TraceReader(append_to), plan.specs)
        except TraceFormatError as error:
            if options.rotate is None:
                raise
            # A recorder that is always on must not be stopped by one bad file.
            _say(console, f"Not going on with it: {error}")
            append_to = None
        else:
            if logs is not None:
                logs = replace(logs, known=known_logs(TraceReader(append_to)))
            _say(console, f"Going on with {append_to}")
    return Recorder(
        client,
        plan,
        cluster,
        scope,
        Target(path=options.output, append_to=append_to, rotating=options.rotate is not None),
        limits=limits,
        policy=WatchPolicy(streaming_lists=cluster.minor >= _STREAMING_LISTS_MINOR),
        resume=resume,
        transform=transform,
        session={"redacted": sorted(transform.fields)} if transform is not None else {},
        logs=logs,
    )


def _log_options(
    options: _Options, client: ApiClient, scope: Scope, plan: Plan
) -> LogOptions | None:
    """Say what of logs is recorded; what may not be read is put with what is not seen."""
    if options.logs is None:
        return None
    refusal = asked(client, "look at its logs", lambda: log_refusal(client, scope))
    if refusal is None and not any(spec.resource == "pods" for spec in plan.specs):
        refusal = "pods are not recorded"
    if refusal is not None:
        plan.unseen["logs"] = refusal
        return None
    return LogOptions(LogMode(options.logs), options.log_tail or _LOG_TAIL)


def _trace_to_append_to(options: _Options) -> Path | None:
    if not options.append:
        return None
    if options.rotate is not None:
        traces = rotated_traces(options.output)
        return traces[-1] if traces else None
    return options.output if options.output.exists() else None


def _check_redacted(trace: Path, transform: Redactor | None) -> None:
    """Refuse to call a trace redacted in which some rows are not.

    Raises:
        TraceFormatError: it has rows that are not.
    """
    if transform is not None and not transform.fields <= redacted_fields(read_header(trace)):
        raise TraceFormatError(
            f"{trace} has rows in which not all of that is hashed; hash it (`tracekit redact`) and "
            "go on with the copy, or choose another name for -o."
        )


def _check_same(trace: Path, scope: Scope, cluster: ClusterInfo) -> None:
    """Refuse to put two clusters, or two scopes, into one trace."""
    recorded = read_header(trace).scope
    uid = recorded.get("cluster_uid")
    if uid is not None and cluster.cluster_uid is not None and uid != cluster.cluster_uid:
        raise ClusterError(
            f"{trace} is of another cluster (kube-system {uid}); choose another name for -o."
        )
    same = (
        (recorded.get("namespaces") or None) == (list(scope.namespaces) or None)
        and recorded.get("selector") == scope.selector
        and (recorded.get("pods") == "job") == scope.pods_of_jobs_only
    )
    if not same:
        raise UsageError(
            f"{trace} was recorded with another scope ({dict(recorded)}); append with the same -n, "
            "-A, -l and --pods, or choose another name for -o."
        )


def _run(recorder: Recorder, options: _Options, console: Console) -> Outcome:
    metrics = None
    if options.metrics_port is not None:
        metrics = MetricsServer(
            recorder, address=options.metrics_address, port=options.metrics_port
        )
        _say(console, f"Metrics on {options.metrics_address}:{metrics.port}")
    try:
        with on_signals(_ending(recorder), *ENDING), StatusDisplay(recorder, console) as display:
            return recorder.run(display.tick)
    finally:
        if metrics is not None:
            metrics.close()


def _ending(recorder: Recorder) -> Callable[[], None]:
    """First Ctrl-C (or TERM): end cleanly; second: leave at once, the trace is readable anyway."""
    asked_before = False

    def handle() -> None:
        nonlocal asked_before
        if asked_before:
            sys.stderr.write("tracekit: aborted; all that was flushed is in the trace\n")
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        asked_before = True
        recorder.stop()

    return handle


def _report(outcome: Outcome, console: Console) -> int:
    """Say how it went; the exit status."""
    if outcome.error is not None:
        raise outcome.error
    observations = sum(stream.observations for stream in outcome.streams)
    gaps = sum(stream.gaps for stream in outcome.streams)
    why = {Ending.DURATION: ", the duration is over", Ending.MAX_SIZE: ", the size is reached"}
    _say(
        console,
        f"Wrote {outcome.trace}: {counted(outcome.rows, 'row')}, "
        f"{counted(observations, 'observation')}, {counted(gaps, 'gap')}, "
        f"{format_bytes(outcome.trace_bytes)}{why.get(outcome.ending, '')}",
    )
    if outcome.logs is not None:
        said, missing = outcome.logs
        _say(console, f"Logs of {said:,} containers that ended; {missing:,} could not be had")
    if outcome.unmerged:
        _say(
            console,
            f"Its files are not all merged, that took too long: `tracekit compact {outcome.trace}` "
            "does it.",
        )
    unseen = [stream for stream in outcome.streams if stream.unseen_at_end is not None]
    for stream in unseen:
        _say(
            console,
            f"tracekit: {stream.name} was not being recorded at the end: {stream.unseen_at_end}",
        )
    return _DEAD_STREAM if unseen else 0
