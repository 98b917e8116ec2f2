"""What an in-cluster recorder needs, as Kubernetes objects: rights, volume, deployment.

The rights are the streams of `kinds` and nothing else: get, list and watch on named kinds. No
Secret, no ConfigMap, no write of any kind but Events of findings where those are asked for;
containers' logs only where they are recorded.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE

_VERBS = ["get", "list", "watch"]
_METRICS_PORT = 8080
_WATCH_PORT = 8081
_USER_ID = 65532
_TRACES = "/traces"
#: What no quantity of the API reaches.
_QUANTITY_END = 2**63
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:([kKMGTP])(i?))?")
_RBAC = "rbac.authorization.k8s.io"


class Deployment(Struct, frozen=True, kw_only=True):
    """The choices that the manifests leave open."""

    #: Namespaces to record; none means all.
    namespaces: tuple[str, ...] = ()
    #: Where the recorder itself runs.
    home: str = "tracekit"
    name: str = "tracekit-recorder"
    image: str = "kube-tracekit:latest"
    storage: str = "10Gi"
    keep: str = "7d"
    rotate: str = "1h"
    #: `failed` or `all`: also let it read the logs of containers that ended.
    logs: str | None = None
    #: Also judge what is recorded, in a container beside it.
    watches: bool = False
    #: Also let that write an Event for each finding.
    writes_events: bool = False
    #: Also alert rules over the metrics of both, as a PrometheusRule.
    alerts: bool = False
    #: Also let it read the API server's /metrics, for the feature gates.
    reads_gates: bool = False


def rules(deployment: Deployment) -> list[dict[str, Any]]:
    """List the rights; those on cluster-scoped things only for all namespaces."""
    found = [
        {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "verbs": _VERBS},
        {"apiGroups": [""], "resources": ["pods", "events", "resourcequotas"], "verbs": _VERBS},
    ]
    if deployment.logs is not None:
        found.append({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]})
    if deployment.writes_events:
        found.append({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]})
    if deployment.namespaces:
        return found
    found += [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": _VERBS},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [CONTROLLER_MANAGER_LEASE],
            "verbs": _VERBS,
        },
    ]
    if deployment.reads_gates:
        found.append({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})
    return found


def manifests(deployment: Deployment) -> list[dict[str, Any]]:
    """Build every object, in an order that `kubectl apply` can take."""
    return [
        _object("v1", "Namespace", deployment.home),
        _object("v1", "ServiceAccount", deployment.name, namespace=deployment.home),
        *_access(deployment),
        _volume_claim(deployment),
        _deployment(deployment),
        *([_alert_rules(deployment)] if deployment.alerts else []),
    ]


def _access(deployment: Deployment) -> list[dict[str, Any]]:
    kind = "Role" if deployment.namespaces else "ClusterRole"
    found = []
    for namespace in deployment.namespaces or (None,):
        found += [
            _object(
                f"{_RBAC}/v1", kind, deployment.name, namespace=namespace, rules=rules(deployment)
            ),
            _object(
                f"{_RBAC}/v1",
                f"{kind}Binding",
                deployment.name,
                namespace=namespace,
                roleRef={"apiGroup": _RBAC, "kind": kind, "name": deployment.name},
                subjects=[
                    {
                        "kind": "ServiceAccount",
                        "name": deployment.name,
                        "namespace": deployment.home,
                    }
                ],
            ),
        ]
    return found


def _volume_claim(deployment: Deployment) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": deployment.storage}},
    }
    return _object(
        "v1", "PersistentVolumeClaim", deployment.name, namespace=deployment.home, spec=spec
    )


def _deployment(deployment: Deployment) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": deployment.name}
    return _object(
        "apps/v1",
        "Deployment",
        deployment.name,
        namespace=deployment.home,
        spec={
            "replicas": 1,
            # Two recorders on one volume would be refused by the trace's lock.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": deployment.name,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _USER_ID,
                        "fsGroup": _USER_ID,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        _container(deployment),
                        *([_watching(deployment)] if deployment.watches else []),
                    ],
                    "volumes": [
                        {
                            "name": "traces",
                            "persistentVolumeClaim": {"claimName": deployment.name},
                        },
                        {"name": "tmp", "emptyDir": {}},
                    ],
                },
            },
        },
    )


def _container(deployment: Deployment) -> dict[str, Any]:
    scope = [word for namespace in deployment.namespaces for word in ("-n", namespace)] or ["-A"]
    kept = _kept_bytes(deployment.storage)
    probe = {"httpGet": {"path": "/healthz", "port": "metrics"}, "periodSeconds": 20}
    return {
        "name": "recorder",
        "image": deployment.image,
        "args": [
            "record",
            *scope,
            *("-o", _TRACES, "--append"),
            *("--rotate", deployment.rotate, "--keep", deployment.keep),
            *(() if kept is None else ("--keep-size", str(kept))),
            *(() if deployment.logs is None else ("--logs", deployment.logs)),
            *("--metrics-port", str(_METRICS_PORT), "--metrics-address", "0.0.0.0"),  # noqa: S104 (inside a pod, for its probes)
        ],
        "ports": [{"name": "metrics", "containerPort": _METRICS_PORT}],
        "readinessProbe": probe,
        # A stream that stays dead is healed by nothing but a new start; be slow about it.
        "livenessProbe": {**probe, "initialDelaySeconds": 60, "failureThreshold": 15},
        **_confined("256Mi", "1Gi"),
    }


def _watching(deployment: Deployment) -> dict[str, Any]:
    """The container that judges what the first one records; it needs no right but for Events."""
    return {
        "name": "watch",
        "image": deployment.image,
        "args": [
            *("watch", _TRACES),
            *(("--event",) if deployment.writes_events else ()),
            *("--metrics-port", str(_WATCH_PORT), "--metrics-address", "0.0.0.0"),  # noqa: S104 (inside a pod)
        ],
        "ports": [{"name": "watch", "containerPort": _WATCH_PORT}],
        **_confined("512Mi", "2Gi", readOnly=True),
    }


def _confined(memory: str, memory_max: str, **traces: bool) -> dict[str, Any]:
    """What a container may use, and do; `traces` says how it mounts the volume."""
    return {
        "resources": {
            "requests": {"cpu": "100m", "memory": memory},
            "limits": {"memory": memory_max},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "traces", "mountPath": _TRACES, **traces},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 (a path in the pod)
        ],
    }


#: Alert, expression, for how long, severity, what it means.
_ALERTS = (
    ("TracekitDivergence", "increase(tracekit_divergences_total[10m]) > 0", "0m", "critical",
     "{{ $labels.controller }} controller: {{ $labels.action }} {{ $labels.verdict }}"),
    ("TracekitNoLeader", 'increase(tracekit_findings_total{id="TK208"}[10m]) > 0', "0m", "critical",
     "No controller manager renewed its lease."),
    ("TracekitMissedRuns", "increase(tracekit_missed_runs_total[30m]) > 0", "0m", "warning",
     "A CronJob was due and was not started."),
    ("TracekitStuckJob", "tracekit_oldest_stuck_job_seconds > 120", "1m", "warning",
     "A Job has waited for its first status for {{ $value | humanizeDuration }}."),
    ("TracekitBacklog", "tracekit_backlog_jobs > 20", "5m", "warning",
     "{{ $value }} Jobs wait for their first status."),
    ("TracekitJudgesLate", "tracekit_judged_behind_seconds > 300", "5m", "warning",
     "What is judged is {{ $value | humanizeDuration }} old."),
    ("TracekitBlind", "tracekit_stream_up == 0", "5m", "warning",
     "The recorder does not see {{ $labels.stream }}."),
)  # fmt: skip


def alert_groups() -> dict[str, Any]:
    """The alert rules as a file of Prometheus has them; packaging/chart/files has a copy."""
    found = [
        {
            "alert": name,
            "expr": expression,
            "for": period,
            "labels": {"severity": severity},
            "annotations": {"summary": summary},
        }
        for name, expression, period, severity, summary in _ALERTS
    ]
    return {"groups": [{"name": "tracekit", "rules": found}]}


def _alert_rules(deployment: Deployment) -> dict[str, Any]:
    """Alert rules for the Prometheus operator."""
    return _object(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        deployment.name,
        namespace=deployment.home,
        spec=alert_groups(),
    )


def _kept_bytes(storage: str) -> int | None:
    """Give four fifths of a volume: the trace being written, and its compaction, need the rest."""
    match = _QUANTITY.fullmatch(storage)
    if match is None:
        return None
    base = 1024 if match[3] else 1000
    power = 0 if not match[2] else "kMGTP".index(match[2].replace("K", "k")) + 1
    size = float(match[1]) * base**power
    return int(size * 4 / 5) if size < _QUANTITY_END else None


def _object(
    api_version: str, kind: str, name: str, *, namespace: str | None = None, **rest: Any
) -> dict[str, Any]:
    metadata = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata_labels = {"app.kubernetes.io/name": "tracekit-recorder"}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**metadata, "labels": metadata_labels},
        **rest,
    }
