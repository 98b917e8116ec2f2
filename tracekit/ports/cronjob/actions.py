"""What a CronJob sync asks of the API server, and how the driver answers.

A sync writes by handing an intent to `CronJobApi.perform`, in program order, and learns the
outcome at once; live reads go through `get_job` and `get_cron_job`. A free run answers from a model
of the API server, trace validation from what was observed. `Recorder` keeps the intents in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.cron.zones import Zone
from tracekit.base.kube.cronjob_views import CronJobStatus, CronJobView
from tracekit.base.kube.views import JobView
from tracekit.ports.actions import Outcome
from tracekit.versions.cronjob import CronJobEra

NORMAL, WARNING = "Normal", "Warning"


class CreateJob(Struct, frozen=True):
    """POST of a Job, with everything that the controller decides about its body."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner_api: str
    owner_name: str
    owner_uid: str
    spec: Mapping[str, Any]
    scheduled_ns: int
    creation_time_ns: int | None  # metadata.creationTimestamp of the request (1.22 and later)


class DeleteJob(Struct, frozen=True):
    """DELETE of a Job; `propagation` None leaves the choice to the server."""

    namespace: str
    name: str
    uid: str
    propagation: str | None = "Background"


class ScaleDownJob(Struct, frozen=True):
    """PUT of a Job with parallelism 0, the first step of a deletion up to 1.12."""

    namespace: str
    name: str
    uid: str


class DeleteJobPods(Struct, frozen=True):
    """LIST of a Job's pods by its selector and DELETE of each, second step up to 1.12."""

    namespace: str
    name: str
    uid: str


class UpdateCronJobStatus(Struct, frozen=True):
    """PUT of the whole status on the revision `base_rv`."""

    namespace: str
    name: str
    uid: str
    base_rv: int
    status: CronJobStatus


class RecordEvent(Struct, frozen=True):
    """An Event about the CronJob."""

    type: str
    reason: str
    message: str


Intent = CreateJob | DeleteJob | ScaleDownJob | DeleteJobPods | UpdateCronJobStatus | RecordEvent


class Answer(Struct, frozen=True):
    """How the server answered a write."""

    outcome: Outcome = Outcome.OK
    message: str = ""  # the error's text, where the outcome is one
    uid: str = ""  # of a created Job
    rv: str = ""  # of a created Job, or of a CronJob after its status was written
    step: str = ""  # DeleteJobPods: "list" where the list failed, "pods" where a deletion did

    @property
    def ok(self) -> bool:
        """Whether the write succeeded."""
        return self.outcome is Outcome.OK


OK = Answer()


class CronJobApi(Protocol):
    """What a sync may ask of the API server; a failed read is answered with an `Answer`."""

    def perform(self, intent: Intent) -> Answer:
        """Do (or judge) a write and say how it went; Events are always accepted."""

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """Live GET of a Job."""

    def get_cron_job(self, namespace: str, name: str) -> CronJobView | Answer:
        """Live GET of a CronJob."""


class SyncResult(Struct, frozen=True):
    """One sync: its writes in program order, when the key comes back, its error."""

    intents: tuple[Intent, ...]
    requeue_after_ns: int | None = None
    error: str | None = None
    #: Whether the worker forgets the key's failures; an error never does.
    forgets: bool = False
    #: The slot that was due, whether or not a Job was started for it.
    due_ns: int | None = None
    #: Why nothing was started, in a few words; empty where a Job was, or where nothing was due.
    reason: str = ""


class SyncContext(Struct, frozen=True):
    """What stays the same throughout one sync."""

    now_ns: int
    era: CronJobEra
    recorder: Recorder
    zone: Zone  # the controller process's


class Recorder:
    """Passes intents to the driver and keeps them in order."""

    __slots__ = ("_api", "due_ns", "intents", "reason")

    def __init__(self, api: CronJobApi) -> None:
        self._api = api
        self.intents: list[Intent] = []
        self.due_ns: int | None = None
        self.reason = ""

    def perform(self, intent: Intent) -> Answer:
        """Hand a write to the driver."""
        self.intents.append(intent)
        return self._api.perform(intent)

    def warn(self, reason: str, message: str) -> None:
        """Record a Warning event."""
        self.perform(RecordEvent(WARNING, reason, message))

    def note(self, reason: str, message: str) -> None:
        """Record a Normal event."""
        self.perform(RecordEvent(NORMAL, reason, message))

    def put_status(self, cron_job: CronJobView) -> tuple[CronJobView, Answer]:
        """PUT the status; what comes back has the revision that the write made."""
        answer = self.perform(
            UpdateCronJobStatus(
                cron_job.namespace, cron_job.name, cron_job.uid, cron_job.rv, cron_job.status
            )
        )
        if answer.ok and answer.rv:
            cron_job = replace(cron_job, rv=int(answer.rv))
        return cron_job, answer

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """Live GET of a Job."""
        return self._api.get_job(namespace, name)

    def get_cron_job(self, namespace: str, name: str) -> CronJobView | Answer:
        """Live GET of a CronJob."""
        return self._api.get_cron_job(namespace, name)

    def result(
        self, *, requeue_after_ns: int | None = None, error: str | None = None
    ) -> SyncResult:
        """Close the sync."""
        return SyncResult(
            tuple(self.intents), requeue_after_ns, error, due_ns=self.due_ns, reason=self.reason
        )
