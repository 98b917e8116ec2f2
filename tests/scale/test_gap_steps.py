"""A Job costs the same steps however many gaps the record has that it did not live in."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.support.operations import operations
from tests.support.traces import TRACES, import_log
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.replay.run_context import Outage, RunContext
from tracekit.judge.judged import resolve_era
from tracekit.judge.run_context import whole_context
from tracekit.versions.job import JobRules

_TRACE = "v1.25.4-twins"


def _with_gaps(context: RunContext, begin_ns: int, count: int) -> RunContext:
    """The same with gaps of a second, an hour before the first row and earlier."""
    ends = (begin_ns - (3600 + 10 * at) * NS_PER_S for at in reversed(range(count)))
    gaps = tuple(Outage(end - NS_PER_S, end, "gap in pods: it broke", "pods") for end in ends)
    return replace(context, gaps=gaps)


def test_a_job_does_not_look_at_each_gap(tmp_path: Path) -> None:
    reader = import_log(TRACES / _TRACE / "watch.jsonl.zst", tmp_path / "t", _TRACE)
    rules = JobRules.of(resolve_era(reader, None, None))
    begin_ns = min(reader.table(("recv_ns",))["recv_ns"].to_pylist())

    def judged(count: int) -> list[object]:
        context = _with_gaps(whole_context(reader), begin_ns, count)
        groups = reader.groups(COLUMNS)
        return [j for key in judge_groups(groups, rules, context) for j in key.judgements]

    assert judged(1000) == judged(0)
    few, many = (operations(lambda count=count: judged(count)) for count in (100, 1000))  # type: ignore[misc]
    # Each gap is made, sorted and counted once.
    assert many - few < 900 * 30
