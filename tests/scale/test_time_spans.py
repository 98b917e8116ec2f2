"""A record may say that it ends in the year 2115: what that costs goes by its rows, not by its years."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.attack.answers import run
from tests.support.operations import operations
from tracekit.answers.whatif import cron_proof
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.diff import cron_pending, cron_ticks
from tracekit.check.diff.cron_ticks import TICKS_A_ROW, TICKS_AT_LEAST

START_S = 1_767_225_600
END_S = 4_607_193_600
SPEC = {
    "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
}


def lines(cron_jobs: int, schedule: str, end_s: int = END_S, *, edited: int = 0) -> bytes:
    rows = []
    for stream in ("jobs", "pods", "cronjobs"):
        for kind in ("LIST_BEGIN", "LIST_END"):
            rows.append((START_S, stream, kind, {"resourceVersion": "10"}))
    for number in range(cron_jobs):
        name = f"c{number}"
        meta = {"name": name, "namespace": "s", "uid": name, "resourceVersion": str(11 + number)}
        meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
        spec = {"schedule": schedule, "jobTemplate": {"spec": SPEC}}
        rows.append((START_S + 1, "cronjobs", "ADDED", {"metadata": meta, "spec": spec}))
        for edit in range(1, edited + 1):
            again = {**meta, "resourceVersion": str(100 + edit), "generation": edit}
            at_s = START_S + edit * (end_s - START_S) // (edited + 1)
            rows.append((at_s, "cronjobs", "MODIFIED", {"metadata": again, "spec": spec}))
    meta = {"name": "j", "namespace": "s", "uid": "j", "resourceVersion": "9999"}
    meta["creationTimestamp"] = format_rfc3339(end_s * 10**9)
    spec = {"parallelism": 1, "completions": 1, **SPEC}
    rows.append((end_s, "jobs", "ADDED", {"metadata": meta, "spec": spec, "status": {}}))
    return b"".join(
        orjson.dumps({"recv": at_s * 10**9, "resource": stream, "type": kind, "object": body})
        + b"\n"
        for at_s, stream, kind, body in rows
    )


@pytest.mark.parametrize("schedule", ["* * * * *", "@every 1s", "0 0 29 2 *"])
def test_years_of_nothing_are_not_counted_out(tmp_path, schedule: str) -> None:
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    log.write_bytes(lines(2, schedule))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    query = "SELECT cronjob, count(*) FROM cron_ticks GROUP BY ALL ORDER BY ALL"
    code, out, said = run("sql", str(trace), "-o", "csv", query)
    assert code == 0, said
    counts = [int(line.split(",")[1]) for line in out.splitlines()[1:]]
    assert len(counts) == 2
    assert max(counts) <= TICKS_AT_LEAST + TICKS_A_ROW + 1
    code, out, said = run("explain", str(trace), "s/c0")
    assert (code, len(out) < 2000) == (0, True), said
    if schedule != "0 0 29 2 *":
        assert "are not listed" in out
        opening = out.splitlines()[1]
        assert opening.startswith("More than 5,"), opening
        assert "unknown" not in opening
    assert run("diagnose", str(trace))[0] == 0


#: What bounds the times that are looked at, made small: an hour has all of them then.
_BOUNDS = [
    (cron_ticks, "TICKS_AT_LEAST", 60), (cron_ticks, "TICKS_A_ROW", 0),
    (cron_pending, "TRIGGERS_MAX", 60), (cron_proof, "TRIGGERS_MAX", 60),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    "verb", [("diagnose",), ("whatif", "--set-cron", "concurrencyPolicy=Forbid")]
)
def test_a_last_row_that_comes_later_costs_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    """Of a CronJob of each minute: an hour has all its ticks, a day and a year have the bound's."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    for module, name, most in _BOUNDS:
        monkeypatch.setattr(module, name, most)

    def steps_of(late_s: int, count: Callable[[Callable[[], object]], object]) -> Any:
        log, trace = tmp_path / "watch.jsonl", tmp_path / str(late_s)
        log.write_bytes(lines(1, "* * * * *", START_S + late_s))
        assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
        codes: list[int] = []
        steps = count(lambda: codes.append(run(verb[0], str(trace), *verb[1:])[0]))
        assert codes == [0]
        return steps

    steps_of(3_540, lambda call: call())  # what is done once a process is done now
    spans = (3_600, 86_400, 30 * 86_400, 365 * 86_400)
    hour, *later = (steps_of(late_s, operations) for late_s in spans)
    assert max(later) < 1.1 * hour, (hour, later)


def test_each_edit_of_a_cron_job_costs_a_bounded_time_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Years of nothing between two edits are looked at once, not after each edit."""
    monkeypatch.setattr(cron_pending, "TRIGGERS_MAX", 300)
    looks: list[int] = []
    look = cron_pending.WantedCheck._look
    monkeypatch.setattr(
        cron_pending.WantedCheck,
        "_look",
        lambda self, rest, at_ns, *, timed: (
            looks.append(at_ns),
            look(self, rest, at_ns, timed=timed),
        )[1],
    )
    for edits in (4, 8, 16):
        looks.clear()
        log, trace = tmp_path / "watch.jsonl", tmp_path / f"{edits}"
        log.write_bytes(lines(1, "* * * * *", edited=edits))
        assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
        assert run("replay", str(trace), "--diff", "--processes", "1")[0] == 0
        states = edits + 2
        assert states < len(looks) <= 300 + states * (cron_pending.TRIGGERS_A_STATE + 1)


@pytest.mark.parametrize(("late_s", "verdict"), [(1_800, "same"), (86_400, "unknowable")])
def test_what_was_not_compared_is_not_called_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_s: int, verdict: str
) -> None:
    """Of a CronJob of each minute that stands for a day only the first hour is compared here."""
    monkeypatch.setattr(cron_proof, "TRIGGERS_MAX", 60)
    log, trace = tmp_path / "watch.jsonl", tmp_path / "trace"
    log.write_bytes(lines(1, "* * * * *", START_S + late_s))
    assert run("import", "watch", str(log), "-o", str(trace))[0] == 0
    asked = ("whatif", str(trace), "--set-cron", "concurrencyPolicy=Forbid", "-o", "json")
    code, out, said = run(*asked)
    assert code == 0, said
    (answer,) = orjson.loads(out)["cronjobs"]
    reason = None if verdict == "same" else "undecided"
    assert (answer["verdict"], answer.get("reason")) == (verdict, reason)
