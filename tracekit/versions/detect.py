"""Which Kubernetes versions could have written the objects of a record.

For records without a /version. A driver turns each observation into facts with `facts_of` (or
makes `Fact`s of its own from columns) and hands the stream to `detect`, which keeps the first
fact of each sign, intersects their bounds and says which signs narrowed the range:
`v1.31 - v1.34 because …`.

Default gates are assumed as long as that leaves a version; if not, only what no gate can move
counts. Signs that contradict even that mean an upgrade within the record or objects from before
it: then what newer versions alone can do wins, and the contradiction is told.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from tracekit.base.kube.field_managers import is_certainly_foreign
from tracekit.versions.behavior_releases import releases_that_differ
from tracekit.versions.era import NEWEST, OLDEST
from tracekit.versions.version import PATCH_MAX, KubeVersion
from tracekit.versions.version_markers import Bounds, Sign

REASONS_SHOWN: Final = 4
MANAGED_BY_JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
_TRACKING: Final = "batch.kubernetes.io/job-tracking"
_JOB_NAME: Final = "batch.kubernetes.io/job-name"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_SLOT_IN_NAME: Final = re.compile(r"-(\d+)$", re.ASCII)
_DIGITS_OF_SECONDS: Final = 10
_DIGITS_OF_MINUTES: Final = 8
_ENDINGS_WITHOUT_POLICY: Final = ("BackoffLimitExceeded", "DeadlineExceeded")


class Fact(Struct, frozen=True):
    """A sign, and where it was seen."""

    sign: Sign
    where: str


class Detection(Struct, frozen=True):
    """The range of versions that fits, with what led to it."""

    first: KubeVersion
    last: KubeVersion
    #: The facts that set the two ends, one of each end first.
    evidence: tuple[Fact, ...]
    #: Facts that no version of the range can show.
    contradictions: tuple[Fact, ...]
    #: First and last version when nothing is assumed of the gates.
    whatever_gates: tuple[KubeVersion, KubeVersion]

    @property
    def assumes_default_gates(self) -> bool:
        """Whether default gates had to be assumed to get a range this narrow."""
        return (self.first, self.last) != self.whatever_gates

    @property
    def best(self) -> KubeVersion:
        """The version to replay with when one is needed: the newest that fits."""
        return self.last

    @property
    def releases(self) -> tuple[KubeVersion, ...]:
        """A release of each kind that fits, the newest, and best, first."""
        minors = range(self.last.minor, self.first.minor - 1, -1)
        return tuple(release for minor in minors for release in releases_that_differ(minor))

    def range_text(self) -> str:
        """`v1.31 - v1.34`, or one branch."""
        return _range_text(self.first, self.last)

    def describe(self) -> str:
        """The range with its evidence, as one text."""
        text = self.range_text()
        if self.evidence:
            text += f" because {_reasons(self.evidence)}"
        else:
            text += ", as nothing in the objects says more"
        if self.assumes_default_gates:
            text += (
                f"; default feature gates are assumed ({_range_text(*self.whatever_gates)} else)"
            )
        if self.contradictions:
            text += f"; left from before an upgrade, it seems: {_reasons(self.contradictions)}"
        return text


def _range_text(first: KubeVersion, last: KubeVersion) -> str:
    if first.branch == last.branch:
        return f"v{first.branch}"
    return f"v{first.branch} - v{last.branch}"


def _reasons(facts: tuple[Fact, ...]) -> str:
    """The first few facts in words, and how many more there are."""
    reasons = [f"{fact.sign.rule.phrase} ({fact.where})" for fact in facts[:REASONS_SHOWN]]
    if len(facts) > REASONS_SHOWN:
        reasons.append(f"and {len(facts) - REASONS_SHOWN} more such signs")
    return "; ".join(reasons)


def detect(facts: Iterable[Fact]) -> Detection:
    """The narrowest range that the facts allow; all known versions when there are none."""
    seen: dict[Sign, Fact] = {}
    for fact in facts:
        seen.setdefault(fact.sign, fact)
    found = list(seen.values())
    hard = _intersect([fact.sign.rule.hard for fact in found])
    narrow = _intersect([fact.sign.rule.default for fact in found])
    defaults = narrow[0] <= narrow[1]
    first, last = narrow if defaults else hard
    contradictions: tuple[Fact, ...] = ()
    if first > last:
        # Only an upgrade or left-overs explain this; a newer version's doings cannot be left-overs.
        last = NEWEST.minor
        hard = (first, last)
        contradictions = tuple(f for f in found if not _allows(f.sign.rule.hard, first))
    return Detection(
        _first_of(first),
        _last_of(last),
        _evidence([f for f in found if f not in contradictions], first, last, defaults=defaults),
        contradictions,
        (_first_of(hard[0]), _last_of(hard[1])),
    )


def _first_of(minor: int) -> KubeVersion:
    return KubeVersion(1, minor, 0)


def _last_of(minor: int) -> KubeVersion:
    return KubeVersion(1, minor, PATCH_MAX, text=f"v1.{minor}")


def _intersect(bounds: list[Bounds]) -> tuple[int, int]:
    first = max((b.first for b in bounds if b.first is not None), default=OLDEST.minor)
    last = min((b.last for b in bounds if b.last is not None), default=NEWEST.minor)
    return max(first, OLDEST.minor), min(last, NEWEST.minor)


def _allows(bounds: Bounds, minor: int) -> bool:
    return (bounds.first is None or bounds.first <= minor) and (
        bounds.last is None or minor <= bounds.last
    )


def _evidence(facts: list[Fact], first: int, last: int, *, defaults: bool) -> tuple[Fact, ...]:
    """The facts that set the two ends; one of each end comes first."""
    lower, upper = [], []
    for fact in facts:
        rule = fact.sign.rule
        bounds = rule.default if defaults else rule.hard
        if bounds.first == first:
            lower.append(fact)
        elif bounds.last == last:
            upper.append(fact)
    return (*lower[:1], *upper[:1], *lower[1:], *upper[1:])


def facts_of(
    kind: str,
    raw: Mapping[str, Any],
    *,
    created_in_record: bool,
    written_in_record: bool,
    known: Container[Sign] = (),
) -> Iterator[Fact]:
    """The facts that one revision of an object gives.

    `created_in_record`: the object came into being while the record ran. `written_in_record`: this
    revision was written while it ran. Without these, only what no older version could have left
    behind is told. `known`: signs that are not told again.
    """
    meta = _map(raw.get("metadata"))
    signs = _signs(kind, raw, meta, created=created_in_record, written=written_in_record)
    for sign in signs:
        if sign not in known:
            named = f"{kind} {meta.get('namespace', '')}/{meta.get('name', '')}"
            yield Fact(sign, named.replace(" /", " "))


def _signs(
    kind: str, raw: Mapping[str, Any], meta: Mapping[str, Any], *, created: bool, written: bool
) -> tuple[Sign, ...]:
    """All signs of one revision, in the order in which they are told."""
    if kind == "Event":
        return _event_signs(raw)
    signs = _server_signs(kind, raw, meta, new=created)
    if kind == "Job":
        signs = (*signs, *_job_signs(raw, meta, new=created))
        if _map(raw.get("spec")).get("managedBy") in (None, MANAGED_BY_JOB_CONTROLLER):
            status = _map(raw.get("status"))
            signs = (*signs, *_job_status_signs(status, written=written))
            if created and written and _is_untracked(meta, status):
                signs = (*signs, Sign.UNTRACKED)
    elif kind == "Pod":
        signs = (*signs, *_pod_signs(raw, meta, new=created))
    elif kind == "CronJob":
        signs = (*signs, *_cron_job_signs(raw))
    return signs


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _server_signs(
    kind: str, raw: Mapping[str, Any], meta: Mapping[str, Any], *, new: bool
) -> tuple[Sign, ...]:
    signs = [Sign.SELF_LINK if meta.get("selfLink") else Sign.NO_SELF_LINK]
    managed = _list(meta.get("managedFields"))
    if managed:
        signs.append(Sign.MANAGED_FIELDS)
        if any(_map(entry).get("subresource") for entry in managed):
            signs.append(Sign.MANAGED_FIELDS_SUBRESOURCE)
    if kind == "Namespace":
        labelled = "kubernetes.io/metadata.name" in _map(meta.get("labels"))
        if labelled:
            signs.append(Sign.NAMESPACE_NAME_LABEL)
        elif new:
            signs.append(Sign.NO_NAMESPACE_NAME_LABEL)
    spec = _map(raw.get("spec"))
    template = _map(spec.get("jobTemplate" if kind == "CronJob" else "template"))
    template_meta = template.get("metadata")
    if kind in ("Job", "CronJob") and isinstance(template_meta, dict):
        if "creationTimestamp" in template_meta:
            signs.append(Sign.NULL_CREATION_TIMESTAMP)
        elif template_meta:
            signs.append(Sign.NO_NULL_CREATION_TIMESTAMP)
    return tuple(signs)


def _job_signs(raw: Mapping[str, Any], meta: Mapping[str, Any], *, new: bool) -> Iterator[Sign]:
    spec = _map(raw.get("spec"))
    for field, sign in _JOB_FIELDS:
        if spec.get(field) is not None:
            yield sign
    if "generation" in meta:
        yield Sign.JOB_GENERATION
    labels = _map(_map(_map(spec.get("template")).get("metadata")).get("labels"))
    if _JOB_NAME in labels:
        yield Sign.PREFIXED_LABELS
    if new:
        yield from _new_job_signs(raw, meta, spec, labels)


def _new_job_signs(
    raw: Mapping[str, Any],
    meta: Mapping[str, Any],
    spec: Mapping[str, Any],
    labels: Mapping[str, Any],
) -> Iterator[Sign]:
    if "generation" not in meta:
        yield Sign.NO_JOB_GENERATION
    if spec.get("completionMode") is None:
        yield Sign.NO_COMPLETION_MODE
    if spec.get("podReplacementPolicy") is None:
        yield Sign.NO_POD_REPLACEMENT_POLICY
    if "controller-uid" in labels and _JOB_NAME not in labels:
        yield Sign.NO_PREFIXED_LABELS
    tracked = isinstance(_map(raw.get("status")).get("uncountedTerminatedPods"), dict)
    if _TRACKING in _map(meta.get("annotations")):
        yield Sign.TRACKING_ANNOTATION
    elif tracked:
        yield Sign.TRACKED_WITHOUT_ANNOTATION
    yield from _cron_child_signs(meta)


_JOB_FIELDS: Final = (
    ("completionMode", Sign.COMPLETION_MODE),
    ("suspend", Sign.SUSPEND),
    ("podFailurePolicy", Sign.POD_FAILURE_POLICY),
    ("backoffLimitPerIndex", Sign.BACKOFF_LIMIT_PER_INDEX),
    ("podReplacementPolicy", Sign.POD_REPLACEMENT_POLICY),
    ("successPolicy", Sign.SUCCESS_POLICY),
    ("managedBy", Sign.MANAGED_BY),
)


def _cron_child_signs(meta: Mapping[str, Any]) -> Iterator[Sign]:
    """Of a new Job whose controller is a CronJob and whose name the controller chose.

    Somebody else may have made it: `kubectl create job --from` names the CronJob as its controller.
    """
    owner = next(
        (
            ref
            for ref in map(_map, _list(meta.get("ownerReferences")))
            if ref.get("kind") == "CronJob" and ref.get("controller") is True
        ),
        None,
    )
    suffix = _SLOT_IN_NAME.search(str(meta.get("name", "")))
    if owner is None or suffix is None or is_certainly_foreign(meta):
        return
    if len(suffix[1]) == _DIGITS_OF_SECONDS:
        yield Sign.NAME_IN_SECONDS
    elif len(suffix[1]) == _DIGITS_OF_MINUTES:
        yield Sign.NAME_IN_MINUTES
    else:
        return
    if owner.get("apiVersion") == "batch/v1beta1":
        yield Sign.OWNED_BY_V1BETA1
    elif owner.get("apiVersion") == "batch/v1":
        yield Sign.OWNED_BY_V1
    scheduled = _SCHEDULED in _map(meta.get("annotations"))
    yield Sign.SCHEDULED_ANNOTATION if scheduled else Sign.NO_SCHEDULED_ANNOTATION


def _job_status_signs(status: Mapping[str, Any], *, written: bool) -> Iterator[Sign]:
    for field, sign in STATUS_FIELDS:
        if status.get(field) is not None:
            yield sign
    conditions = {
        str(condition.get("type")): condition
        for condition in map(_map, _list(status.get("conditions")))
        if condition.get("status") == "True"
    }
    target = conditions.get("FailureTarget")
    if target is not None:
        yield Sign.FAILURE_TARGET
        if target.get("reason") in _ENDINGS_WITHOUT_POLICY:
            yield Sign.FAILURE_TARGET_OF_ANY_ENDING
    if "SuccessCriteriaMet" in conditions:
        yield Sign.SUCCESS_CRITERIA_MET
    complete = conditions.get("Complete")
    if complete is not None and complete.get("reason") == "CompletionsReached":
        yield Sign.COMPLETIONS_REACHED
    if written:
        yield from _written_status_signs(status, conditions)


def _written_status_signs(
    status: Mapping[str, Any], conditions: Mapping[str, Mapping[str, Any]]
) -> Iterator[Sign]:
    if "Complete" in conditions and not conditions["Complete"].get("reason"):
        yield Sign.COMPLETE_WITHOUT_REASON
    if "Suspended" in conditions:
        if status.get("startTime"):
            yield Sign.SUSPENDED_WITH_START
        elif any(status.get(field) for field in ("succeeded", "failed", "terminating")):
            yield Sign.SUSPENDED_WITHOUT_START
    if "Failed" in conditions and "FailureTarget" not in conditions:
        yield Sign.FAILED_WITHOUT_FAILURE_TARGET
    if status.get("active"):
        if status.get("ready") is None:
            yield Sign.NO_READY
        if status.get("terminating") is None:
            yield Sign.NO_TERMINATING


def _is_untracked(meta: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the controller looks after the Job without finalizers on its pods."""
    annotated = _TRACKING in _map(meta.get("annotations"))
    return bool(status.get("active")) and not (annotated or "uncountedTerminatedPods" in status)


#: Fields of a Job's status that some releases do not write, and what they show.
STATUS_FIELDS: Final = (
    ("uncountedTerminatedPods", Sign.UNCOUNTED_PODS),
    ("ready", Sign.READY),
    ("terminating", Sign.TERMINATING),
    ("failedIndexes", Sign.FAILED_INDEXES),
)


def _pod_signs(raw: Mapping[str, Any], meta: Mapping[str, Any], *, new: bool) -> Iterator[Sign]:
    spec = _map(raw.get("spec"))
    labels = _map(meta.get("labels"))
    if _INDEX in labels:
        yield Sign.INDEX_LABEL
    if _JOB_NAME in labels:
        yield Sign.PREFIXED_LABELS
    if "preemptionPolicy" in spec:
        yield Sign.PREEMPTION_POLICY
    if "generation" in meta:
        yield Sign.POD_GENERATION
    if not new:
        return
    if _TRACKING in _list(meta.get("finalizers")):
        yield Sign.TRACKING_FINALIZER
    if _INDEX in _map(meta.get("annotations")) and _INDEX not in labels:
        yield Sign.NO_INDEX_LABEL
    if "preemptionPolicy" not in spec:
        yield Sign.NO_PREEMPTION_POLICY
    if "generation" not in meta:
        yield Sign.NO_POD_GENERATION


def _cron_job_signs(raw: Mapping[str, Any]) -> Iterator[Sign]:
    if raw.get("apiVersion") == "batch/v1beta1":
        yield Sign.CRON_JOB_SERVED_AS_V1BETA1
    elif raw.get("apiVersion") == "batch/v1":
        yield Sign.CRON_JOB_SERVED_AS_V1
    if _map(raw.get("spec")).get("timeZone"):
        yield Sign.TIME_ZONE
    if _map(raw.get("status")).get("lastSuccessfulTime"):
        yield Sign.LAST_SUCCESSFUL_TIME


def _event_signs(raw: Mapping[str, Any]) -> tuple[Sign, ...]:
    component = _map(raw.get("source")).get("component") or raw.get("reportingComponent")
    reason, message = raw.get("reason"), str(raw.get("message") or raw.get("note") or "")
    sign = None
    if component == "job-controller":
        sign = _JOB_EVENTS.get(str(reason))
    elif component == "cronjob-controller":
        if reason == "JobAlreadyActive":
            sign = Sign.EVENT_JOB_ALREADY_ACTIVE
        elif reason == "SawCompletedJob":
            sign = Sign.EVENT_SAW_COMPLETED_PLAIN
            if ", status: " in message:
                sign = Sign.EVENT_SAW_COMPLETED_STATUS
            elif ", condition: " in message:
                sign = Sign.EVENT_SAW_COMPLETED_CONDITION
    return (sign,) if sign is not None else ()


_JOB_EVENTS: Final = {
    "Completed": Sign.EVENT_COMPLETED,
    "Suspended": Sign.EVENT_SUSPENDED,
    "TooManyActivePods": Sign.EVENT_TOO_MANY_ACTIVE,
}
