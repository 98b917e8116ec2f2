"""The Python API: one object per trace.

trace = tracekit.open("run.trace")
trace.sql("SELECT job, reason FROM jobs WHERE outcome = 'Failed'").df()
trace.diagnose()
trace.replay().divergences
print(trace.explain("shop/import").text())

Knows: all answers.
Called by: users' code, pytest_plugin.
"""

from __future__ import annotations

from tracekit.answers.model import Finding
from tracekit.api.results import Diagnosis, Replay
from tracekit.api.trace import Trace
from tracekit.check.verdict import Judgement
from tracekit.report.narrative import Narrative

__all__ = ["Diagnosis", "Finding", "Judgement", "Narrative", "Replay", "Trace"]
