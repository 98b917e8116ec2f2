"""kubernetes#110430, argo-cd#16606: Jobs that were started by hand stay, whatever the limits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.findings.situations import Asked, Object, at, check_first_screen, cron, job
from tracekit.answers.trace_model import Facts

CRON = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "c-1"}


def by_hand(ids: str, count: int, spec: Object | None = None, **owner: Any) -> list[Object]:
    """So many Complete Jobs that somebody started out of a CronJob that is not due yet."""
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": at("09:06"),
                "lastProbeTime": at("09:06")}  # fmt: skip
    done = {"active": 0, "succeeded": 1, "completionTime": at("09:06"), "conditions": [complete]}
    return [
        cron({"schedule": "0 3 * * *"}, {"lastScheduleTime": at("03:00")}),
        *(job(spec, done, name=f"hand-{number}", uid=f"{ids}-{number}",
              annotations={"cronjob.kubernetes.io/instantiate": "manual"},
              ownerReferences=[{**CRON, **owner}]) for number in range(count)),
    ]  # fmt: skip


ASKED = {
    "kubernetes#110430, kubernetes#100927, argo-cd#16606": Asked(
        tuple(by_hand("a", 5)),
        ("INFO TK460 5 Jobs of CronJob app-0/tick: stay, as they were started by hand: no history limit",
         "ended at 2026-05-04 09:06:00Z; 5 such Jobs of CronJob tick", "kubectl delete job -n app-0 hand-0")),
    "three of each of two CronJobs": Asked(
        (*by_hand("e", 3), *by_hand("f", 3, name="other", uid="c-2")), (), ("TK460",)),
    "as many as the limits keep": Asked(tuple(by_hand("b", 4)), (), ("TK460",)),
    "of the CronJob's own": Asked(tuple(by_hand("c", 5, controller=True)), (), ("TK460",)),
    "with a TTL": Asked(
        tuple(by_hand("d", 5, {"ttlSecondsAfterFinished": 86400})), (), ("TK460",)),
}  # fmt: skip


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, facts: Facts) -> None:
    check_first_screen(ASKED, thread, facts)
