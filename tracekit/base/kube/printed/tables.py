"""Tables of `kubectl get`: kubernetes pkg/printers/internalversion/printers.go names the columns.

Columns are told by their heads, in any order, and rows are taken apart at two spaces or more; where
cells are empty, by the places of the heads. With `-w` the places wander, so they come second.
"""

from __future__ import annotations

import re
from typing import Literal, cast

from msgspec import Struct

from tracekit.base.kube.events import MAKERS, PDB
from tracekit.base.kube.printed.model import Kind, LeftOut, Shown, ShownEvent

_COLUMNS = (
    "NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE",
    "READINESS GATES", "COMPLETIONS", "DURATION", "CONTAINERS", "IMAGES", "IMAGE(S)",
    "CONTAINER(S)", "SELECTOR", "DESIRED", "SUCCESSFUL", "SCHEDULE", "TIMEZONE", "SUSPEND",
    "ACTIVE", "LAST SCHEDULE", "LAST SEEN", "FIRST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT",
    "SOURCE", "MESSAGE", "COUNT", "KIND", "EVENT", "LABELS",
)  # fmt: skip
_HEAD = re.compile(
    "|".join(re.escape(name) for name in sorted(_COLUMNS, key=len, reverse=True))
    + r"|[A-Z][A-Z0-9()./_-]*"
)
_HEAD_LINE = re.compile(r"[A-Z][A-Z0-9()./_-]*(?: +[A-Z][A-Z0-9()./_-]*){1,24} *")
_GAP = re.compile(r" {2,}|\t+")
_PREFIXES = {
    "pod": "Pod", "job.batch": "Job", "job": "Job", "cronjob.batch": "CronJob",
    "cronjob": "CronJob",
}  # fmt: skip
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_POD_ROW = re.compile(
    r"([a-z0-9][-a-z0-9]* +)?[a-z0-9][-a-z0-9.]* +\d+/\d+ +[A-Z][\w:/.-]+ +\d+(?: \([^)]+ ago\))? +"
    r"(?:\d+[ydhms]){1,2}"
)
#: A row of `kubectl get events` that stands alone, as `| grep` leaves it.
_EVENT_ROW = re.compile(
    r"([a-z0-9][-a-z0-9]* {2,})?(?:(?:\d+[ydhms]){1,2}|<unknown>|<invalid>)"
    r"(?: \(x\d+ over [^)]*\))? {2,}(?:Normal|Warning) {2,}[A-Z]\w*"
    r" {2,}[a-z]\w*/[a-z0-9][-a-z0-9.]* {2,}\S.*"
)
_KINDS = {
    "jobs": "Job", "pods": "Pod", "cronjobs": "CronJob",
    **{kind.lower(): kind for kind in ("Job", "Pod", "CronJob", "Node", PDB, *MAKERS)},
}  # fmt: skip
_JOB_NAME = ("batch.kubernetes.io/job-name", "job-name")
_JOB_UID = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NONE = ("", "<none>", "<unset>", "<unknown>", "<invalid>")

What = Literal["Job", "CronJob", "Pod", "Event"]


class Head(Struct, frozen=True):
    """The head of a table: of what it is, its columns and where each begins."""

    what: What | None
    columns: tuple[str, ...]
    places: tuple[int, ...]


def head_of(line: str) -> Head | None:
    """The head that a line is, None if it is none."""
    text = line.rstrip()
    if not _HEAD_LINE.fullmatch(text):
        return None
    found = list(_HEAD.finditer(text))
    columns = tuple(match[0] for match in found)
    named = {*columns}
    if "NAME" not in named and not {"REASON", "OBJECT"} <= named:
        return None
    if len(named & {*_COLUMNS}) < 2 or len(named) != len(columns):  # noqa: PLR2004 - any two
        return None
    return Head(_what(named), columns, tuple(match.start() for match in found))


def headless(line: str) -> Head | None:
    """The head of a row of a pod or an Event that stands alone, as `| grep` leaves it."""
    text = line.rstrip()
    what: What = "Pod"
    columns: tuple[str, ...] = ("NAME", "READY", "STATUS", "RESTARTS", "AGE")
    if (found := _POD_ROW.fullmatch(text)) is None:
        what, columns = "Event", ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
        found = _EVENT_ROW.fullmatch(text)
    if found is None:
        return None
    columns = columns if found[1] is None else ("NAMESPACE", *columns)
    return Head(what, columns, tuple(range(len(columns))))


def _what(named: set[str]) -> What | None:
    if {"REASON", "MESSAGE"} <= named and named & {"OBJECT", "KIND"}:
        return "Event"
    if {"SCHEDULE", "SUSPEND"} <= named:
        return "CronJob"
    if "COMPLETIONS" in named or {"DESIRED", "SUCCESSFUL"} <= named:
        return "Job"
    if {"READY", "STATUS", "RESTARTS"} <= named:
        return "Pod"
    return None


def cells_of(head: Head, line: str) -> dict[str, str] | None:
    """The cells of a row by column; None if the line is no row of the table."""
    columns, text = head.columns, line.rstrip()
    last_is_text = columns[-1] in ("MESSAGE", "LABELS")
    cells = _GAP.split(text, maxsplit=len(columns) - 1) if last_is_text else _GAP.split(text)
    if cells[0] == "" and len(cells) > 1:
        cells = cells[1:]
    if len(cells) == len(columns):
        found = dict(zip(columns, cells, strict=True))
    else:
        tried = (_by_places(head, text), _by_words(head, text), _without_duration(head, cells))
        return next((found for found in tried if found and _fits(head, found)), None)
    return found if _fits(head, found) else None


def _by_places(head: Head, text: str) -> dict[str, str] | None:
    """The cells by where the columns begin, if a gap is before each."""
    found: dict[str, str] = {}
    ends = (*head.places[1:], len(text))
    for column, begin, end in zip(head.columns, head.places, ends, strict=True):
        if 0 < begin <= len(text) and not text[begin - 1].isspace():
            return None
        found[column] = text[begin:end].strip()
    return found


def _without_duration(head: Head, cells: list[str]) -> dict[str, str] | None:
    """The cells of a Job that has not started: of those that are always there none is empty."""
    columns = [name for name in head.columns if name != "DURATION"]
    if head.what != "Job" or len(cells) != len(columns):
        return None
    return dict(zip(columns, cells, strict=True))


def _by_words(head: Head, text: str) -> dict[str, str] | None:
    """The cells of a row whose gaps were folded into one space, where that leaves no doubt."""
    words = re.sub(r"(\d+) (\([^)]* ago\))", "\\1\0\\2", text.strip()).split()
    if len(words) != len(head.columns):
        return None
    return {name: word.replace("\0", " ") for name, word in zip(head.columns, words, strict=True)}


def _fits(head: Head, cells: dict[str, str]) -> bool:
    """Whether cells are what the columns promise."""
    if head.what == "Event":
        return bool(cells.get("REASON")) and " " not in cells["REASON"]
    name = cells.get("NAME", "").rpartition("/")[2]
    if not _NAME.fullmatch(name):
        return False
    match head.what:
        case "Pod":
            return re.fullmatch(r"\d+/\d+", cells["READY"]) is not None and bool(cells["STATUS"])
        case "Job":
            done = cells.get("COMPLETIONS", cells.get("SUCCESSFUL", ""))
            return re.match(r"\d+|<none>", done) is not None
        case "CronJob":
            return bool(cells["SCHEDULE"]) and cells["SUSPEND"].lower() in ("true", "false")
    return True


def row_of(head: Head, line: str, namespace: str | None) -> Shown | ShownEvent | LeftOut:
    """What a line below a head says; `namespace`: that of the command, if it names one."""
    if head.what is None:
        return LeftOut("rows of tables of other kinds")
    cells = cells_of(head, line)
    if cells is None:
        return LeftOut("lines that are no rows of the table above")
    namespace = cells.get("NAMESPACE") or namespace
    if head.what == "Event":
        return _event(cells, namespace)
    prefix, _, name = cells["NAME"].rpartition("/")
    kind = _PREFIXES.get(prefix, head.what)
    if prefix and prefix not in _PREFIXES:
        return LeftOut("rows of tables of other kinds")
    shown = Shown(
        kind=cast("Kind", kind),
        name=name,
        namespace=namespace,
        how="get",
        printed={k: v for k, v in cells.items() if v not in _NONE},
        event=cells.get("EVENT"),
        labels=_labels(cells.get("LABELS")),
    )
    {"Pod": _pod, "Job": _job, "CronJob": _cronjob}[kind](shown, cells)
    return shown


def owned_by_labels(shown: Shown) -> None:
    """Let the labels of a pod say which Job it is of, those of a Job its uid."""
    labels = shown.labels or {}
    uid = next((labels[name] for name in _JOB_UID if name in labels), None)
    if shown.kind == "Job":
        shown.uid = shown.uid or uid
    elif shown.kind == "Pod":
        job = next((labels[name] for name in _JOB_NAME if name in labels), None)
        if job and shown.owner_name in (None, job):
            shown.owner_kind, shown.owner_name, shown.owner_uid = "Job", job, uid


def number_of(text: str | None) -> int | None:
    """A count as it is printed; None if it is none."""
    return int(text) if text is not None and re.fullmatch(r"\d{1,9}", text) else None


def _labels(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = (part.partition("=") for part in text.split(",") if text not in _NONE)
    return {name: value for name, sign, value in pairs if sign}


def _pod(shown: Shown, cells: dict[str, str]) -> None:
    ready, _, total = cells["READY"].partition("/")
    shown.ready, shown.total = number_of(ready), number_of(total)
    shown.status = cells["STATUS"]
    shown.restarts = number_of(cells["RESTARTS"].partition(" ")[0])
    node = cells.get("NODE", "")
    shown.node = None if node in _NONE else node
    owned_by_labels(shown)


def _job(shown: Shown, cells: dict[str, str]) -> None:
    shown.status = cells.get("STATUS")
    done, _, wanted = cells.get("COMPLETIONS", "").partition("/")
    if "SUCCESSFUL" in cells:
        done, wanted = cells["SUCCESSFUL"], cells["DESIRED"]
    shown.succeeded = number_of(done)
    of, _, parallelism = wanted.partition(" of ")
    if parallelism:
        shown.parallelism = number_of(parallelism)
    elif of != "1" or "SUCCESSFUL" in cells:  # x/1 is printed where nothing is set, too
        shown.completions = number_of(of)
    selector = _labels(cells.get("SELECTOR")) or {}
    shown.uid = next((selector[name] for name in _JOB_UID if name in selector), None)
    owned_by_labels(shown)


def _cronjob(shown: Shown, cells: dict[str, str]) -> None:
    shown.schedule = cells["SCHEDULE"]
    zone = cells.get("TIMEZONE", "")
    shown.time_zone = None if zone in _NONE else zone
    shown.suspended = cells["SUSPEND"].lower() == "true"
    shown.active = number_of(cells.get("ACTIVE"))


def _event(cells: dict[str, str], namespace: str | None) -> ShownEvent:
    kind, sign, name = cells.get("OBJECT", "").partition("/")
    if not sign:
        kind, name = cells.get("KIND", kind), cells.get("NAME", "").rpartition(".")[0] or name
    return ShownEvent(
        kind=_KINDS.get(kind.lower(), kind),
        name=name,
        namespace=namespace,
        how="get",
        type=cells.get("TYPE", ""),
        reason=cells["REASON"],
        message=cells.get("MESSAGE", ""),
        source=cells.get("SOURCE") or None,
        age=cells.get("LAST SEEN"),
        count=number_of(cells.get("COUNT")) or 1,
        since=cells.get("FIRST SEEN"),
    )
