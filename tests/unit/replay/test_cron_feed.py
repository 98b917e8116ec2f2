"""The typed columns of an imported trace give the verdicts of the watch log that it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cron_logs import judge, log
from tests.support.traces import TRACES, import_log
from tracekit.judging.judged import Asked, Judge, resolve_era


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.30.14-all", "v1.36.3-restart"])
def test_a_trace_gives_the_same_verdicts_as_its_log(name: str, tmp_path: Path) -> None:
    reader = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name)
    report = Judge(reader, resolve_era(reader, None, None)).report(
        Asked(controllers=("cronjob", "ttl"))
    )
    judged = judge(name, log(name))
    assert judged
    key = lambda j: (j.controller, j.object, j.action, j.resource_version, j.subject)  # noqa: E731
    assert sorted(report.judgements, key=key) == sorted(judged, key=key)
