"""`kubectl describe job|pod|cronjob`: kubectl pkg/describe/describe.go names the fields.

A description begins with `Name:` at the margin. Fields stand at the margin too, what belongs to
them is indented. Conditions of a Job are not printed: whether one failed, its Events tell, while
they last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tracekit.base.kube.printed.ages import moment_of
from tracekit.base.kube.printed.model import (
    LeftOut,
    Shown,
    ShownCondition,
    ShownContainer,
    ShownEvent,
)
from tracekit.base.kube.printed.tables import number_of, owned_by_labels

BEGINS = re.compile(r"^Name: +(\S+)\s*$")
_FIELD = re.compile(r"^([A-Za-z][\w .()/-]*?):(?:\s+(.*?))?\s*$")
_STATUSES = re.compile(
    r"(\d{1,9}) (?:Active|Running)(?: \(\d+ Ready\))? / (\d{1,9}) Succeeded / (\d{1,9}) Failed"
)
_EVENT = re.compile(
    r"^\s+(?P<type>Normal|Warning)\s+(?P<reason>\S+)\s+(?P<age><unknown>|<invalid>|\w+)"
    r"(?: \(x(?P<count>\d{1,9}) over (?P<since>[^)]+)\))?\s+"
    r"(?P<source>\S+(?:, \S+)?)(?:\s+(?P<message>.*))?$"
)
#: Of clients before 1.6.
_OLD_EVENT = re.compile(
    r"^\s+\w+\s+(?P<age>\w+)\s+(?P<count>\d{1,9})\s+\{(?P<source>[^}\s]+)[^}]*\}\s+"
    r"(?:\S+\s+)?(?P<type>Normal|Warning)\s+(?P<reason>\S+)(?:\s+(?P<message>.*))?$"
)
_MOMENT = r"(?:\w{3}, \d\d \w{3} \d{4} [\d:]{8} [+-]\d{4}|<unknown>)"
#: A condition of a node: when it was last reported is passed over.
_CONDITION = re.compile(
    rf"^\s+([A-Z]\w*)\s+(True|False|Unknown)\s+{_MOMENT}\s+({_MOMENT})(?:\s+(\w+))?(?:\s+(\S.*?))?\s*$"
)
_UNSET = ("", "<none>", "<unset>", "<unknown>")
_UID = re.compile(r"(?:^|,)(?:batch\.kubernetes\.io/)?controller-uid(?:=| in \()([0-9a-f-]{36})")


class Field(NamedTuple):
    """A field at the margin: its value, and the lines that belong to it."""

    value: str
    lines: list[str]


def described(lines: Sequence[str]) -> Iterator[Shown | ShownEvent | LeftOut]:
    """The object of one description, whose first line is `Name:`, and its Events."""
    fields = _fields(lines)
    name = fields["Name"].value
    shown = _object(name, fields)
    if "Non-terminated Pods" in fields:
        conditions = tuple(_of_node(fields.get("Conditions")))
        taints = fields.get("Taints")
        found = (taints.value, *taints.lines) if taints is not None else ()
        texts = tuple(text.strip() for text in found if text not in _UNSET)
        if conditions or texts:
            shown = Shown(kind="Node", how="describe", name=name, node_taints=texts)
            shown.node_conditions = conditions
            yield shown
        yield from _events("Node", name, None, fields.get("Events"))
        return
    if shown is None:
        yield LeftOut("descriptions of other kinds")
        return
    yield shown
    yield from _events(shown.kind, shown.name, shown.namespace, fields.get("Events"))


def _fields(lines: Sequence[str]) -> dict[str, Field]:
    found: dict[str, Field] = {}
    last: Field | None = None
    for line in lines:
        match = None if line[:1].isspace() else _FIELD.match(line)
        if match is not None:
            last = Field(match[2] or "", [])
            found.setdefault(match[1], last)
        elif last is not None and line.strip():
            last.lines.append(line)
    return found


def _object(name: str, fields: dict[str, Field]) -> Shown | None:
    """The object by the fields that only its kind has."""
    space = fields.get("Namespace")
    namespace = space.value or None if space is not None else None
    plain = {k: f.value for k, f in fields.items() if f.value not in _UNSET}
    about = {"name": name, "namespace": namespace, "printed": plain}
    if {"Schedule", "Concurrency Policy"} <= fields.keys():
        shown = Shown(kind="CronJob", how="describe", **about)  # type: ignore[arg-type]
        _cronjob(shown, plain)
    elif "Pods Statuses" in fields or {"Parallelism", "Completions"} <= fields.keys():
        shown = Shown(kind="Job", how="describe", **about)  # type: ignore[arg-type]
        _job(shown, plain, fields)
    elif "Containers" in fields and {"Node", "Status"} <= fields.keys():
        shown = Shown(kind="Pod", how="describe", **about)  # type: ignore[arg-type]
        _pod(shown, plain, fields)
    else:
        return None
    return shown


def _labels(field: Field | None) -> dict[str, str] | None:
    if field is None:
        return None
    lines = (field.value, *field.lines)  # clients before 1.6 printed them in one
    pairs = (part.strip().partition("=") for line in lines for part in line.split(","))
    return {name: value for name, sign, value in pairs if sign}


def _owner(shown: Shown, plain: dict[str, str]) -> None:
    kind, sign, name = plain.get("Controlled By", "").partition("/")
    if sign:
        shown.owner_kind, shown.owner_name = kind, name


def _switch(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get((text or "").lower())


def _cronjob(shown: Shown, plain: dict[str, str]) -> None:
    shown.schedule = plain.get("Schedule")
    shown.time_zone = plain.get("Time Zone")
    shown.suspended = _switch(plain.get("Suspend"))
    shown.last_schedule = moment_of(plain.get("Last Schedule Time", ""))


def _job(shown: Shown, plain: dict[str, str], fields: dict[str, Field]) -> None:
    shown.labels = _labels(fields.get("Labels"))
    _owner(shown, plain)
    shown.parallelism = number_of(plain.get("Parallelism"))
    shown.completions = number_of(plain.get("Completions"))
    shown.backoff_limit = number_of(plain.get("Backoff Limit"))
    shown.suspended = _switch(plain.get("Suspend"))
    shown.started = moment_of(plain.get("Start Time", ""))
    shown.completed = moment_of(plain.get("Completed At", ""))
    counts = _STATUSES.match(plain.get("Pods Statuses", ""))
    if counts is not None:
        shown.active, shown.succeeded, shown.failed = map(int, counts.groups())
    uid = _UID.search(plain.get("Selector", ""))
    shown.uid = uid[1] if uid is not None else None
    owned_by_labels(shown)


def _pod(shown: Shown, plain: dict[str, str], fields: dict[str, Field]) -> None:
    shown.labels = _labels(fields.get("Labels"))
    _owner(shown, plain)
    if shown.owner_kind in (None, "Job"):
        owned_by_labels(shown)
    shown.status = plain.get("Status", "").partition(" ")[0] or None
    shown.reason, shown.message = plain.get("Reason"), plain.get("Message")
    shown.started = moment_of(plain.get("Start Time", ""))
    shown.node = plain.get("Node", "").partition("/")[0] or None
    containers = (
        *_containers(fields.get("Init Containers"), init=True),
        *_containers(fields.get("Containers"), init=False),
    )
    shown.containers = containers
    shown.conditions = dict(_pairs(fields.get("Conditions")))


def _pairs(field: Field | None) -> Iterator[tuple[str, str]]:
    for line in field.lines if field is not None else ():
        words = line.split()
        if len(words) == 2 and words[1] in ("True", "False", "Unknown"):  # noqa: PLR2004 - a pair
            yield words[0], words[1]


def _of_node(field: Field | None) -> Iterator[ShownCondition]:
    for line in field.lines if field is not None else ():
        if (found := _CONDITION.match(line)) is not None:
            kind, status, since, reason, message = found.groups()
            yield ShownCondition(kind, status, moment_of(since), reason, message)


def _containers(field: Field | None, *, init: bool) -> Iterator[ShownContainer]:
    """Each container: its name stands least indented, and alone."""
    lines = field.lines if field is not None else []
    margin = min((_indent(line) for line in lines), default=0)
    name, own = "", list[str]()
    for line in (*lines, ""):
        if line and (_indent(line) > margin or not line.rstrip().endswith(":")):
            own.append(line)
            continue
        if name:
            yield _container(name, own, init=init)
        name, own = line.strip().rstrip(":"), []


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _container(name: str, lines: Sequence[str], *, init: bool) -> ShownContainer:
    margin = min((_indent(line) for line in lines), default=0)
    top: dict[str, str] = {}
    below: dict[str, dict[str, str]] = {"State": {}, "Last State": {}}
    section = ""
    for line in lines:
        match = _FIELD.match(line.strip())
        if match is None:
            continue
        key, value = match[1], match[2] or ""
        if _indent(line) == margin:
            section = key
            top.setdefault(key, value)
        elif section in below:
            below[section].setdefault(key, value)
    now, before = below["State"], below["Last State"]
    return ShownContainer(
        name,
        init,
        top.get("Image") or None,
        top.get("State") or None,
        now.get("Reason"),
        now.get("Message"),
        number_of(now.get("Exit Code")),
        moment_of(now.get("Started", "")),
        moment_of(now.get("Finished", "")),
        before.get("Reason"),
        number_of(before.get("Exit Code")),
        number_of(top.get("Restart Count")),
    )


def _events(
    kind: str, name: str, namespace: str | None, field: Field | None
) -> Iterator[ShownEvent | LeftOut]:
    last: ShownEvent | None = None
    for line in field.lines if field is not None else ():
        match = _EVENT.match(line) or _OLD_EVENT.match(line)
        if match is None:
            if line.split()[:1] in (["Type"], ["FirstSeen"]) or not line.strip("- \t"):
                continue
            if last is not None:  # a message of several lines
                last.message = f"{last.message}\n{line.strip()}"
            else:
                yield LeftOut("lines of Events that cannot be read")
            continue
        if last is not None:
            yield last
        said = match.groupdict()
        last = ShownEvent(
            kind=kind,
            name=name,
            namespace=namespace,
            how="describe",
            type=said["type"],
            reason=said["reason"],
            message=said["message"] or "",
            source=said["source"],
            age=said["age"],
            count=int(said["count"] or 1),
            since=said.get("since"),
        )
    if last is not None:
        yield last
