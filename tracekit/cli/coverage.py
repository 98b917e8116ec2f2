"""Where and when a trace saw its streams, as `tracekit info` prints it."""

from __future__ import annotations

from typing import Any, TextIO

from tracekit.base.coverage import UNKNOWN, Coverage, Scope, Span
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.report.table import counted, write_line, write_table

_SHOWN_MAX = 40
#: Namespaces that are named where a few words are wanted.
_NAMED_MAX = 5
#: Streams of one recorder begin one after the other: so long before a first list is no hole yet.
_BEGINNING_NS = NS_PER_S


def coverage_document(coverage: Coverage) -> dict[str, Any]:
    """The coverage as it is printed with `-o json`; times are RFC 3339."""
    return {
        "seen": [
            {
                "stream": span.stream,
                "scope": str(span.scope),
                "from": format_rfc3339(span.from_ns) if span.from_ns else None,
                "until": format_rfc3339(span.until_ns) if span.until_ns else None,
                "look": not span.watched,
            }
            for span in coverage.spans
        ],
        "holes": [
            {
                "stream": stream,
                "scope": str(scope),
                "from": format_rfc3339(from_ns),
                "until": format_rfc3339(until_ns),
            }
            for stream, scope, _ in _parts(coverage)
            for from_ns, until_ns in coverage.holes_of(stream, scope)
        ],
        "unseen": dict(coverage.unseen),
    }


def write_coverage(coverage: Coverage, out: TextIO) -> None:
    """Print it for people: a line for each stream and scope, and what was never seen."""
    out.write("\n")
    heading = "Coverage: elsewhere, and in holes, nothing follows from what is absent"
    write_line(heading, out, style="bold")
    parts = _parts(coverage)
    rows = [
        (stream, str(scope), _how(spans), _time(spans[0].from_ns), _time(spans[-1].until_ns),
         _unseen(coverage, stream, scope, spans))
        for stream, scope, spans in parts[:_SHOWN_MAX]
    ]  # fmt: skip
    rows += [(name, "nothing", why, "-", "-", "all of it") for name, why in coverage.unseen.items()]
    headings = ("STREAM", "SCOPE", "SEEN", "FROM", "UNTIL", "HOLES")
    write_table(headings, rows, out, fold={0, 1, 2, 5})
    if len(parts) > _SHOWN_MAX:
        write_line(f"… and {len(parts) - _SHOWN_MAX:,} more (all of them: -o json)", out)


def scope_words(coverage: Coverage) -> str:
    """What was looked at, in a few words; where streams differ, the table tells."""
    scopes = {span.scope for span in coverage.spans}
    if len(scopes) > 1:
        return "not the same for all streams, see Coverage"
    scope = next(iter(scopes), UNKNOWN)
    if scope.namespaces is not None and len(scope.namespaces) > _NAMED_MAX:
        return f"{len(scope.namespaces):,} namespaces, see Coverage"
    return str(scope) if scope != UNKNOWN else "unknown"


def _parts(coverage: Coverage) -> list[tuple[str, Scope, list[Span]]]:
    """The spans by stream and scope."""
    found: dict[tuple[str, Scope], list[Span]] = {}
    for span in coverage.spans:
        found.setdefault((span.stream, span.scope), []).append(span)
    return [(*key, spans) for key, spans in found.items()]


def _how(spans: list[Span]) -> str:
    if all(span.is_look for span in spans) and any(span.watched for span in spans):
        return "watched, of which all rows have one time"
    looks = sum(not span.watched for span in spans)
    return "watched" if looks < len(spans) else f"{counted(looks, 'look')}, not watched"


def _unseen(coverage: Coverage, stream: str, scope: Scope, spans: list[Span]) -> str:
    """The holes of a stream in words."""
    if all(span.is_look for span in spans):
        return "all other times"
    start_ns = min(span.from_ns for span in coverage.spans)
    holes = [
        (from_ns, until_ns)
        for from_ns, until_ns in coverage.holes_of(stream, scope)
        if from_ns > start_ns or until_ns - from_ns >= _BEGINNING_NS
    ]
    if not holes:
        return "-"
    total_s = sum(until_ns - from_ns for from_ns, until_ns in holes) / NS_PER_S
    first_ns, last_ns = holes[0]
    return f"{counted(len(holes), 'hole')}, {total_s:,.1f} s, from {_time(first_ns)}" + (
        f" to {_time(last_ns)}" if len(holes) == 1 else " on"
    )


def _time(at_ns: int) -> str:
    """A time; of a look in which nothing tells when it was made there is none."""
    return (format_rfc3339(at_ns - at_ns % 1_000_000) if at_ns else None) or "-"
