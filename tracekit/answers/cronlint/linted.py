"""One schedule, linted: both readings, how they disagree, and what else will happen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from tracekit.answers.cronlint.classes import readings_of
from tracekit.answers.cronlint.comparison import Comparison, compare
from tracekit.answers.cronlint.croniter_reading import Question, Reading, croniter_reading
from tracekit.answers.cronlint.sources import Entry
from tracekit.answers.cronlint.surprises import (
    Surprise,
    changes,
    clock_changes,
    deadline,
    never_due,
    overlaps,
)
from tracekit.base.cron import CronSpecError, Generation, UnknownZoneError, Zone, load_zone, parse
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.cron_spec import TimeZoneError, kubernetes_spec
from tracekit.versions.cronjob import Controller, CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.version import KubeVersion

#: Readers are compared from here on, too: most differ at a clock change only.
_BEFORE_CHANGE_NS = 7_200 * NS_PER_S
#: So many times are compared where nobody says how many.
COUNT = 20
#: The CronJobs of a trace, for `entry_of`.
LONGEST_RUNS = """
SELECT c.trace, c.namespace, c.cronjob, c.cronjob_uid,
       any_value(c.schedule) AS schedule, any_value(c.time_zone) AS zone,
       any_value(c.starting_deadline_s) AS deadline_s, any_value(c.concurrency_policy) AS policy,
       max(j.duration_s) AS run_s
FROM internal._cronjobs c LEFT JOIN jobs j USING (trace, namespace, cronjob)
GROUP BY c.trace, c.cronjob_uid, c.namespace, c.cronjob ORDER BY ALL
"""


class Asked(Struct, frozen=True):
    """What the command line says, for every schedule alike."""

    version: KubeVersion
    zone: Zone
    at_ns: int
    count: int


class Linted(Struct, frozen=True):
    """What is said about one schedule."""

    entry: Entry
    zone: Zone
    comparison: Comparison
    surprises: tuple[Surprise, ...]


def entry_of(row: Mapping[str, Any]) -> Entry:
    """The schedule of a CronJob of a trace, by a row of `LONGEST_RUNS`."""
    return Entry(
        f"{row['namespace']}/{row['cronjob']}",
        row["schedule"] or "",
        row["zone"],
        row["deadline_s"],
        row["policy"],
        row["run_s"],
    )


def linted(entry: Entry, asked: Asked) -> Linted:
    """Both readings of one schedule, and what else its owner should know."""
    zone, at_ns = asked.zone, asked.at_ns
    try:
        full = kubernetes_spec(entry.schedule, time_zone=entry.time_zone, version=asked.version)
        zone = load_zone(entry.time_zone) if entry.time_zone else zone
    except (TimeZoneError, UnknownZoneError) as error:
        theirs = croniter_reading(Question(entry.schedule, at_ns, zone), asked.count)
        refused = Comparison(Reading(refused=str(error)), theirs, ("time-zone",))
        return Linted(entry, zone, refused, ())

    def reading(generation: Generation, from_ns: int = at_ns) -> Comparison:
        return compare(
            entry.schedule,
            spec=full.spec,
            generation=generation,
            zone=zone,
            at_ns=from_ns,
            count=asked.count,
        )

    comparison = reading(full.generation)
    try:
        schedule = parse(full.spec, full.generation)
    except CronSpecError:
        return Linted(entry, zone, comparison, ())
    for change_s in changes(zone, at_ns // NS_PER_S):
        if not comparison.agree:
            break
        before_ns = max(at_ns, change_s * NS_PER_S - _BEFORE_CHANGE_NS)
        there = reading(full.generation, before_ns)
        comparison = comparison if there.agree else there
    polling = CronJobEra.of(Era.resolve(asked.version)).controller is Controller.POLLING
    surprises = [
        *never_due(schedule, at_ns),
        *deadline(schedule, entry.deadline_s, polling=polling),
        *clock_changes(schedule, zone, at_ns),
        *overlaps(schedule, zone, at_ns, entry.run_s, entry.policy),
        *(Surprise("kubernetes", note) for note in full.notes),
    ]
    other = next(each for each in Generation if each is not full.generation)
    if not entry.time_zone and reading(other).kubernetes != comparison.kubernetes:
        since = "1.22 and later" if full.generation is Generation.GEN1 else "1.21 and earlier"
        text = f"Kubernetes {since} ({other.value}) reads it differently: compare before you move"
        surprises.append(Surprise("generation", text))
    return Linted(entry, zone, comparison, tuple(surprises))


def notes_of(found: Linted) -> Iterator[Surprise]:
    """All that there is to say about a schedule: each disagreement, and each surprise."""
    for name in found.comparison.classes:
        ours, theirs = readings_of(name, found.entry.schedule)
        yield Surprise(name, f"Kubernetes: {ours}; another reader (croniter): {theirs}")
    yield from found.surprises
