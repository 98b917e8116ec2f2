"""What Kueue's Workload says of why its Job is suspended: conditions, admission checks, spec.

Reasons and words: upstream kueue, apis/kueue/v1beta1/workload_types.go and pkg/scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tracekit.answers.remedies import of_queue
from tracekit.answers.words import clock, shortened
from tracekit.base.escaping import for_shell
from tracekit.base.kube.stored import as_mapping
from tracekit.base.kube.timestamps import parse_rfc3339

#: A check in this state holds nothing back.
_READY: Final = "Ready"


class Condition(NamedTuple):
    """An entry of `.status.conditions`; its time is Unix ns."""

    status: bool
    reason: str
    message: str
    since_ns: int | None


class Admission(NamedTuple):
    """The last state of a Workload, as far as it tells why its Job waits."""

    name: str
    queue: str
    #: Whether spec.active lets it be queued.
    active: bool
    conditions: Mapping[str, Condition]
    #: Name, state and message of each admission check.
    checks: tuple[tuple[str, str, str], ...]


class Waits(NamedTuple):
    """Why it waits, as a part of a sentence, in whose words, since when, and what frees it."""

    claim: str
    detail: str
    since_ns: int | None
    todo: str


def why_it_waits(seen: Admission, namespace: str) -> Waits:
    """Why a Job that is suspended is not started, by the Workload that Kueue made for it."""
    reserved, admitted = (seen.conditions.get(kind) for kind in ("QuotaReserved", "Admitted"))
    evicted, finished = (seen.conditions.get(kind) for kind in ("Evicted", "Finished"))
    space, name = for_shell(namespace), for_shell(seen.name)
    look = f"kubectl -n {space} describe workloads.kueue.x-k8s.io {name}"
    if not seen.active:
        cause = f" after {evicted.reason}" if evicted is not None and evicted.reason else ""
        return Waits(
            f"has deactivated it{cause}: it is not queued any more",
            f"spec.active of its Workload is false{_said(evicted)}",
            None if evicted is None else evicted.since_ns,
            f"Mend what the message names, then `kubectl -n {space} patch "
            f"workloads.kueue.x-k8s.io {name} --type=merge -p "
            '\'{"spec":{"active":true}}\'` queues it again.',
        )
    if finished is not None and finished.status:
        return Waits(
            f"takes its Workload for finished ({finished.reason})",
            f"condition Finished{_said(finished)}",
            finished.since_ns,
            f"`{look}` says why; a Job that is created anew is queued anew.",
        )
    holds = (c for c in (admitted, reserved) if c is not None and c.status)
    if evicted is not None and evicted.status and (held := next(holds, None)) is not None:
        return _evicted(evicted, held, look)
    if admitted is not None and admitted.status:
        return Waits(
            "has admitted its Workload and has not started the Job",
            f"condition Admitted{_said(admitted)}",
            admitted.since_ns,
            "Look at the log of kueue-controller-manager and at the Job's Events: its change of "
            "the Job is refused, or it does not reconcile.",
        )
    if reserved is not None and reserved.status:
        return _of_checks(seen, reserved, look)
    return _of_quota(reserved, evicted, look)


def _evicted(evicted: Condition, held: Condition, look: str) -> Waits:
    """One that has to give its quota back, which happens once none of its pods is left."""
    return Waits(
        f"has evicted it ({evicted.reason}), and its Workload has its quota still",
        f"condition Evicted{_said(evicted)}; {held.reason} is True, too",
        evicted.since_ns,
        (of_queue(f"{evicted.reason} {evicted.message}") or f"`{look}` says more.")
        + " Where no pod of it is left the quota should be free: look at the log of "
        "kueue-controller-manager.",
    )


def _of_checks(seen: Admission, reserved: Condition, look: str) -> Waits:
    held = [check for check in seen.checks if check[1] != _READY]
    names = ", ".join(f"{name} ({state or 'Pending'})" for name, state, _ in held)
    said = "; ".join(shortened(message) for _, _, message in held if message)
    return Waits(
        f"has its quota and waits for admission check {names}"
        if held
        else "has its quota and has not admitted it",
        f"condition QuotaReserved{_said(reserved)}" + (f"; the check says: {said}" if said else ""),
        reserved.since_ns,
        "Look at what answers that check (of ProvisioningRequests: kubectl get "
        f"provisioningrequests); `{look}` shows its state.",
    )


def _of_quota(reserved: Condition | None, evicted: Condition | None, look: str) -> Waits:
    if reserved is None:
        return Waits(
            "has not decided about its Workload",
            "it has no condition QuotaReserved",
            None,
            "Look whether kueue-controller-manager runs, and whether the LocalQueue and its "
            "ClusterQueue are there and active.",
        )
    again = ""
    if evicted is not None and evicted.status:
        at = "" if evicted.since_ns is None else f" at {clock(evicted.since_ns)}"
        again = f"; it was evicted{at}{_said(evicted)}"
    put_off = f" after it was evicted ({evicted.reason})" if again and evicted is not None else ""
    return Waits(
        f"has reserved no quota for it{put_off}",
        f"condition QuotaReserved{_said(reserved)}{again}",
        reserved.since_ns,
        of_queue(f"{reserved.message} {evicted.message if again and evicted else ''}")
        or f"`{look}` says more.",
    )


def _said(condition: Condition | None) -> str:
    if condition is None:
        return ""
    words = ": ".join(filter(None, (condition.reason, shortened(condition.message))))
    return f": {words}" if words else ""


def admission_of(obj: Mapping[str, Any]) -> Admission:
    """What a Workload says, as its JSON has it."""
    meta, spec, status = (as_mapping(obj.get(part)) for part in ("metadata", "spec", "status"))
    conditions = {
        str(found.get("type")): Condition(
            found.get("status") == "True",
            str(found.get("reason") or ""),
            str(found.get("message") or ""),
            parse_rfc3339(str(found.get("lastTransitionTime") or "")),
        )
        for found in map(as_mapping, _list(status.get("conditions")))
    }
    checks = tuple(
        tuple(str(found.get(part) or "") for part in ("name", "state", "message"))
        for found in map(as_mapping, _list(status.get("admissionChecks")))
    )
    return Admission(
        str(meta.get("name") or ""),
        str(spec.get("queueName") or ""),
        spec.get("active") is not False,
        conditions,
        checks,  # type: ignore[arg-type]
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
