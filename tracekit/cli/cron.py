"""`tracekit cron`: `next`, when a schedule fires by the release's own library, and `lint`."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracekit.cli import cron_lint
from tracekit.cli.completion import complete_version
from tracekit.cli.talk import say
from tracekit.cli.trace_options import output_option, parse_from
from tracekit.cron import CronSpecError, UnknownZoneError, Zone, load_zone, next_activations_ns
from tracekit.cron.gotime import rfc3339
from tracekit.eras.cron_spec import KubernetesSpec, TimeZoneError, kubernetes_spec
from tracekit.eras.version import KubeVersion
from tracekit.errors import UsageError
from tracekit.foreign import for_terminal
from tracekit.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.report.documents import json_text

_COUNT_MAX = 10_000


@click.group()
def cron() -> None:
    """Cron schedules as the CronJob controller of a Kubernetes release reads them."""


cron.add_command(cron_lint.lint)


@cron.command("next")
@click.argument("spec")
@click.option("--time-zone", metavar="ZONE", help="The CronJob's spec.timeZone (1.24 and later).")
@click.option(
    "--process-zone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Zone of the kube-controller-manager process: used where nothing else names one.",
)
@click.option(
    "--from", "from_text", metavar="TIME", help="RFC 3339; only later times count. [default: now]"
)
@click.option(
    "--count",
    type=click.IntRange(1, _COUNT_MAX),
    default=5,
    show_default=True,
    help="How many activations to list.",
)
@click.option(
    "--kubernetes-version",
    shell_complete=complete_version,
    default="v1.37.0",
    show_default=True,
    help="Release whose cron library and time zone rules count.",
)
@output_option
def next_command(
    spec: str,
    *,
    time_zone: str | None,
    process_zone: str,
    from_text: str | None,
    count: int,
    kubernetes_version: str,
    output: str,
) -> None:
    """Say when SPEC fires next, clock changes and impossible dates included.

    \b
    Examples:
      tracekit cron next '30 2 * * *' --time-zone Europe/Berlin --from 2025-03-29T12:00:00Z
      tracekit cron next '0 0 */10 * 5' --kubernetes-version v1.21.14 -o json
    """  # noqa: D301 - \b is click's mark for lines kept as they are
    version = KubeVersion.parse(kubernetes_version)
    from_ns = parse_from(from_text)
    try:
        zone = load_zone(process_zone)
        full = kubernetes_spec(spec, time_zone=time_zone, version=version)
        found = next_activations_ns(
            full.spec, from_ns=from_ns, count=count, generation=full.generation, zone=zone
        )
    except TimeZoneError as error:
        raise UsageError(str(error)) from None
    except UnknownZoneError as error:
        raise UsageError(f"--process-zone: {error}; give a name of the tz database.") from None
    except CronSpecError as error:
        raise UsageError(
            f"Kubernetes {version} cannot read the schedule {spec!r}: {error}."
        ) from None
    shown_zone = load_zone(time_zone) if time_zone else zone
    if output == "json":
        document = _json(
            spec=spec,
            time_zone=time_zone,
            version=version,
            full=full,
            from_ns=from_ns,
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
    console = Console(highlight=False)
    title = f"{full.spec}  ({full.generation.value}, Kubernetes {version})"
    table = Table(title=Text(for_terminal(title), style="table.title"))
    table.add_column("UTC")
    table.add_column(zone.name)
    for at_ns in found:
        table.add_row(format_rfc3339(at_ns), rfc3339(at_ns, zone))
    console.print(table)
    if len(found) < count:
        console.print("Nothing later: the library finds no activation within five years.")
    for note in full.notes:
        say(f"note: {note}")
