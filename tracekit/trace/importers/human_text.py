"""Text that programs print for people, of which nothing is read: what to ask for in its place.

Tables and descriptions of Jobs, CronJobs, pods and Events are read (`kubectl_text`).

| text | told by |
|---|---|
| tables of `kubectl get` of other kinds | the heads of the columns |
| `kubectl describe` of other kinds | `Name:` and what follows it in a column |
| what kubectl says where it has no objects, kept by `2>&1` | its words |
| `journalctl -o json` without `--all` | a MESSAGE that is null: it was longer than 4,096 bytes |
"""

from __future__ import annotations

import re
from itertools import islice

from tracekit.trace.importers.sample import Sample, unstamped

_LINES_MAX = 40
_TABLE = re.compile(
    rb"^(?:NAMESPACE +)?(?:NAME +(?:\S+ +)*(?:AGE|READY|STATUS)\b|LAST SEEN +(?:\S+ +)*REASON\b)"
)
_DESCRIBED = re.compile(rb"^Name: +\S")
_BESIDE = re.compile(
    rb"^(?:Namespace|Labels|Selector|Start Time|Annotations|Status): ", re.MULTILINE
)
#: What kubectl says where it prints no object; upstream: kubectl, pkg/cmd/util/helpers.go.
_NO_OBJECTS = (
    (
        re.compile(rb"Error from server \(Forbidden\): |error: You must be logged in"),
        "who asked may not, `kubectl auth can-i list pods -A` tells whether you may",
    ),
    (
        re.compile(rb"Error from server(?: \(\w+\))?: "),
        "the API server answered with an error",
    ),
    (
        re.compile(rb"No resources found"),
        "there was nothing of what was asked for, which does not stand there",
    ),
    (
        re.compile(
            rb"The connection to the server \S+ was refused|Unable to connect to the server: "
        ),
        "it did not reach the API server",
    ),
    (
        re.compile(rb"error: the server doesn't have a resource type"),
        "the API server has no such resource",
    ),
)
_INSTEAD = "`kubectl get cronjobs,jobs,pods,events -A -o json` prints a file that has them"


def printed_for_people(sample: Sample) -> str:
    """What is said of a file that was printed for people, as the rest of a sentence; else ""."""
    if not sample.is_text:
        return ""
    lines = [unstamped(line)[1] for line in islice(sample.head.split(b"\n"), _LINES_MAX)]
    if any(map(_TABLE.match, lines)):
        return (
            "is a table that `kubectl get` prints for people, without the columns by which Jobs, "
            f"CronJobs, pods and Events are known: {_INSTEAD}"
        )
    if any(map(_DESCRIBED.match, lines)) and _BESIDE.search(sample.head):
        return (
            "is what `kubectl describe` prints for people, of no Job, CronJob or pod: " + _INSTEAD
        )
    begin = sample.head.lstrip()
    for said, means in _NO_OBJECTS:
        if said.match(begin):
            return (
                f"has what kubectl says where it prints no objects: {means}; `kubectl get "
                "cronjobs,jobs,pods,events -A -o json` prints a file that can be imported"
            )
    if b'"MESSAGE"' in sample.head and any(
        value.get("MESSAGE", "") is None for value in sample.values
    ):
        return (
            "has journal entries whose MESSAGE is null, which journalctl leaves out where it is "
            "longer than 4,096 bytes: `journalctl -u UNIT -o json --all` prints them whole"
        )
    return ""
