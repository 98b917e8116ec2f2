"""Where schedules stand: in a crontab, in manifests, in the rows of a trace. Text in, entries out.

No command of a crontab is kept or shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.plain_yaml import load_all

_VARIABLE = re.compile(r"""([A-Za-z_]\w*)\s*=\s*["']?([^"']*?)["']?\s*""")
_ZONES = ("CRON_TZ", "TZ")
_FIELDS = 5


class NoScheduleError(UsageError):
    """A file that holds no schedule, or is of no kind that does."""


class Entry(Struct, frozen=True):
    """One schedule and what belongs to it; `where` is a line or a CronJob, "" on a command line."""

    where: str
    schedule: str
    time_zone: str | None = None
    deadline_s: int | None = None
    policy: str | None = None
    run_s: float | None = None  # the longest run that was seen


def crontab_entries(text: str, name: str) -> list[Entry]:
    """The schedules of a crontab, with the zone that `CRON_TZ` sets for the lines below it.

    Raises:
        UsageError: Where a line is none of a crontab.
        NoScheduleError: There is no schedule.
    """
    zones: dict[str, str] = {}
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()  # noqa: PLW2901 - crontab(5): leading blanks do not count
        if not line or line.startswith("#"):
            continue
        where = f"{name}:{number}"
        variable = _VARIABLE.fullmatch(line)
        if variable and variable[1] in _ZONES:
            zones[variable[1]] = variable[2]
        if variable:
            continue
        size = 1 if line.startswith("@") and not line.startswith("@every") else _FIELDS
        size = 2 if line.startswith("@every") else size
        words = line.split(maxsplit=size)
        if len(words) <= size:
            raise UsageError(
                f"{where} is no line of a crontab: write five fields or a name like @daily, and "
                "the command, or NAME=value."
            )
        zone = next((zones[key] for key in _ZONES if zones.get(key)), None)
        entries.append(Entry(where, " ".join(words[:size]), zone))
    if not entries:
        raise NoScheduleError(f"{name} holds no schedule: name a crontab, a manifest or a trace.")
    return entries


def manifest_entries(text: str, name: str) -> list[Entry]:
    """The schedules of the CronJobs in YAML or JSON manifests, lists of them too.

    Raises:
        NoScheduleError: It is no YAML, or holds no CronJob.
    """
    try:
        documents = list(load_all(text.encode("utf-8", "surrogatepass")))
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise NoScheduleError(f"{name} is no YAML ({reason}): mend it first.") from None
    entries = [_manifest_entry(found) for document in documents for found in _cronjobs(document)]
    if not entries:
        raise NoScheduleError(f"{name} holds no CronJob: name a crontab, a manifest or a trace.")
    return entries


def _cronjobs(document: object) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        return
    if document.get("kind") == "CronJob":
        yield document
    items = document.get("items")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and item.get("kind") == "CronJob":
            yield item


def _manifest_entry(cronjob: dict[str, Any]) -> Entry:
    meta, spec = (
        part if isinstance(part := cronjob.get(key), dict) else {} for key in ("metadata", "spec")
    )
    namespace, name = meta.get("namespace"), str(meta.get("name", "?"))
    deadline_s, zone = spec.get("startingDeadlineSeconds"), spec.get("timeZone")
    policy = spec.get("concurrencyPolicy")
    return Entry(
        where=f"{namespace}/{name}" if namespace else name,
        schedule=str(spec.get("schedule", "")),
        time_zone=str(zone) if zone is not None else None,
        deadline_s=deadline_s if isinstance(deadline_s, int) else None,
        policy=policy if isinstance(policy, str) else None,
    )
