"""Jobs, pods and an API server for the tests of the counting controller."""

from dataclasses import dataclass, field

from msgspec.structs import replace

from tracekit.base.kube.views import JobStatus, JobView, OwnerRef, job_from_raw, pod_from_raw
from tracekit.ports.actions import Created, Outcome
from tracekit.ports.job.context import Choices, SyncClock
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.sync_counting import sync_counting_job
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

S = 1_000_000_000
#: A time that is no whole second, so that what the controller took from its clock can be told.
NOW = 1_600_000_000 * S + 500_000_000
SELECTOR = {"matchLabels": {"controller-uid": "job-uid"}}
LABELS = {"controller-uid": "job-uid", "job-name": "job"}


def rules(version, **gates):
    return JobRules.of(Era.resolve(version, gates))


def job(
    parallelism=2,
    completions=5,
    limit=6,
    *,
    name="job",
    uid="job-uid",
    restart="Never",
    deadline=None,
    deleting=False,
    suspend=None,
    mode=None,
    rv=10,
    annotations=None,
    **status,
):
    spec = {
        "parallelism": parallelism,
        "backoffLimit": limit,
        "selector": SELECTOR,
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i"}]},
        },
    }
    optional = {
        "completions": completions,
        "activeDeadlineSeconds": deadline,
        "suspend": suspend,
        "completionMode": mode,
    }
    spec |= {key: value for key, value in optional.items() if value is not None}
    view = job_from_raw(
        {
            "metadata": {
                "namespace": "ns",
                "name": name,
                "uid": uid,
                "resourceVersion": str(rv),
                "annotations": annotations or {},
            },
            "spec": spec,
        }
    )
    return replace(
        view, deleted_ns=NOW if deleting else None, status=replace(JobStatus(), **status)
    )


def pod(name, phase="Running", *, owner="job-uid", labels=None, restarts=0, index=None, **more):
    raw = {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "labels": LABELS if labels is None else labels,
            "annotations": (
                {} if index is None else {"batch.kubernetes.io/job-completion-index": str(index)}
            ),
        },
        "spec": {"nodeName": "n"},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "c", "restartCount": restarts}],
        },
    }
    view = pod_from_raw(raw)
    ref = OwnerRef("Job", "job", owner, "batch/v1", controller=True) if owner else None
    return replace(view, controller=ref, owners=(ref,) if ref else (), **more)


def pods(**phases):
    """`pods(Running=2, Failed=1)`."""
    return [
        pod(f"{phase.lower()}-{n}", phase) for phase, count in phases.items() for n in range(count)
    ]


def started(seconds_ago):
    return NOW - 500_000_000 - seconds_ago * S


@dataclass
class Api:
    """Answers as told, and notes every call in order."""

    creates: list = field(default_factory=list)  # outcomes, in order; OK when used up
    deletes: dict = field(default_factory=dict)  # pod name -> outcome
    status_outcome: Outcome = Outcome.OK
    adopts: Outcome = Outcome.OK
    releases: Outcome = Outcome.OK
    live: bool = True
    calls: list = field(default_factory=list)
    batches: list = field(default_factory=list)
    status: JobStatus | None = None

    def create_pods(self, job: JobView, intents):
        del job
        self.batches.append(len(intents))
        answers = []
        for intent in intents:
            outcome = self.creates.pop(0) if self.creates else Outcome.OK
            self.calls.append(("create", intent.completion_index, outcome))
            self.intent = intent
            answers.append(Created(outcome, f"new-{len(self.calls)}"))
        return answers

    def delete_pods(self, job, pods):
        del job
        self.calls += [("delete", pod.name) for pod in pods]
        return [self.deletes.get(pod.name, Outcome.OK) for pod in pods]

    def remove_finalizers(self, pods):
        self.calls += [("finalizer", pod.name) for pod in pods]
        return [Outcome.OK] * len(pods)

    def adopt_pod(self, job, pod, *, add_finalizer):
        del job
        assert not add_finalizer
        self.calls.append(("adopt", pod.name))
        return self.adopts

    def release_pod(self, job, pod):
        del job
        self.calls.append(("release", pod.name))
        return self.releases

    def can_adopt(self, job):
        del job
        self.calls.append(("recheck",))
        return self.live

    def update_status(self, job, status):
        self.calls.append(("status",))
        if self.status_outcome is Outcome.OK:
            self.status = status
        return self.status_outcome, job

    def record_event(self, job, event_type, reason, message):
        del job
        self.calls.append(("event", event_type, reason, message))

    # What the tests ask.

    def named(self, kind):
        return [call[1] for call in self.calls if call[0] == kind]

    @property
    def created(self):
        return sum(1 for call in self.calls if call[0] == "create")

    @property
    def reasons(self):
        return [call[2] for call in self.calls if call[0] == "event"]

    @property
    def conditions(self):
        return [(c.type, c.reason) for c in self.status.conditions] if self.status else []


@dataclass
class Synced:
    """One sync and all that it left behind."""

    result: object
    api: Api
    memory: JobMemory
    clock: SyncClock

    @property
    def counts(self):
        status = self.api.status
        return None if status is None else (status.active, status.succeeded, status.failed)


def sync(version, job, pods=(), *, api=None, memory=None, now=NOW, gates=None):
    api, memory, clock = api or Api(), memory or JobMemory(), SyncClock(now)
    result = sync_counting_job(
        job,
        list(pods),
        memory,
        api,
        clock=clock,
        rules=rules(version, **(gates or {})),
        choices=Choices(),
    )
    return Synced(result, api, memory, clock)
