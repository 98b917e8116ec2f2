"""`tracekit info`: what a trace covers, and what it does not."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

import click

from tracekit.base.errors import TraceFormatError, UsageError
from tracekit.base.escaping import for_terminal
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.replay.commit_times import Timed
from tracekit.cli.clocks import clock_document, write_clocks
from tracekit.cli.completion import complete_trace
from tracekit.cli.coverage import coverage_document, scope_words, write_coverage
from tracekit.cli.damage import note_damage
from tracekit.cli.messages import tell_all
from tracekit.cli.snapshot_input import as_trace, look_option
from tracekit.cli.trace_options import clock_offset_ns, clock_option, output_option
from tracekit.judge.clocks import timed_of
from tracekit.report.documents import write_document
from tracekit.report.table import counted, write_facts, write_line, write_table
from tracekit.trace.format.header import header_document
from tracekit.trace.format.model import Gap, RowType, TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.summary import TraceSummary, summarize

_GAPS_SHOWN_MAX = 20


@click.command("info")
@click.argument("trace", metavar="TRACE", shell_complete=complete_trace)
@click.option(
    "--verify", is_flag=True, help="Only compare every byte with its checksum, and decode it."
)
@look_option
@clock_option
@output_option
def info(trace: str, *, verify: bool, output: str, **options: Any) -> None:
    """Say what a trace holds: versions, streams, coverage, gaps, Jobs.

    Damaged files are left out and named, and the exit status is 2.
    """
    if verify and (output != "table" or options["clock_offset"] is not None):
        raise UsageError("--verify only says whether all is there: leave -o and --clock-offset out")
    place = as_trace(trace)
    reader = TraceReader(place, on_damage="skip", clock_offset_ns=clock_offset_ns(options))
    if verify:
        _verify(trace, reader)
        return
    summary = summarize(reader)
    times = timed_of(reader)
    if reader.is_damaged:
        note_damage()
    if output == "json":
        write_document(document(trace, summary, times), sys.stdout)
    else:
        render(trace, summary, times, sys.stdout)
    tell_all(summary.problems, set())


def _verify(trace: str, reader: TraceReader) -> None:
    reader.snapshot.decode()  # who can write a file can seal it
    if reader.problems:
        raise TraceFormatError("; ".join(reader.problems))
    if not reader.is_verifiable:
        raise TraceFormatError(
            f"{trace} cannot be verified: it, or a part of it, was written before traces had "
            "checksums; import or record it anew"
        )
    what = f"{reader.rows:,} rows, {reader.size_bytes:,} bytes, all as they were written"
    click.echo(for_terminal(f"{trace}: {what}"))


def document(trace: str, summary: TraceSummary, times: Timed) -> dict[str, Any]:
    """The summary as it is printed with `-o json`; times are RFC 3339."""
    return {
        "schema_version": 1,
        "trace": trace,
        **header_document(summary.header),
        "streams": [
            {
                "stream": stream.stream,
                "rows": stream.rows,
                "types": {str(name): count for name, count in stream.counts.items()},
                "first_time": format_rfc3339(stream.first_ns),
                "last_time": format_rfc3339(stream.last_ns),
                "first_resource_version": stream.first_rv,
                "last_resource_version": stream.last_rv,
            }
            for stream in summary.streams
        ],
        "stream_notes": dict(summary.header.streams),
        "rows": summary.rows,
        "segments": summary.segments,
        "size_bytes": summary.size_bytes,
        "kept_rows": summary.kept_rows,
        "first_time": format_rfc3339(summary.first_ns),
        "last_time": format_rfc3339(summary.last_ns),
        "gaps": [_gap_document(gap) for gap in summary.gaps],
        "coverage": coverage_document(summary.coverage),
        "clock": clock_document(times),
        "jobs": {
            "total": summary.jobs.total,
            "names": summary.jobs.names,
            "by_outcome": dict(summary.jobs.by_outcome),
            "deleted": summary.jobs.deleted,
        },
        "leaders": [
            {
                "lease": leader.lease,
                "holder": leader.holder,
                "acquired": format_rfc3339(leader.acquired_ns),
                "transitions": leader.transitions,
                "first_seen": format_rfc3339(leader.first_seen_ns),
                "last_seen": format_rfc3339(leader.last_seen_ns),
            }
            for leader in summary.leaders
        ],
        "verified": summary.verified,
        "problems": summary.problems,
    }


def _gap_document(gap: Gap) -> dict[str, Any]:
    return {
        "stream": gap.stream,
        "reason": gap.reason,
        "last_resource_version": gap.last_rv,
        "next_resource_version": gap.next_rv,
        "from": format_rfc3339(gap.from_ns),
        "until": format_rfc3339(gap.until_ns),
        "seq": gap.seq,
    }


def render(trace: str, summary: TraceSummary, times: Timed, out: TextIO) -> None:
    """Print the summary for people."""
    header = summary.header
    write_facts(
        (
            ("Trace", f"{trace} (format {header.format_version})"),
            ("Kubernetes", header.kubernetes_version or "unknown"),
            ("Feature gates", _gates(header.feature_gates)),
            ("Controller flags", " ".join(header.controller_flags) or "none known"),
            ("Scope", _scope(summary)),
            ("Sessions", ", ".join(str(s.get("source", "?")) for s in header.sessions) or "none"),
            ("Time", _span(summary.first_ns, summary.last_ns)),
            ("Size", f"{counted(summary.rows, 'row')}, {_size(summary)}"),
            ("Checksums", "compared, all fit" if summary.verified else _unverified(summary)),
        ),
        out,
    )
    if summary.streams:
        _write_streams(summary, out)
    _write_origins(header, out)
    jobs = summary.jobs
    if jobs.total or summary.coverage.has("jobs"):
        _heading(f"Jobs: {jobs.total:,}, of which {jobs.deleted:,} were deleted", out)
    else:
        _heading("Jobs: not recorded", out)
    if jobs.names != jobs.total:
        again = f"They have {jobs.names:,} names, and some were used again; replay counts names."
        write_line(again, out)
    rows = [(f"{count:,}", outcome) for outcome, count in jobs.by_outcome.items()]
    if rows:
        write_table(["JOBS", "OUTCOME"], rows, out, right={0})
    if summary.leaders:
        _heading("Leaders", out)
        _write_leaders(summary, out)
    write_coverage(summary.coverage, out)
    write_clocks(times, out)
    _write_gaps(summary.gaps, out)


def _write_origins(header: TraceHeader, out: TextIO) -> None:
    """What an import put together and lost, and what its source does not hold."""
    said = [
        f"{name}: not recorded ({note.get('reason') or 'no reason given'})"
        for name, note in header.streams.items()
        if isinstance(note, Mapping) and note.get("recorded") is False
    ]
    times = header.scope.get("times")
    if times:
        said.append(f"times: {times}")
    for session in header.sessions:
        report = session.get("report")
        for name, heading in _REPORTED.items():
            counts = report.get(name) if isinstance(report, Mapping) else None
            if isinstance(counts, Mapping):
                said += [f"{heading}: {count} {what}" for what, count in counts.items()]
    if said:
        _heading("What the source did not hold or tell", out)
        for sentence in said:
            write_line(sentence, out)


#: What the parts of an import's report are called.
_REPORTED = {"derived": "put together", "calls": "requests without a state", "problems": "noticed"}


def _unverified(summary: TraceSummary) -> str:
    if summary.problems:
        return "some do not fit, or files are gone"
    return "none: written before there were any, so damage may go unnoticed"


def _heading(text: str, out: TextIO) -> None:
    out.write("\n")
    write_line(text, out, style="bold")


def _gates(gates: Any) -> str:
    return ",".join(f"{name}={str(on).lower()}" for name, on in gates.items()) or "none known"


def _scope(summary: TraceSummary) -> str:
    """What was watched, as its recorder said; of an import what its lists and rows tell."""
    header = summary.header
    namespaces, selector = header.scope.get("namespaces"), header.scope.get("selector")
    if namespaces is not None:
        text = ", ".join(namespaces)
    elif header.sessions and all(s.get("source") == "record" for s in header.sessions):
        text = "all namespaces"
    else:
        text = scope_words(summary.coverage)
    return f"{text}; selector {selector}" if selector else text


def _span(first_ns: int | None, last_ns: int | None) -> str:
    if first_ns is None or last_ns is None:
        return "no row has a time"
    seconds = (last_ns - first_ns) / 1e9
    return f"{_time(first_ns)} to {_time(last_ns)} ({seconds:,.1f} s)"


def _time(at_ns: int | None) -> str:
    text = format_rfc3339(None if at_ns is None else at_ns - at_ns % 1_000_000)
    return text or "-"


def _size(summary: TraceSummary) -> str:
    each = f", {summary.size_bytes / summary.rows:.1f} bytes a row" if summary.rows else ""
    files = "1 file" if summary.segments == 1 else f"{summary.segments} files"
    kept = f"; {counted(summary.kept_rows, 'row')} kept as they came" if summary.kept_rows else ""
    lost = sum(stream.counts.get(RowType.UNPARSED.value, 0) for stream in summary.streams)
    unread = f"; {counted(lost, 'row')} kept as text that nobody reads (UNPARSED)" if lost else ""
    return f"{summary.size_bytes:,} bytes in {files}{each}{kept}{unread}"


#: Heading -> the types of rows that it counts.
_COUNTED = {
    "LISTS": "LIST_BEGIN",
    "LISTED": "LIST",
    "ADDED": "ADDED",
    "MODIFIED": "MODIFIED",
    "DELETED": "DELETED",
    "BOOKMARKS": "BOOKMARK",
}


def _write_streams(summary: TraceSummary, out: TextIO) -> None:
    """What each stream has, then when; columns that are all zero are left out."""
    counts = []
    for stream in summary.streams:
        found = {str(name): count for name, count in stream.counts.items()}
        own = {heading: found.get(kind, 0) for heading, kind in _COUNTED.items()}
        own["OTHER"] = stream.rows - sum(own.values()) - found.get("LIST_END", 0)
        counts.append(own)
    shown = [name for name in (*_COUNTED, "OTHER") if any(own[name] for own in counts)]
    _heading("Streams", out)
    rows = [
        [s.stream or "(none)", f"{s.rows:,}", *(f"{own[name]:,}" for name in shown)]
        for s, own in zip(summary.streams, counts, strict=True)
    ]
    write_table(["STREAM", "ROWS", *shown], rows, out, right=range(1, len(shown) + 2))
    out.write("\n")
    spans = [
        (
            stream.stream or "(none)",
            _time(stream.first_ns),
            _time(stream.last_ns),
            "-" if stream.first_rv is None else f"{stream.first_rv} to {stream.last_rv}",
        )
        for stream in summary.streams
    ]
    write_table(["STREAM", "FIRST SEEN", "LAST SEEN", "REVISIONS"], spans, out, fold={0, 3})


def _write_leaders(summary: TraceSummary, out: TextIO) -> None:
    rows = [
        (
            leader.lease,
            leader.holder or "nobody",
            _time(leader.acquired_ns),
            _time(leader.first_seen_ns),
            _time(leader.last_seen_ns),
        )
        for leader in summary.leaders
    ]
    headings = ("LEASE", "HOLDER", "ACQUIRED", "FIRST SEEN", "LAST SEEN")
    write_table(headings, rows, out, fold={0, 1})


def _write_gaps(gaps: list[Gap], out: TextIO) -> None:
    if not gaps:
        _heading("No gaps", out)
        return
    _heading(f"Gaps: {len(gaps):,}", out)
    rows = [
        (
            gap.stream or "(all)",
            _time(gap.from_ns),
            _time(gap.until_ns),
            f"{gap.last_rv or '?'} to {gap.next_rv or '?'}",
            gap.reason or "",
        )
        for gap in gaps[:_GAPS_SHOWN_MAX]
    ]
    headings = ("STREAM", "FROM", "UNTIL", "REVISIONS", "REASON")
    write_table(headings, rows, out, below=len(headings) - 1)
    if len(gaps) > _GAPS_SHOWN_MAX:
        write_line(f"… and {len(gaps) - _GAPS_SHOWN_MAX:,} more (all of them: -o json)", out)
