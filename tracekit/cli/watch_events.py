"""`tracekit watch --event`: where its Events go, and with whose rights."""

from __future__ import annotations

from tracekit.base.errors import ClusterError, UsageError
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.failures import (
    ConnectionFailed,
    RequestFailed,
    ServerFailed,
    Throttled,
    Unauthorized,
)
from tracekit.record.server.probe import asked, probe_uid
from tracekit.record.server.transport import ApiClient
from tracekit.trace.format.model import TraceHeader
from tracekit.watch.events import ClusterEvents, Document, event_of
from tracekit.watch.news import News
from tracekit.watch.outbox import NotSent

_THERE_IS_ONE = 409
_TIMEOUT_S = 10.0
#: What is asked about first; nothing of it is stored.
_TRIAL = ("TK000", "info", "Job", "trial", "may Events be written?", "a trial, not stored")


def cluster_events(connect: ConnectOptions, header: TraceHeader) -> ClusterEvents:
    """What writes Events into the cluster of the trace.

    Raises:
        UsageError: The connection is to another cluster.
        ClusterError: The cluster cannot be reached, or does not let us write.
    """
    client = ApiClient(Connection(connect), request_timeout_s=_TIMEOUT_S)
    recorded, there = header.scope.get("cluster_uid"), probe_uid(client)
    if recorded is not None and there is not None and recorded != there:
        raise UsageError(
            f"the trace is of another cluster than {client.connection.shown_host} (their "
            "kube-system namespaces have different uids): choose its --context for --event"
        )
    _try(client, (header.scope.get("namespaces") or ["default"])[0])
    return ClusterEvents(lambda namespace, event: _create(client, namespace, event))


def _try(client: ApiClient, namespace: str) -> None:
    identity, severity, kind, name, text, why = _TRIAL
    news = News(identity, severity, kind, namespace, name, text, why, NS_PER_S, NS_PER_S)
    path = f"{_path(namespace)}?dryRun=All"
    rights = "tracekit manifests --watch --event"
    asked(client, "write Events", lambda: client.post(path, event_of(news)), rights)


def _create(client: ApiClient, namespace: str, event: Document) -> bool:
    generation = client.connection.generation
    try:
        client.post(_path(namespace), event)
    except Unauthorized as error:
        try:
            client.reload_credentials(generation)
        except ClusterError as failed:
            raise NotSent(str(failed)) from error
        raise NotSent(error.reason) from error
    except RequestFailed as error:
        if error.status == _THERE_IS_ONE:
            return False
        again = isinstance(error, (ConnectionFailed, ServerFailed, Throttled))
        raise NotSent(error.reason, is_final=not again) from error
    return True


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/events"
