"""The CronJob controllers' port to the model of the API server, and how answers become errors.

Upstream: pkg/controller/cronjob/injection.go.
"""

from __future__ import annotations

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import JobView
from tracekit.model.cluster.api_server import ApiServer, Reply
from tracekit.model.cluster.references import controller_reference
from tracekit.model.cluster.store import Raw
from tracekit.model.process.broadcaster import Broadcaster, Reference
from tracekit.model.process.client import Calls
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import (
    Answer,
    CreateJob,
    DeleteJob,
    DeleteJobPods,
    Intent,
    RecordEvent,
    ScaleDownJob,
    UpdateCronJobStatus,
)


class CronPort:
    """The port of the syncs of one CronJob (`ports.cronjob.actions.CronJobApi`)."""

    __slots__ = ("_about", "_broadcaster", "_calls", "_server")

    def __init__(
        self,
        server: ApiServer,
        calls: Calls,
        broadcaster: Broadcaster,
        cron_job: CronJobView,
        api_version: str,
    ) -> None:
        self._server = server
        self._calls = calls
        self._broadcaster = broadcaster
        self._about = Reference.to("CronJob", api_version, cron_job)

    def perform(self, intent: Intent) -> Answer:
        """Do a write and say how it went."""
        match intent:
            case RecordEvent():
                self._broadcaster.record(self._about, intent.type, intent.reason, intent.message)
                return Answer()
            case CreateJob():
                return _answer(
                    self._calls.call(lambda: self._server.create("jobs", _job_body(intent)))
                )
            case UpdateCronJobStatus():
                return _answer(
                    self._calls.call(
                        lambda: self._server.update_cron_job_status(
                            intent.namespace,
                            intent.name,
                            intent.uid,
                            intent.base_rv,
                            intent.status,
                        )
                    )
                )
            case DeleteJob():
                # Without a policy the server leaves the pods behind, as batch Jobs always had it.
                return _answer(
                    self._calls.call(
                        lambda: self._server.delete(
                            "jobs",
                            intent.namespace,
                            intent.name,
                            propagation=intent.propagation or "Orphan",
                        )
                    )
                )
            case ScaleDownJob():
                return self._scale_down(intent)
            case DeleteJobPods():
                return self._delete_pods(intent)

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """Live GET of a Job."""
        reply = self._calls.call(lambda: self._server.get("jobs", namespace, name))
        return _answer(reply) if reply.obj is None else self._server.views.job(reply.obj)

    def get_cron_job(self, namespace: str, name: str) -> CronJobView | Answer:
        """Live GET of a CronJob."""
        reply = self._calls.call(lambda: self._server.get("cronjobs", namespace, name))
        return _answer(reply) if reply.obj is None else CronJobView.from_raw(reply.obj)

    def _scale_down(self, intent: ScaleDownJob) -> Answer:
        def stopped(obj: Raw) -> None:
            obj["spec"]["parallelism"] = 0

        return _answer(
            self._calls.call(
                lambda: self._server.change(
                    "jobs",
                    intent.namespace,
                    intent.name,
                    stopped,
                    uid=intent.uid,
                )
            )
        )

    def _delete_pods(self, intent: DeleteJobPods) -> Answer:
        reply = self._calls.call(lambda: self._server.get("jobs", intent.namespace, intent.name))
        if reply.obj is None:
            return Answer(reply.outcome, reply.message, step="list")
        selector = reply.obj["spec"].get("selector")
        pods = [
            pod["metadata"]
            for pod in self._server.store.all("pods")
            if pod["metadata"]["namespace"] == intent.namespace
            and selector_matches(selector, pod["metadata"].get("labels", {}))
        ]
        failed = Answer()
        for meta in pods:
            answer = self._calls.call(
                lambda meta=meta: self._server.delete(  # type: ignore[misc]
                    "pods", meta["namespace"], meta["name"]
                )
            )
            if not answer.ok and answer.outcome is not Outcome.NOT_FOUND:
                failed = Answer(answer.outcome, answer.message, step="pods")
        return failed


def _answer(reply: Reply) -> Answer:
    meta = reply.obj["metadata"] if reply.obj is not None else {}
    return Answer(
        reply.outcome,
        reply.message,
        uid=str(meta.get("uid", "")),
        rv=str(meta.get("resourceVersion", "")),
    )


def _job_body(intent: CreateJob) -> Raw:
    meta: Raw = {
        "namespace": intent.namespace,
        "name": intent.name,
        "ownerReferences": [
            controller_reference(intent.owner_api, "CronJob", intent.owner_name, intent.owner_uid)
        ],
    }
    if intent.labels:
        meta["labels"] = dict(intent.labels)
    if intent.annotations:
        meta["annotations"] = dict(intent.annotations)
    return {"metadata": meta, "spec": dict(intent.spec)}
