"""`tracekit cron`: `next`, when a schedule fires by the release's own library, and `lint`."""

from __future__ import annotations

import sys

import click

from tracekit.base.cron import CronSpecError, Zone, load_zone, next_activations_ns
from tracekit.base.cron.gotime import rfc3339
from tracekit.base.cron.parser import DESCRIPTORS
from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.suggest import hint
from tracekit.cli.cron_options import (
    from_ns,
    process_zone,
    release_option,
    schedule_options,
)
from tracekit.cli.messages import say
from tracekit.cli.trace_options import output_option
from tracekit.cli.usage import LazyGroup, Verb
from tracekit.report.documents import json_text
from tracekit.report.table import write_line, write_table
from tracekit.versions.cron_spec import KubernetesSpec, TimeZoneError, kubernetes_spec
from tracekit.versions.era import NEWEST
from tracekit.versions.version import KubeVersion

_COUNT_MAX = 10_000
_WRITE = "write five fields like '0 2 * * 1-5', or one of @hourly, @daily, @every 90m"


@click.group(
    cls=LazyGroup,
    verbs={
        "lint": Verb(
            "tracekit.cli.cron_lint:lint",
            "Say where crontab and Airflow (croniter) read schedules otherwise.",
        ),
        "next": Verb(
            "tracekit.cli.cron:next_command",
            "Say when SPEC fires next, clock changes and impossible dates included.",
        ),
    },
)
def cron() -> None:
    """Say when a schedule fires, as a Kubernetes release reads it."""


@click.command("next")
@click.argument("spec")
@schedule_options(count=5, most=_COUNT_MAX, what="How many activations to list.")
@release_option(f"Release whose cron library and time zone rules count.  [default: {NEWEST}]")
@output_option
def next_command(
    spec: str,
    *,
    time_zone: str | None,
    process_zone_name: str,
    from_text: str | None,
    count: int,
    kubernetes_version: str | None,
    output: str,
) -> None:
    """Say when SPEC fires next, clock changes and impossible dates included.

    \b
    Examples:
      tracekit cron next '30 2 * * *' --time-zone Europe/Berlin --from 2025-03-29T12:00:00Z
      tracekit cron next '0 0 */10 * 5' --kubernetes-version v1.21.14 -o json
    """  # noqa: D301 - \b is click's mark for lines kept as they are
    version = KubeVersion.parse(kubernetes_version or str(NEWEST))
    start_ns = from_ns(from_text)
    zone = process_zone(process_zone_name)
    try:
        full = kubernetes_spec(spec, time_zone=time_zone, version=version)
        found = next_activations_ns(
            full.spec, from_ns=start_ns, count=count, generation=full.generation, zone=zone
        )
    except TimeZoneError as error:
        raise UsageError(str(error)) from None
    except CronSpecError as error:
        raise UsageError(
            f"Kubernetes {version} cannot read the schedule {spec!r}: {error}"
            + (hint(spec, DESCRIPTORS, _WRITE) if spec.startswith("@") else f": {_WRITE}")
        ) from None
    shown_zone = load_zone(time_zone) if time_zone else zone
    if output == "json":
        document = _json(
            spec=spec,
            time_zone=time_zone,
            version=version,
            full=full,
            from_ns=start_ns,
            zone=shown_zone,
            found=found,
            count=count,
        )
        click.echo(document)
    else:
        _table(version, full, shown_zone, found, count)


def _json(
    *,
    spec: str,
    time_zone: str | None,
    version: KubeVersion,
    full: KubernetesSpec,
    from_ns: int,
    zone: Zone,
    found: list[int],
    count: int,
) -> str:
    document = {
        "spec": spec,
        "timeZone": time_zone,
        "kubernetesVersion": str(version),
        "library": full.generation.value,
        "from": format_rfc3339(from_ns),
        "next": [
            {
                "time": rfc3339(at_ns, zone),
                "utc": format_rfc3339(at_ns),
                "unixSeconds": at_ns // NS_PER_S,
            }
            for at_ns in found
        ],
        "neverAgain": len(found) < count,
        "notes": list(full.notes),
    }
    return json_text(document, indented=True)


def _table(
    version: KubeVersion, full: KubernetesSpec, zone: Zone, found: list[int], count: int
) -> None:
    title = f"{full.spec}  ({full.generation.value}, Kubernetes {version})"
    write_line(title, sys.stdout)
    rows = [(format_rfc3339(at_ns) or "", rfc3339(at_ns, zone)) for at_ns in found]
    if zone.name == "UTC":
        write_table(["UTC"], [row[:1] for row in rows], sys.stdout)
    else:
        write_table(["UTC", zone.name], rows, sys.stdout)
    if len(found) < count:
        write_line("Nothing later: no activation is found within five years.", sys.stdout)
    for note in full.notes:
        say(f"note: {note}")
