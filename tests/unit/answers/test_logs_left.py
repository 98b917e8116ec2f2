"""Advice to read logs is for pods that are there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tracekit.answers.findings.job_failures import EXITED, _todo


@pytest.mark.parametrize(("gone_ns", "said"), [(5, "The pods are gone"), (None, None)])
def test_pods_deleted_before_they_failed_have_no_logs(gone_ns: int | None, said: str) -> None:
    """Of a Job with OnFailure whose restarts passed backoffLimit no pod is Failed."""
    pod = SimpleNamespace(phase="Running", gone_ns=gone_ns)
    done = SimpleNamespace(phase="Succeeded", gone_ns=None)
    spec = {"template": {"spec": {"restartPolicy": "OnFailure"}}}
    job: Any = SimpleNamespace(
        spec=spec, pods=[pod, done], failure={"reason": "BackoffLimitExceeded"}, namespace="ns",
        name="a", states=[], last=SimpleNamespace(spec=spec),
    )  # fmt: skip
    facts: Any = SimpleNamespace()
    advice = _todo(facts, job, EXITED, [])
    assert (advice or "").startswith(said or "")
    assert ("are gone" in (advice or "")) is (said is not None)
