"""`tracekit cron lint`: where Kubernetes and crontab users read a schedule differently."""

from __future__ import annotations

import codecs
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from tracekit.answers.cronlint.classes import CLASSES, readings_of
from tracekit.answers.cronlint.croniter_reading import Reading
from tracekit.answers.cronlint.linted import LONGEST_RUNS, Asked, Linted, entry_of, linted
from tracekit.answers.cronlint.sources import (
    Entry,
    NoScheduleError,
    crontab_entries,
    manifest_entries,
)
from tracekit.answers.cronlint.surprises import (
    SURPRISES,
)
from tracekit.base.cron import Zone
from tracekit.base.cron.gotime import rfc3339
from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.suggest import hint
from tracekit.cli.cron_options import (
    from_ns,
    process_zone,
    release_option,
    schedule_options,
)
from tracekit.cli.damage import tell_problems
from tracekit.cli.trace_options import output_option
from tracekit.report.documents import write_document
from tracekit.report.table import counted, write_line
from tracekit.sql.session import Session
from tracekit.trace.stores.place import is_url
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import NEWEST, Era
from tracekit.versions.version import KubeVersion

_FILE_BYTES_MAX = 4_000_000
_SHOWN = 3
_MANIFESTS = {".yaml", ".yml", ".json"}


@click.command("lint")
@click.argument("sources", metavar="SPEC|FILE…|TRACE", nargs=-1, required=True)
@click.option(
    "--starting-deadline",
    type=click.IntRange(0),
    metavar="SECONDS",
    help="Of a SPEC: the CronJob's spec.startingDeadlineSeconds.",
)
@schedule_options(
    count=20,
    most=1_000,
    what="How many activations are compared, from TIME and from each clock change on.",
)
@release_option(f"Release that counts.  [default: the trace's own, else {NEWEST}]")
@click.option("--fail-on", metavar="CLASS,…", help="Exit 1 on one of these classes, or on any.")
@click.option(
    "--pass-over",
    is_flag=True,
    help="Pass over files without a CronJob, and those that are no YAML (a chart's templates).",
)
@output_option
def lint(
    sources: tuple[str, ...],
    *,
    time_zone: str | None,
    starting_deadline: int | None,
    process_zone_name: str,
    from_text: str | None,
    count: int,
    kubernetes_version: str | None,
    fail_on: str | None,
    pass_over: bool,
    output: str,
) -> int:
    """Say where crontab and Airflow (croniter) read schedules otherwise.

    The source is a schedule, a trace, or crontabs and manifests (.yaml, .json). Each disagreement
    has a class (docs/cron.md). Told as well: runs that a clock change drops or doubles, a
    startingDeadlineSeconds that no run can keep, Jobs that took longer than the time between two
    runs. The exit status is 0 whatever is found, or 1 with --fail-on; verdicts never depend on
    this.

    \b
    Examples:
      tracekit cron lint '0 0 */2 * 1'
      tracekit cron lint '30 2 * * *' --time-zone Europe/Berlin
      tracekit cron lint /etc/crontab --kubernetes-version v1.21.14
      tracekit cron lint ./trace -o json
    """  # noqa: D301 - \b is click's mark for lines kept as they are
    failing = _failing(fail_on)
    entries, recorded = _all_entries(sources, time_zone, starting_deadline, pass_over=pass_over)
    if not entries:
        return 0
    if entries[0].where and (time_zone is not None or starting_deadline is not None):
        raise UsageError(
            "--time-zone and --starting-deadline belong to a SPEC; a file or a trace has its own."
        )
    version = KubeVersion.parse(kubernetes_version or recorded or str(NEWEST))
    zone = process_zone(process_zone_name)
    asked = Asked(version, zone, from_ns(from_text), count)
    results = [linted(entry, asked) for entry in entries]
    only = results[0].comparison
    if not entries[0].where and None not in (only.kubernetes.refused, only.croniter.refused):
        raise UsageError(
            f"neither Kubernetes {version} ({only.kubernetes.refused}) nor croniter "
            f"({only.croniter.refused}) takes the schedule {sources[0]!r}: write five fields."
        )
    if output == "json":
        write_document(_document(results, asked), sys.stdout)
    else:
        for line in _lines(results, asked):
            text = line.lstrip(" ")
            by = len(line) - len(text)
            write_line(text, sys.stdout, by=by, then=by + 2)
    found = {name for result in results for name in _said_of(result)}
    return 1 if found & failing else 0


def _said_of(result: Linted) -> Iterator[str]:
    """The classes of a schedule's disagreements, and the names of its surprises."""
    yield from result.comparison.classes
    yield from (surprise.name for surprise in result.surprises)


def _failing(text: str | None) -> frozenset[str]:
    """The classes and surprises on which it is to fail."""
    known = (*CLASSES, *SURPRISES)
    if text is None:
        return frozenset()
    if text == "any":
        return frozenset(known)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            meant = hint(name, known, "docs/cron.md lists them; `any` is all")
            raise UsageError(f"--fail-on: {name!r} is no class{meant}")
    return frozenset(names)


def _all_entries(
    sources: tuple[str, ...], time_zone: str | None, deadline_s: int | None, *, pass_over: bool
) -> tuple[list[Entry], str | None]:
    """The schedules of all sources and, of a trace, the version that it names."""
    found: list[Entry] = []
    recorded = None
    for source in sources:
        if len(sources) > 1 and not _is(Path(source), Path.is_file):
            raise UsageError(f"{source!r} is no file: of several sources each is one")
        try:
            entries, recorded = _entries(source, time_zone, deadline_s)
        except NoScheduleError:
            if not pass_over:
                raise
            continue
        if Path(source).suffix in _MANIFESTS and (len(sources) > 1 or pass_over):
            entries = [replace(entry, where=f"{source}: {entry.where}") for entry in entries]
        found += entries
    return found, recorded


def _entries(
    source: str, time_zone: str | None, deadline_s: int | None
) -> tuple[list[Entry], str | None]:
    """The schedules of the source and, of a trace, the version that it names."""
    path = Path(source)
    if is_url(source) or _is(path, Path.is_dir):
        return _recorded(source)
    if not _is(path, Path.is_file):
        if len(source.split()) < 2 and not source.startswith("@"):  # noqa: PLR2004
            raise UsageError(
                f"{source!r} is neither a file, a trace nor a schedule: quote its five fields as "
                "one word."
            )
        return [Entry("", source, time_zone, deadline_s)], None
    if path.stat().st_size > _FILE_BYTES_MAX:
        raise UsageError(f"{source} is larger than {_FILE_BYTES_MAX:,} bytes: no crontab is.")
    content = path.read_bytes()
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # by PowerShell
    try:
        text = content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{source} is no text: name a crontab, a manifest or a trace.") from None
    entries = manifest_entries if path.suffix in _MANIFESTS else crontab_entries
    return entries(text, path.name), None


def _is(path: Path, kind: Any) -> bool:
    """Whether the path is of the kind; a schedule may be no path at all."""
    try:
        return bool(kind(path))
    except (OSError, ValueError):
        return False


_UNREAD = "SELECT count(*) AS n FROM observations WHERE type = 'UNPARSED'"


def _recorded(source: str) -> tuple[list[Entry], str | None]:
    session = Session([source])
    tell_problems(session, set())
    entries = [entry_of(row) for row in session.rows(LONGEST_RUNS)]
    if not entries:
        (unread,) = session.rows(_UNREAD)
        if unread["n"]:
            raise UsageError(
                f"{source} has no CronJob that can be read, and {unread['n']:,} rows that cannot "
                "(of type UNPARSED): name another trace."
            )
        raise UsageError(f"{source} has no CronJob: name another trace.")
    return entries, session.sources[0].header.kubernetes_version


def _lines(results: list[Linted], asked: Asked) -> Iterator[str]:
    for result in results:
        comparison, entry = result.comparison, result.entry
        both_refuse = comparison.agree and comparison.kubernetes.refused is not None
        said = "both refuse it" if both_refuse else "agree"
        where = f"{entry.where}  " if entry.where else ""
        zone = f" ({entry.time_zone})" if entry.time_zone else ""
        yield f"{where}{entry.schedule}{zone}: {', '.join(comparison.classes) or said}"
        if not comparison.agree or both_refuse or not entry.where:
            readings = [comparison.kubernetes, comparison.croniter]
            start = _first_difference(*readings)
            yield f"    Kubernetes {asked.version}: {_shown(readings[0], result.zone, start)}"
            yield f"    croniter: {_shown(readings[1], result.zone, start)}"
        for name in comparison.classes:
            ours, theirs = readings_of(name, entry.schedule)
            yield f"    {name}: Kubernetes: {ours}; croniter: {theirs}"
        for surprise in result.surprises:
            yield f"    {surprise.name}: {surprise.text}"
    if results[0].entry.where:
        apart = sum(not result.comparison.agree for result in results)
        yield f"{counted(len(results), 'schedule')}, {apart} read differently"


def _first_difference(ours: Reading, theirs: Reading) -> int:
    """How many times both have alike; 0 where one refuses or nothing differs."""
    if ours == theirs or ours.refused is not None or theirs.refused is not None:
        return 0
    pairs = zip(ours.next_ns, theirs.next_ns, strict=False)
    alike = (i for i, (a, b) in enumerate(pairs) if a != b)
    return next(alike, min(len(ours.next_ns), len(theirs.next_ns)))


def _shown(reading: Reading, zone: Zone, start: int) -> str:
    if reading.refused is not None:
        return f"refuses it: {reading.refused}"
    times = [rfc3339(at_ns, zone) for at_ns in reading.next_ns[start : start + _SHOWN]]
    alike = f"{counted(start, 'time')} alike, then " if start else ""
    return alike + (", ".join(times) or "never")


def _document(results: list[Linted], asked: Asked) -> dict[str, Any]:
    classes = Counter(name for result in results for name in result.comparison.classes)
    era = CronJobEra.of(Era.resolve(asked.version))
    return {
        "schema_version": 1,
        "kubernetesVersion": str(asked.version),
        "library": era.generation.value,
        "croniter": installed_version("croniter"),
        "from": format_rfc3339(asked.at_ns),
        "count": asked.count,
        "schedules": [
            {
                "where": result.entry.where or None,
                "spec": result.entry.schedule,
                "timeZone": result.entry.time_zone,
                "agree": result.comparison.agree,
                "classes": list(result.comparison.classes),
                "kubernetes": _reading_document(result.comparison.kubernetes),
                "croniter": _reading_document(result.comparison.croniter),
                "notes": [{"name": note.name, "text": note.text} for note in result.surprises],
            }
            for result in results
        ],
        "summary": {
            "schedules": len(results),
            "readDifferently": sum(not result.comparison.agree for result in results),
            "classes": dict(sorted(classes.items())),
        },
    }


def _reading_document(reading: Reading) -> dict[str, Any]:
    if reading.refused is not None:
        return {"refused": reading.refused, "next": []}
    return {"refused": None, "next": [format_rfc3339(at_ns) for at_ns in reading.next_ns]}
