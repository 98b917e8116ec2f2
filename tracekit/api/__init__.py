"""The Python API: one object per trace.

trace = tracekit.open("run.trace")
trace.sql("SELECT job, reason FROM jobs WHERE outcome = 'Failed'").df()
trace.diagnose()
trace.replay().divergences
print(trace.explain("shop/import").text())
"""

from __future__ import annotations

from tracekit.api.results import Diagnosis, Replay
from tracekit.api.trace import Trace
from tracekit.findings.model import Finding
from tracekit.report.account import Account
from tracekit.verdict import Judgement

__all__ = ["Account", "Diagnosis", "Finding", "Judgement", "Replay", "Trace"]
