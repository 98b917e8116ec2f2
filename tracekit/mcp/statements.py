"""The documents of verbs, taken apart: each sentence with the rows or verdicts it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

Document = Mapping[str, Any]


class Statement(NamedTuple):
    """One sentence of an answer; `rests_on` are verdicts, rows of the record, or rows of a view."""

    says: str
    rests_on: Sequence[Any]
    #: What else a reader may want: severity, advice.
    more: Mapping[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """It as JSON."""
        return {"says": self.says, **self.more, "rests_on": list(self.rests_on)}


def of_diagnosis(document: Document) -> Iterator[Statement]:
    """The findings, worst first."""
    for finding in document["findings"]:
        more = {name: finding[name] for name in ("id", "severity", "from", "until", "do", "thread")}
        yield Statement(finding["text"], finding["evidence"], more)


def of_narrative(document: Document) -> Iterator[Statement]:
    """What came of a Job or CronJob, then step by step."""
    steps = document["steps"]
    divergences = document["divergences"]
    if document["opening"]:
        yield Statement(document["opening"], [*map(_row, steps[-1:]), *divergences])
    for step in steps:
        more = {"details": step["details"]} if step["details"] else {}
        yield Statement(f"{step['who']} {step['what']}", [_row(step)], more)
    if document["closing"]:
        yield Statement(document["closing"], divergences or [_row(step) for step in steps[-1:]])


def _row(step: Document) -> dict[str, Any]:
    names = ("time", "resource_version", "verdict", "forced")
    return {name: step[name] for name in names if step.get(name) is not None}


def of_whatif(document: Document) -> Iterator[Statement]:
    """How many Jobs differ, then each Job that does; those that are the same are only counted."""
    target = document["to"]["kubernetes_version"]
    counts = ", ".join(f"{count} {name}" for name, count in document["counts"].items())
    said = {name: document[name] for name in ("from", "to", "settings", "draws", "calibrated")}
    yield Statement(f"by the rules of {target}: {counts}", [{"counts": document["counts"]}], said)
    for kind, name in (("Job", "jobs"), ("CronJob", "cron_jobs")):
        for answer in document.get(name, ()):
            if answer["verdict"] != "same":
                name_of = f"{kind} {answer['namespace']}/{answer['name']}"
                text = f"{name_of}, beside what was recorded: {answer['verdict']}"
                yield Statement(text, [answer])


#: Of `info`, what says where absence is evidence.
_COVERED = ("scope", "streams", "stream_notes", "gaps", "leaders", "problems")


def of_info(document: Document) -> Iterator[Statement]:
    """What was recorded, from when to when, and where nobody looked."""
    names = ("kubernetes_version", "rows", "first_time", "last_time", "verified", "jobs")
    whole = {name: document[name] for name in names}
    first, last = document["first_time"], document["last_time"]
    yield Statement(f"{document['rows']} rows from {first} to {last}", [whole])
    for name in _COVERED:
        value = document.get(name)
        rows = value if isinstance(value, list) else [value] if value else []
        for row in rows:
            yield Statement(_covered(name, row), [{name: row}])
    for name, rows in document["coverage"].items():
        for row in rows:
            yield Statement(_looked(name, row), [{name: row}])
    if not document["gaps"]:
        yield Statement("no gap was noted while it was recorded", [{"gaps": []}])


def _covered(name: str, row: Any) -> str:
    match name:
        case "streams":
            return (
                f"stream {row['stream']}: {row['rows']} rows from {row['first_time']} to "
                f"{row['last_time']}"
            )
        case "gaps":
            return f"gap in {row['stream'] or 'all streams'} from {row['from']} to {row['until']}"
        case "leaders":
            return f"lease {row['lease']} held by {row['holder'] or 'nobody'}"
        case "scope" if not any(row.values()):
            return "nothing says that less than all namespaces was asked for"
        case "problems":
            return f"damage: {row}"
    return name.replace("_", " ")


def _looked(name: str, row: Any) -> str:
    """Where somebody looked, or where nobody did."""
    if not isinstance(row, Mapping):
        return f"never looked at: {row}"
    said = "absence would have been seen" if name == "seen" else "nobody looked"
    times = f" from {row['from']} to {row['until']}" if "from" in row else ""
    return f"stream {row['stream']}, {row.get('scope', 'all of it')}{times}: {said}"


def of_timeline(document: Document) -> Iterator[Statement]:
    """What happened, in order of time."""
    for row in document["happenings"]:
        who = f" by {row['who']}" if row["who"] else ""
        yield Statement(f"{row['time']} {_named(row)}: {row['what']}{who}", [row])


def of_who(document: Document) -> Iterator[Statement]:
    """Each write with its fields; without a name or an object, everybody who wrote."""
    for row in document.get("actors", ()):
        who = row["actor"] or "somebody whose name the record does not tell"
        yield Statement(f"{who}: {row['writes']} writes to {row['objects']} objects", [row])
    for row in document.get("writes", ()):
        who = row["actor"] or "somebody whose name the record does not tell"
        yield Statement(f"{row['time']} {who}: {row['verb']} of {_named(row)}", [row])


def of_comparison(document: Document) -> Iterator[Statement]:
    """What differs between two Jobs; what is the same is only counted."""
    first, second = document["jobs"]
    rows = [*document["facts"], *document["steps_s"]]
    same = [row["name"] for row in rows if not row["differs"]]
    yield Statement(f"{first} and {second} have {len(same)} values alike", [{"same": same}])
    for row in rows:
        if row["differs"]:
            yield Statement(f"{row['name']}: {row['first']} and {row['second']}", [row])
    for row in document["fields"]:
        yield Statement(f"{row['path']} differs", [row])
    for name, pods in zip(document["jobs"], document["pods"], strict=True):
        for pod in pods:
            yield Statement(f"{name} had pod {pod['pod']}, {pod['phase']}", [pod])


def _named(row: Document) -> str:
    space = f"{row['namespace']}/" if row.get("namespace") else ""
    return f"{row['kind']} {space}{row['name']}"


def of_rows(lines: bytes) -> Iterator[Statement]:
    """Rows of a query, one JSON document a line: each rests on itself."""
    for number, line in enumerate(lines.splitlines(), 1):
        yield Statement(f"row {number}", [orjson.loads(line)])
