"""`tracekit manifests`: what to apply to record from inside a cluster."""

from __future__ import annotations

import json
from typing import Any

import click
import yaml

from tracekit.answers.findings.refused_jobs import LABEL, LABEL_MAX
from tracekit.base.errors import UsageError
from tracekit.base.kube.quantities import quantity
from tracekit.cli.units import DURATION
from tracekit.record.operation.audit_policy import COMMENT, audit_policy
from tracekit.record.operation.manifests import Deployment, manifests


def _as_duration(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The text that the recorder is given, once it is known that it takes it."""
    DURATION.convert(value, param, ctx)
    return value


def _as_quantity(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if (quantity(value) or 0) <= 0:
        raise click.BadParameter(f"{value!r} is no size of a volume: write it like 10Gi.")
    return value


def _as_namespace(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
    for name in (value,) if isinstance(value, str) else value:
        if LABEL.fullmatch(name) is None or len(name) > LABEL_MAX:
            raise click.BadParameter(f"{name!r} cannot be the name of a namespace.")
    return value


def _as_image(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not value or not value.isprintable() or " " in value:
        raise click.BadParameter(f"{value!r} is no image: write it like REPOSITORY:TAG.")
    return value


@click.command("manifests")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    callback=_as_namespace,
    help="Record this namespace only.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Record all namespaces.")
@click.option(
    "--install-namespace",
    default="tracekit",
    callback=_as_namespace,
    show_default=True,
    help="Where it runs.",
)
@click.option(
    "--image",
    default="kube-tracekit:latest",
    callback=_as_image,
    show_default=True,
    help="Its image.",
)
@click.option(
    "--storage",
    default="10Gi",
    callback=_as_quantity,
    show_default=True,
    help="Size of its volume.",
)
@click.option(
    "--rotate",
    default="1h",
    callback=_as_duration,
    show_default=True,
    help="A new trace this often.",
)
@click.option(
    "--keep",
    default="7d",
    callback=_as_duration,
    show_default=True,
    help="How long traces are kept.",
)
@click.option(
    "--logs",
    type=click.Choice(["failed", "all"]),
    help="Record logs of containers that ended, and let it read pods/log.",
)
@click.option("--watch", "watches", is_flag=True, help="Also judge what is recorded, beside it.")
@click.option("--event", "writes_events", is_flag=True, help="With --watch: Events of findings.")
@click.option("--alerts", is_flag=True, help="Also alert rules (a PrometheusRule); with --watch.")
@click.option(
    "--audit-policy",
    "wants_audit_policy",
    is_flag=True,
    help="Print an audit policy for the API server instead: the smallest with which its log alone "
    "is enough (docs/rescue.md), with its cost.",
)
@click.option(
    "--feature-gates", is_flag=True, help="Let it read the API server's /metrics too (with -A)."
)
def manifests_command(
    *,
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    install_namespace: str,
    image: str,
    storage: str,
    rotate: str,
    keep: str,
    logs: str | None,
    watches: bool,
    writes_events: bool,
    alerts: bool,
    wants_audit_policy: bool,
    feature_gates: bool,
) -> None:
    """Print what a recorder in the cluster needs, as YAML.

    It may get, list and watch what it records, with --event create Events, and nothing else.
    """
    if wants_audit_policy:
        if namespaces or all_namespaces:
            raise UsageError("--audit-policy is for the whole cluster: leave out -n and -A.")
        click.echo(COMMENT + yaml.safe_dump(audit_policy(), sort_keys=False), nl=False)
        return
    if bool(namespaces) == all_namespaces:
        raise UsageError("Say what to record: -n NAMESPACE (may be repeated) or -A.")
    if alerts and not watches:
        raise UsageError("--alerts are about what --watch finds: give --watch too.")
    if writes_events and not watches:
        raise UsageError("--event is about what --watch finds: give --watch too.")
    if feature_gates and namespaces:
        raise UsageError("--feature-gates needs a cluster-wide right; use it with -A.")
    deployment = Deployment(
        namespaces=namespaces,
        home=install_namespace,
        image=image,
        storage=storage,
        rotate=rotate,
        keep=keep,
        logs=logs,
        watches=watches,
        writes_events=writes_events,
        alerts=alerts,
        reads_gates=feature_gates,
    )
    # Through JSON, so that a mapping used twice is written twice and not as a YAML alias.
    documents = json.loads(json.dumps(manifests(deployment)))
    click.echo(yaml.safe_dump_all(documents, sort_keys=False, width=100), nl=False)
