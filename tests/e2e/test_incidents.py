"""An incident can be made to happen again, recorded, and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.incident_scenarios import INCIDENTS
from tests.e2e.incidents import Run, make
from tracekit.api import Trace

pytestmark = pytest.mark.e2e


def _recorded(slug: str, tmp_path: Path) -> Trace:
    incident = INCIDENTS[slug]
    out = tmp_path / slug
    make(Run(slug=slug, incident=incident, version=incident.version, out=out))
    return Trace(out)


def test_pods_of_a_failed_job_vanish(tmp_path: Path) -> None:
    trace = _recorded("failed-pods-vanish", tmp_path)
    assert trace.replay().divergences == []
    told = trace.explain("t-failed-pods-vanish/on-failure").text(verbose=True)
    assert "reach backoffLimit 2" in told


def test_a_lagging_view_counts_a_pod_twice(tmp_path: Path) -> None:
    trace = _recorded("counted-twice", tmp_path)
    assert trace.replay().divergences == []
    assert "counted again:" in trace.explain("t-counted-twice/import").text()
