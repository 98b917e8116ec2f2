"""Parts of real records that were once told as divergences; about.json says what each shows.

And those that are witnesses of a row of the version table (`tests/mutation`). Each is what a watch of one or two Jobs, or a few, saw, of a control plane under load, refusals or an
administrator's hands: no divergence in any is true.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.answers import run
from tests.support.traces import about, import_log
from tracekit.judge.judged import Judge, resolve_era

DATA = Path(__file__).parents[1] / "data"
CASES = sorted(
    path.parent for kept in ("replay", "witnesses") for path in (DATA / kept).glob("*/about.json")
)


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_what_a_real_controller_did_is_no_divergence(folder: Path, tmp_path: Path) -> None:
    reader = import_log(folder / "watch.jsonl.zst", tmp_path / "trace", folder)
    report = Judge(reader, resolve_era(reader, None, None)).report()
    told = [(j.action, j.verdict.value, j.subject, j.why) for j in report.divergences]
    assert told == [], about(folder)["what"]
    judged = {f"{j.object.namespace}/{j.object.name}" for j in report.judgements}
    assert set(about(folder)["jobs"]) <= judged


@pytest.mark.full
@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_each_job_can_be_explained(folder: Path, tmp_path: Path) -> None:
    import_log(folder / "watch.jsonl.zst", tmp_path / "trace", folder)
    for job in about(folder)["jobs"]:
        code, out, err = run("explain", str(tmp_path / "trace"), job)
        assert (code, f"Job {job}" in out) == (0, True), err


def test_a_job_that_was_taken_from_its_cronjob_can_be_explained(tmp_path: Path) -> None:
    folder = DATA / "replay" / "retries-of-a-failing-cronjob"
    import_log(folder / "watch.jsonl.zst", tmp_path / "trace", folder)
    code, out, err = run("explain", str(tmp_path / "trace"), "t-crons/k036-29922591")
    assert (code, "owned by CronJob k036" in out) == (0, True), err
