"""A model of the API server: create, read, update, patch and delete, as the registry does them.

Optimistic concurrency, generated names, finalizers, graceful deletion of pods, propagation
policies, namespaces that end, and whatever refuses (webhooks, quota). Every call is answered at
once; how long it takes is the client's business.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go,
pkg/registry/core/pod/strategy.go (CheckGracefulDelete), pkg/registry/batch/job/strategy.go,
plugin/pkg/admission/namespace/lifecycle, plugin/pkg/admission/resourcequota.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tracekit.base.kube.cronjob_views import CronJobStatus
from tracekit.base.kube.field_managers import KUBE_CONTROLLER_MANAGER
from tracekit.base.kube.job_defaults import TERMINATION_GRACE_S
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobStatus, job_status_from_raw
from tracekit.model.cluster.admission import new_cron_job, new_job, new_pod
from tracekit.model.cluster.decoding import misshapen, without_nulls
from tracekit.model.cluster.draws import Draws
from tracekit.model.cluster.statuses import cron_job_status, job_status, time_text
from tracekit.model.cluster.store import Raw, Store
from tracekit.model.cluster.views import Views
from tracekit.ports.actions import Outcome
from tracekit.ports.job.status_validation import status_refusals
from tracekit.versions.api_server import ApiRules
from tracekit.versions.status_validation import StatusValidation

FOREGROUND, BACKGROUND, ORPHAN = "Foreground", "Background", "Orphan"
FOREGROUND_FINALIZER: Final = "foregroundDeletion"
ORPHAN_FINALIZER: Final = "orphan"

#: Kind by plural, and the API version of the core ones.
KINDS: Final = {
    "jobs": ("Job", "batch/v1"),
    "cronjobs": ("CronJob", "batch/v1"),
    "pods": ("Pod", "v1"),
    "events": ("Event", "v1"),
    "namespaces": ("Namespace", "v1"),
    "leases": ("Lease", "coordination.k8s.io/v1"),
}
_SINGULAR: Final = {"jobs": 'jobs.batch "{}"', "cronjobs": 'cronjobs.batch "{}"'}


class Refusal(NamedTuple):
    """A time in which requests are refused: a webhook, or a quota that is used up."""

    kind: str
    verb: str  # create, update, delete
    namespace: str | None  # None: in all
    from_ns: int
    until_ns: int
    message: str
    outcome: Outcome = Outcome.REFUSED


class Reply(NamedTuple):
    """The answer to a request: the object as it is then, or why not."""

    outcome: Outcome
    obj: Raw | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.outcome is Outcome.OK


class ApiServer:
    """The API server of one version, over a store."""

    def __init__(
        self, store: Store, rules: ApiRules, validation: StatusValidation, draws: Draws
    ) -> None:
        self.store = store
        self.views = Views()
        self.rules = rules
        self._validation = validation
        self._draws = draws
        self.refusals: list[Refusal] = []
        #: namespace -> how many pods may live in it at a time.
        self.pod_quota: dict[str, int] = {}
        self._living_pods: dict[str, int] = {}

    @property
    def now_ns(self) -> int:
        """The API server's clock."""
        return self.store.loop.now_ns

    # Create.

    def create(
        self,
        kind: str,
        body: Raw,
        *,
        manager: str = KUBE_CONTROLLER_MANAGER,
        uid: str | None = None,
        validate: bool = True,
    ) -> Reply:
        """POST of an object, whose metadata names its namespace and its name or a generateName.

        `uid` is for objects whose uid the world knows beforehand: a Job of a record, run again.
        Without `validate` it is one that an older version took.
        """
        meta = body["metadata"]
        namespace = meta.get("namespace", "")
        refused = self._refused(kind, "create", namespace) or self._namespace_refuses(
            kind, namespace
        )
        if refused is not None:
            return refused
        name = meta.get("name") or f"{meta.get('generateName', '')}{self._draws.suffix()}"
        if self.store.get(kind, namespace, name) is not None:
            return Reply(Outcome.ALREADY_EXISTS, None, f"{_named(kind, name)} already exists")
        if kind == "pods" and not self._quota_admits(namespace):
            hard = self.pod_quota[namespace]
            return Reply(
                Outcome.REFUSED,
                None,
                f'pods "{name}" is forbidden: exceeded quota: pods, requested: pods=1, '
                f"used: pods={hard}, limited: pods={hard}",
            )
        full = {
            **meta,
            "name": name,
            "uid": uid or self._draws.uid(),
            "creationTimestamp": time_text(self.now_ns),
        }
        if kind in ("jobs", "cronjobs"):
            body = without_nulls(body)
        wrong = misshapen(kind, body)
        if not wrong and validate:
            wrong = self._invalid(kind, body, None)
        if wrong:
            return Reply(Outcome.REFUSED, None, f"{_named(kind, name)} is invalid: {wrong}")
        obj = self._admitted(kind, {**body, "metadata": full})
        _touch(obj, manager, self.now_ns)
        if kind == "pods":
            self._living_pods[namespace] = self._living_pods.get(namespace, 0) + 1
        return Reply(Outcome.OK, self.store.put(kind, obj))

    def _admitted(self, kind: str, body: Raw) -> Raw:
        name, version = KINDS[kind]
        if kind == "cronjobs":
            version = self.rules.cron_job_api
        typed = {"kind": name, "apiVersion": version, **body}
        match kind:
            case "jobs":
                return new_job(typed, self.rules)
            case "cronjobs":
                return new_cron_job(typed, self.rules)
            case "pods":
                return new_pod(typed)
        return typed

    def _invalid(self, kind: str, body: Raw, held: Raw | None) -> str:
        """Why validation refuses an object, new or in place of another; empty if it does not."""
        if kind != "cronjobs" or not self.rules.refuses_zone_in_schedule:
            return ""
        if held is not None and "TZ" in held["spec"]["schedule"]:
            return ""
        zoned = "TZ" in body["spec"]["schedule"]
        return "spec.schedule: cannot use TZ or CRON_TZ in schedule" if zoned else ""

    def _refused(self, kind: str, verb: str, namespace: str) -> Reply | None:
        for refusal in self.refusals:
            if (
                refusal.kind == kind
                and refusal.verb == verb
                and refusal.namespace in (None, namespace)
                and refusal.from_ns <= self.now_ns < refusal.until_ns
            ):
                return Reply(refusal.outcome, None, refusal.message)
        return None

    def _namespace_refuses(self, kind: str, namespace: str) -> Reply | None:
        if not namespace or kind == "leases":
            return None
        found = self.store.get("namespaces", "", namespace)
        if found is None:
            return Reply(Outcome.NOT_FOUND, None, f'namespaces "{namespace}" not found')
        if found["metadata"].get("deletionTimestamp") is None:
            return None
        return Reply(
            Outcome.NAMESPACE_TERMINATING,
            None,
            f"unable to create new content in namespace {namespace} because it is being terminated",
        )

    def _quota_admits(self, namespace: str) -> bool:
        hard = self.pod_quota.get(namespace)
        return hard is None or self._living_pods.get(namespace, 0) < hard

    # Read.

    def get(self, kind: str, namespace: str, name: str) -> Reply:
        """GET of an object."""
        obj = self.store.get(kind, namespace, name)
        if obj is None:
            return Reply(Outcome.NOT_FOUND, None, f"{_named(kind, name)} not found")
        return Reply(Outcome.OK, obj)

    # Update.

    def update_job_status(
        self, namespace: str, name: str, uid: str, base_rv: int | None, status: JobStatus
    ) -> Reply:
        """PUT of a Job's status over the revision `base_rv`; None: over whatever is there."""
        held = self.get("jobs", namespace, name)
        stale = self._stale(held, "jobs", name, uid, base_rv)
        if stale is not None:
            return stale
        assert held.obj is not None  # noqa: S101 - `stale` says otherwise
        raw = job_status(status)
        written = job_status_from_raw(raw)
        wrong = status_refusals(self.views.job(held.obj), written, self._validation)
        if wrong:
            return Reply(
                Outcome.REFUSED, None, f'Job.batch "{name}" is invalid: {"; ".join(wrong)}'
            )
        return self._status_put("jobs", held.obj, raw)

    def update_cron_job_status(
        self, namespace: str, name: str, uid: str, base_rv: int, status: CronJobStatus
    ) -> Reply:
        """PUT of a CronJob's status over the revision `base_rv`."""
        held = self.get("cronjobs", namespace, name)
        stale = self._stale(held, "cronjobs", name, uid, base_rv)
        if stale is not None:
            return stale
        assert held.obj is not None  # noqa: S101 - `stale` says otherwise
        return self._status_put("cronjobs", held.obj, cron_job_status(status))

    def _stale(
        self, held: Reply, kind: str, name: str, uid: str, base_rv: int | None
    ) -> Reply | None:
        if held.obj is None:
            return held
        meta = held.obj["metadata"]
        if meta["uid"] != uid or (base_rv is not None and meta["resourceVersion"] != str(base_rv)):
            return Reply(
                Outcome.CONFLICT,
                None,
                f"Operation cannot be fulfilled on {_named(kind, name)}: the object has been "
                "modified; please apply your changes to the latest version and try again",
            )
        return self._refused(kind, "update", meta.get("namespace", ""))

    def _status_put(self, kind: str, held: Raw, status: Raw) -> Reply:
        if held["status"] == status:
            return Reply(Outcome.OK, held)  # nothing changes, so nothing is stored
        obj = {**held, "status": status, "metadata": dict(held["metadata"])}
        _touch(obj, KUBE_CONTROLLER_MANAGER, self.now_ns, subresource="status")
        return Reply(Outcome.OK, self.store.put(kind, obj))

    def change(
        self,
        kind: str,
        namespace: str,
        name: str,
        change: Callable[[Raw], None],
        *,
        manager: str = KUBE_CONTROLLER_MANAGER,
        uid: str | None = None,
        subresource: str = "",
    ) -> Reply:
        """PATCH or PUT of an object; without effect, nothing is stored.

        `change` works on a copy of the object and of its metadata, spec and status: it may set
        fields of these, and replaces whatever lies deeper. An object that is being deleted goes
        with its last finalizer.
        """
        held = self.get(kind, namespace, name)
        if held.obj is None:
            return held
        if uid is not None and held.obj["metadata"]["uid"] != uid:
            return Reply(Outcome.CONFLICT, None, f"the UID of {_named(kind, name)} is another")
        refused = self._refused(kind, "update", namespace)
        if refused is not None:
            return refused
        obj = {name: dict(part) if type(part) is dict else part for name, part in held.obj.items()}
        change(obj)
        wrong = misshapen(kind, obj)
        if not wrong:
            self._settle(kind, obj, held.obj)
            if obj == held.obj:
                return held
            wrong = self._invalid(kind, obj, held.obj)
        if wrong:
            return Reply(Outcome.REFUSED, None, f"{_named(kind, name)} is invalid: {wrong}")
        if kind in ("jobs", "cronjobs") and obj["spec"] is not held.obj["spec"]:
            obj["metadata"]["generation"] = held.obj["metadata"].get("generation", 1) + 1
        _touch(obj, manager, self.now_ns, subresource=subresource)
        return Reply(Outcome.OK, self._stored_or_gone(kind, obj, held.obj))

    def _settle(self, kind: str, obj: Raw, held: Raw) -> None:
        """Take from a changed object what the server does not know, and keep what is the same."""
        if kind == "jobs":
            for field in self.rules.dropped:
                if field not in held["spec"]:
                    obj["spec"].pop(field, None)
        for part in ("spec", "status"):
            if part in obj and obj[part] == held.get(part):
                obj[part] = held[part]  # the very same: who has read it reads it no more

    def _stored_or_gone(self, kind: str, obj: Raw, held: Raw) -> Raw:
        meta = obj["metadata"]
        ending = meta.get("deletionTimestamp") is not None and not meta.get("finalizers")
        if ending and not meta.get("deletionGracePeriodSeconds"):
            # The store shows the state that the object had before its last finalizer went.
            return self._removed(kind, held)
        return self._put(kind, obj, held)

    def _put(self, kind: str, obj: Raw, held: Raw) -> Raw:
        if kind == "pods" and _is_alive(held) and not _is_alive(obj):
            self._living_pods[obj["metadata"]["namespace"]] -= 1
        return self.store.put(kind, obj)

    def _removed(self, kind: str, obj: Raw) -> Raw:
        if kind == "pods" and _is_alive(obj):
            self._living_pods[obj["metadata"]["namespace"]] -= 1
        return self.store.remove(kind, obj)

    # Delete.

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        propagation: str | None = None,
        grace_s: int | None = None,
    ) -> Reply:
        """DELETE of an object; `uid` is a precondition, `grace_s` overrides a pod's own."""
        held = self.get(kind, namespace, name)
        if held.obj is None:
            return held
        if uid is not None and held.obj["metadata"]["uid"] != uid:
            return Reply(
                Outcome.CONFLICT,
                None,
                f"Operation cannot be fulfilled on {_named(kind, name)}: Precondition failed: UID "
                f"in precondition: {uid}, UID in object meta: {held.obj['metadata']['uid']}",
            )
        refused = self._refused(kind, "delete", namespace)
        if refused is not None:
            return refused
        if kind == "pods":
            return Reply(Outcome.OK, self._delete_pod(held.obj, grace_s))
        return Reply(Outcome.OK, self._delete_plain(kind, held.obj, propagation))

    def _delete_pod(self, held: Raw, grace_s: int | None) -> Raw:
        meta, spec = held["metadata"], held["spec"]
        grace = (
            spec.get("terminationGracePeriodSeconds", TERMINATION_GRACE_S)
            if grace_s is None
            else grace_s
        )
        if not _is_alive(held) or not spec.get("nodeName"):
            grace = 0
        if grace == 0 and not meta.get("finalizers"):
            return self._removed("pods", held)
        ending = meta.get("deletionTimestamp") is not None
        if ending and meta.get("deletionGracePeriodSeconds", 0) <= grace:
            return held  # it ends no later for that: nothing is stored
        marked = {
            **meta,
            "deletionTimestamp": time_text(self.now_ns + grace * NS_PER_S),
            "deletionGracePeriodSeconds": grace,
        }
        return self._put("pods", {**held, "metadata": marked}, held)

    def _delete_plain(self, kind: str, held: Raw, propagation: str | None) -> Raw:
        if kind == "namespaces":
            return self._ending_namespace(held)
        meta = dict(held["metadata"])
        finalizers = [
            name
            for name in meta.get("finalizers", ())
            if name not in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER) or propagation is None
        ]
        if propagation == FOREGROUND:
            finalizers.append(FOREGROUND_FINALIZER)
        elif propagation == ORPHAN:
            finalizers.append(ORPHAN_FINALIZER)
        if not finalizers:
            return self._removed(kind, held)
        if meta.get("deletionTimestamp") is None:
            meta["deletionTimestamp"] = time_text(self.now_ns)
            meta["deletionGracePeriodSeconds"] = 0
            meta["generation"] = meta.get("generation", 1) + 1
        meta["finalizers"] = finalizers
        if meta == held["metadata"]:
            return held
        return self._put(kind, {**held, "metadata": meta}, held)

    def _ending_namespace(self, held: Raw) -> Raw:
        if held["metadata"].get("deletionTimestamp") is not None:
            return held
        meta = {**held["metadata"], "deletionTimestamp": time_text(self.now_ns)}
        ending = {**held, "metadata": meta, "status": {"phase": "Terminating"}}
        return self._put("namespaces", ending, held)

    def finish_namespace(self, name: str) -> None:
        """Let a namespace go that is empty (the namespace controller's last request)."""
        held = self.store.get("namespaces", "", name)
        if held is not None:
            self.store.remove("namespaces", held)


def _is_alive(pod: Raw) -> bool:
    """Whether a pod counts for the quota: it has not finished."""
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def _named(kind: str, name: str) -> str:
    return _SINGULAR.get(kind, f'{kind} "{{}}"').format(name)


def _touch(obj: Raw, manager: str, now_ns: int, *, subresource: str = "") -> None:
    """Say in managedFields who wrote, and when; which fields is left out."""
    meta = obj["metadata"]
    entry: dict[str, Any] = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": obj.get("apiVersion", "v1"),
        "time": time_text(now_ns),
        "fieldsType": "FieldsV1",
        "fieldsV1": {},
    }
    if subresource:
        entry["subresource"] = subresource
    kept = [
        other
        for other in meta.get("managedFields", ())
        if (other["manager"], other.get("subresource", "")) != (manager, subresource)
    ]
    meta["managedFields"] = [*kept, entry]
