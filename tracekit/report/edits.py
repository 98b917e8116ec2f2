"""Who changed what, as text and as a document: `tracekit who`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from tracekit.base.kube.field_changes import FieldChange, shown
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.report.table import counted, write_line, write_parts, write_table
from tracekit.sql.edits import Edit

#: What a line of text shows of a value, and of the fields of one write.
_VALUE_CHARS = 120
_FIELDS = 12
_UNKNOWN = "the record does not tell"


def write_edits(edits: Sequence[Edit], out: TextIO) -> None:
    """One write after the other, each with its fields, old and new."""
    for number, edit in enumerate(edits):
        if number:
            out.write("\n")
        who = edit.actor or "somebody"
        parts = [
            (f"{clock(edit.at_ns)}  ", ""),
            (who, "bold"),
            (f" {_done(edit)} {edit.kind} {_key(edit)}", ""),
        ]
        write_parts(parts, out, 0, 4)
        bare = ", which has not what it changed" if edit.is_bare else ""
        write_line(f"{edit.evidence or _UNKNOWN}{bare}", out, style="dim", by=4, then=4)
        if edit.code is not None:
            write_line(f"{edit.code}: {edit.message or 'no message'}", out, by=4, then=6)
        for field in edit.fields[:_FIELDS]:
            write_line(_line(field, edit), out, by=4, then=6)
        if len(edit.fields) > _FIELDS:
            more = counted(len(edit.fields) - _FIELDS, "more field")
            write_line(f"… {more}: -o json has all", out, by=4, then=6)


def _line(field: FieldChange, edit: Edit) -> str:
    new = shown(field.new, _VALUE_CHARS)
    if edit.verb.startswith("set"):
        return f"{field.path}: {new}"
    return f"{field.path}: {shown(field.old, _VALUE_CHARS)} → {new}"


def _done(edit: Edit) -> str:
    return f"asked to {edit.verb}" if edit.code is not None else edit.verb


def _key(edit: Edit) -> str:
    return (
        f"{edit.namespace}/{edit.name}"
        if edit.namespace and edit.name
        else edit.namespace or edit.name
    )


def clock(at_ns: int | None) -> str:
    """A time to the millisecond, in UTC; whole seconds stay whole."""
    if at_ns is None:
        return "at no known time"
    second = (format_rfc3339(at_ns - at_ns % NS_PER_S) or "")[:19].replace("T", " ")
    return f"{second}.{at_ns % NS_PER_S // 1_000_000:03}" if at_ns % NS_PER_S else second


def edit_document(edit: Edit) -> dict[str, Any]:
    """One write as JSON has it."""
    return {
        "time_ns": edit.at_ns,
        "time": format_rfc3339(edit.at_ns),
        "kind": edit.kind,
        "namespace": edit.namespace or None,
        "name": edit.name or None,
        "resource_version": edit.resource_version,
        "verb": edit.verb,
        "actor": edit.actor,
        "actor_names": list(edit.names),
        "evidence": edit.evidence or None,
        "fields": [{"path": f.path, "old": f.old, "new": f.new} for f in edit.fields],
        "code": edit.code,
        "message": edit.message or None,
    }


def actor_rows(edits: Iterable[Edit]) -> list[dict[str, Any]]:
    """Everybody who wrote: how much, to how many objects, from when to when."""
    found: dict[str | None, dict[str, Any]] = {}
    objects: dict[str | None, set[tuple[str, str, str]]] = {}
    for edit in edits:
        row = found.setdefault(
            edit.actor,
            {"actor": edit.actor, "writes": 0, "refused": 0, "first_ns": None, "last_ns": None},
        )
        row["refused" if edit.code is not None else "writes"] += 1
        objects.setdefault(edit.actor, set()).add((edit.kind, edit.namespace, edit.name))
        if edit.at_ns is not None:
            row["first_ns"] = min(row["first_ns"] or edit.at_ns, edit.at_ns)
            row["last_ns"] = max(row["last_ns"] or edit.at_ns, edit.at_ns)
    rows = [{**row, "objects": len(objects[actor])} for actor, row in found.items()]
    return sorted(rows, key=lambda row: (-row["writes"], row["actor"] or ""))


def write_actors(rows: Sequence[dict[str, Any]], out: TextIO) -> None:
    """A table of `actor_rows`."""
    write_table(
        ["ACTOR", "WRITES", "WITHOUT EFFECT", "OBJECTS", "LAST"], _cells(rows), out, right={1, 2, 3}
    )


def _cells(rows: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        yield [
            row["actor"] or f"({_UNKNOWN})",
            f"{row['writes']:,}",
            f"{row['refused']:,}",
            f"{row['objects']:,}",
            clock(row["last_ns"]),
        ]
