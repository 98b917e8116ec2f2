"""Which streams a scope needs: kinds, paths, selectors, and what the server calls them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from tracekit.base.coverage import Scope as Asked
from tracekit.base.errors import ClusterError
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE
from tracekit.record.failures import Forbidden, NotFound, RequestFailed
from tracekit.record.server.transport import ApiClient

CONTROLLER_MANAGER_NAMESPACE = "kube-system"
#: Every version puts this label on the pods of jobs (newer ones add a prefixed twin).
POD_OF_JOB_SELECTOR = "job-name"
#: The group versions that CronJobs have lived in, newest first.
_CRONJOB_VERSIONS = ("batch/v1", "batch/v1beta1", "batch/v2alpha1")


class Scope(Struct, frozen=True, kw_only=True):
    """What the user wants to see; no namespaces means all of them."""

    namespaces: tuple[str, ...] = ()
    selector: str | None = None
    pods_of_jobs_only: bool = False

    def describe(self) -> str:
        """Say the scope in a line for people."""
        where = (
            "all namespaces"
            if not self.namespaces
            else f"namespace{'s' if len(self.namespaces) > 1 else ''} {', '.join(self.namespaces)}"
        )
        selected = f", labels {self.selector}" if self.selector else ""
        pods = ", pods of jobs only" if self.pods_of_jobs_only else ""
        return f"{where}{selected}{pods}"


class StreamSpec(Struct, frozen=True, kw_only=True):
    """One list + watch: a kind, in one namespace or in all."""

    #: Plural, which is the stream's name in the trace.
    resource: str
    #: "v1" or "batch/v1".
    group_version: str
    kind: str
    #: The namespace it is restricted to; None for all, and for cluster-scoped kinds.
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    #: The namespace that tells this stream from its twins, when several namespaces are recorded.
    part: str | None = None
    #: Bodies of live objects are kept; not for Events, which only ever pile up.
    keeps_bodies: bool = True

    @property
    def name(self) -> str:
        """Tell the stream from the others of this recording."""
        return self.resource if self.part is None else f"{self.resource}/{self.part}"

    @property
    def group(self) -> str:
        """API group, empty for core."""
        return self.group_version.rpartition("/")[0]

    @property
    def path(self) -> str:
        """Path of the collection."""
        root = "/apis" if self.group else "/api"
        inside = f"/namespaces/{self.namespace}" if self.namespace is not None else ""
        return f"{root}/{self.group_version}{inside}/{self.resource}"

    @property
    def scope(self) -> Asked:
        """What its lists ask for."""
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        spaces = None if self.namespace is None else frozenset((self.namespace,))
        named = (self.field_selector or "").removeprefix("metadata.name=")
        if self.resource == "namespaces" and named:
            spaces = frozenset((named,))
        return Asked(spaces, selectors or None)

    def params(self) -> dict[str, str]:
        """Selectors as query parameters."""
        params = {}
        if self.label_selector:
            params["labelSelector"] = self.label_selector
        if self.field_selector:
            params["fieldSelector"] = self.field_selector
        return params


@dataclass(slots=True)
class Plan:
    """The streams to record, and those that cannot be, each with the reason."""

    specs: list[StreamSpec] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)


def plan_streams(client: ApiClient, scope: Scope) -> Plan:
    """List the streams of a scope and sort out those that the credentials may not see.

    Raises:
        ClusterError: no such namespace, or jobs may not be seen at all.
    """
    _check_namespaces(client, scope.namespaces)
    plan = Plan()
    for spec in _wanted(scope, _cronjob_version(client)):
        refusal = _refusal(client, spec)
        if refusal is None:
            plan.specs.append(spec)
        else:
            plan.unseen[spec.name] = refusal
    jobs = [spec for spec in plan.specs if spec.resource == "jobs"]
    if not jobs:
        where = scope.describe()
        raise ClusterError(
            f"These credentials may not list and watch jobs in {where}; name namespaces that they "
            "may see with -n, or apply the RBAC that `tracekit manifests` prints."
        )
    return plan


def _wanted(scope: Scope, cronjob_version: str) -> Iterable[StreamSpec]:
    labels = scope.selector
    pod_labels = labels
    if scope.pods_of_jobs_only:
        pod_labels = ",".join(filter(None, (labels, POD_OF_JOB_SELECTOR)))
    namespaced: tuple[tuple[str, str, str, str | None], ...] = (
        ("jobs", "batch/v1", "Job", labels),
        ("cronjobs", cronjob_version, "CronJob", labels),
        ("pods", "v1", "Pod", pod_labels),
        ("events", "v1", "Event", None),
        ("resourcequotas", "v1", "ResourceQuota", None),
    )
    several = len(scope.namespaces) > 1
    for namespace in scope.namespaces or (None,):
        part = namespace if several else None
        for resource, group_version, kind, selector in namespaced:
            yield StreamSpec(
                resource=resource,
                group_version=group_version,
                kind=kind,
                namespace=namespace,
                label_selector=selector,
                part=part,
                keeps_bodies=kind != "Event",
            )
        # Namespaces are cluster-scoped: one stream per name, or one for all.
        yield StreamSpec(
            resource="namespaces",
            group_version="v1",
            kind="Namespace",
            field_selector=f"metadata.name={namespace}" if namespace else None,
            part=part,
        )
    yield StreamSpec(
        resource="leases",
        group_version="coordination.k8s.io/v1",
        kind="Lease",
        namespace=CONTROLLER_MANAGER_NAMESPACE,
        field_selector=f"metadata.name={CONTROLLER_MANAGER_LEASE}",
    )


def _cronjob_version(client: ApiClient) -> str:
    for group_version in _CRONJOB_VERSIONS:
        try:
            found = client.get(f"/apis/{group_version}")
        except (NotFound, Forbidden):
            continue
        listed = found.get("resources")
        items = listed if isinstance(listed, list) else ()
        if any(isinstance(item, dict) and item.get("name") == "cronjobs" for item in items):
            return group_version
    return _CRONJOB_VERSIONS[0]


def _check_namespaces(client: ApiClient, namespaces: Iterable[str]) -> None:
    for namespace in namespaces:
        try:
            client.get(f"/api/v1/namespaces/{namespace}")
        except NotFound as error:
            raise ClusterError(
                f'There is no namespace "{namespace}" in this cluster; check -n.'
            ) from error
        except Forbidden:
            pass  # credentials of one namespace: they may not even see that it exists


def _refusal(client: ApiClient, spec: StreamSpec) -> str | None:
    """Say why a stream cannot be seen, None if it can: a list of one item tells for certain.

    A SelfSubjectAccessReview is asked for `watch`, which a list does not prove; it may itself be
    forbidden, and then the watch will tell.
    """
    try:
        client.get(spec.path, {**spec.params(), "limit": "1"})
    except Forbidden as error:
        return f"list is forbidden ({error.reason})"
    except NotFound:
        return f"the server has no {spec.resource} in {spec.group_version}"
    if not _may_watch(client, spec):
        return "watch is forbidden"
    return None


def log_refusal(client: ApiClient, scope: Scope) -> str | None:
    """Say why containers' logs cannot be read in a scope, None if they can."""
    for namespace in scope.namespaces or ("",):
        attributes = {
            "verb": "get",
            "group": "",
            "resource": "pods",
            "subresource": "log",
            "namespace": namespace,
        }
        if not _is_allowed(client, attributes):
            where = f" in {namespace}" if namespace else ""
            return f"get of pods/log is forbidden{where}"
    return None


def _may_watch(client: ApiClient, spec: StreamSpec) -> bool:
    attributes: dict[str, Any] = {
        "verb": "watch",
        "group": spec.group,
        "resource": spec.resource,
        "namespace": spec.namespace or "",
    }
    if (spec.field_selector or "").startswith("metadata.name="):
        attributes["name"] = (spec.field_selector or "").removeprefix("metadata.name=")
    return _is_allowed(client, attributes)


def _is_allowed(client: ApiClient, attributes: dict[str, Any]) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer = client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    except RequestFailed:
        return True
    status = answer.get("status")
    return not isinstance(status, dict) or bool(status.get("allowed", True))
