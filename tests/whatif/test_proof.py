"""What other rules would have done at the record's own steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.traces import TRACES, import_log, json_lines
from tests.whatif.conftest import Import, answers, by_name
from tracekit.answers.whatif.answers import Prover
from tracekit.answers.whatif.changes import job_change
from tracekit.answers.whatif.proof import KeyProof
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.rerun import Rerunner
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules
from tracekit.versions.rows import Row, differing_rows, with_rows

ALWAYS = ("v1.17.17-all", "v1.23.17-all", "v1.32.2-twins", "v1.36.3-restart")


@pytest.mark.parametrize("name", ALWAYS)
def test_the_same_rules_do_the_same(imported: Import, name: str) -> None:
    """A proof that finds a difference where there is none would be worth nothing."""
    trace = imported(name)
    version = TraceReader(trace).header.kubernetes_version
    document = answers(trace, "--kubernetes-version", version)
    odd = [
        job
        for job in document["jobs"]
        if job["verdict"] not in ("same", "unknowable") or job["because"]
    ]
    assert not odd
    same = [job for job in document["jobs"] if job["verdict"] == "same"]
    assert len(same) > 0.9 * len(document["jobs"])
    # A Job on an edge goes another way if it is served a moment later: by both rules.
    proved = [job for job in same if "when it is served" not in job.get("why", "")]
    assert len(proved) > 0.8 * len(same)
    assert all(job["proved"] and job["target"] == job["recorded"] for job in proved)


def test_a_condition_more_is_a_difference_of_fields(imported: Import) -> None:
    """1.31 and later note every ending twice; that moves no pod."""
    trace = imported("v1.30.14-all")
    job = by_name(answers(trace, "--kubernetes-version", "v1.36.3"))["t-active-deadline/extended"]
    assert (job["verdict"], job["proved"]) == ("fields", True)
    assert {"kind": "behavior", "name": "terminal_condition_waits_for_terminating_pods"} in job[
        "because"
    ]
    assert job["target"]["ended"] == job["recorded"]["ended"]


def test_an_ending_that_waits_for_terminating_pods_comes_later(imported: Import) -> None:
    """1.31 and later: the Job has failed when its last pod is gone, not when it is deleted."""
    trace = imported("v1.30.14-all")
    document = answers(trace, "--kubernetes-version", "v1.36.3")
    job = by_name(document)["t-pod-replacement-policy/over-deadline"]
    assert job["verdict"] == "timing"
    assert job["target"]["finished_after_s"] > job["recorded"]["finished_after_s"] + 2
    cause = {"kind": "behavior", "name": "terminal_condition_waits_for_terminating_pods"}
    assert cause in job["because"]
    group = next(c for c in document["causes"] if c["name"] == cause["name"])
    assert (group["verdict"], group["jobs"]) == ("timing", 1)
    assert group["reference"].startswith("https://github.com/kubernetes/")


def test_what_is_proved_came_true_on_a_real_control_plane(imported: Import) -> None:
    """Two releases ran the same scenarios: what is proved of one happened in the other."""
    left, right = imported("v1.30.14-all"), imported("v1.34.4-all")
    told = by_name(answers(left, "--kubernetes-version", "v1.34.4"))
    real = by_name(answers(right, "--kubernetes-version", "v1.34.4"))
    # In the CronJobs' namespace the minute decides, and a user races the controller at birth.
    compared = [
        key
        for key, job in told.items()
        if key in real and job["proved"] and not key.startswith(("t-cronjobs/", "t-job-deleted/"))
    ]
    assert len(compared) > 50
    for key in compared:
        target, happened = told[key]["target"], real[key]["recorded"]
        names = ("ended", "pods", "succeeded", "failed")
        assert [target[n] for n in names] == [happened[n] for n in names], key


def test_a_setting_is_its_own_cause(imported: Import) -> None:
    trace = imported("v1.32.2-twins")
    document = answers(trace, "--set", "spec.backoffLimit=0")
    job = by_name(document)["t-twin-failing-together/twice"]
    assert (job["verdict"], job["proved"]) == ("outcome", False)
    assert job["target"]["reason"] == "BackoffLimitExceeded"
    assert job["because"] == [{"kind": "setting", "name": "spec.backoffLimit=0"}]
    quiet = by_name(document)["t-twin-suspended/late-start"]
    assert quiet["verdict"] == "same"


def test_annotations_of_the_stand_in_kubelet_are_not_read(imported: Import, tmp_path: Path) -> None:
    """The plan in a pod's annotation is the tests' own; nobody else has it."""
    name = "v1.25.4-twins"
    log = tmp_path / "log.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in json_lines(TRACES / name / "watch.jsonl.zst"))
    assert "sim/plan" in text
    log.write_text(text.replace("sim/", "else/"))
    import_log(log, tmp_path / "renamed", name)
    options = ("--kubernetes-version", "v1.36.3")
    assert answers(tmp_path / "renamed", *options) == answers(imported(name), *options)


def test_every_row_of_a_cause_is_needed_and_all_together_suffice(imported: Import) -> None:
    reader = TraceReader(imported("v1.25.4-twins"))
    recorded, target = resolve_era(reader, None, None), Era.resolve("v1.36.3")
    context = Judge(reader, recorded).run_context
    ours = JobRules.of(recorded)
    prover = Prover(recorded, target, context)

    def bad(judged: KeyJudgement, uid: str, rows: list[Row]) -> tuple[bool, int]:
        rules = JobRules.of(with_rows(target, recorded, rows))
        rerunner = Rerunner(KeyEvidence(judged.replay.history, ours, context))
        proof = KeyProof(rerunner, rules, job_change(rules)).run(judged.replay)[uid]
        return proof.fork is not None, int(proof.severity)

    checked = 0
    for judged in judge_groups(reader.groups(COLUMNS), ours, context):
        known = Rerunner(KeyEvidence(judged.replay.history, ours, context))
        for answer in prover.answers(judged.replay, known, lambda _: True):
            uid, rows = answer.job.uid, [Row(c.kind, c.name) for c in answer.because]
            whole = bad(judged, uid, [])
            if not answer.differences:
                assert not rows
                continue
            assert bad(judged, uid, rows) < whole
            for row in rows:
                assert bad(judged, uid, [r for r in rows if r != row]) >= whole
            checked += 1
    assert checked > 10


def test_rows_set_back_one_by_one_lead_to_the_other_era() -> None:
    left, right = Era.resolve("v1.25.4"), Era.resolve("v1.36.3")
    rows = differing_rows(left, right)
    assert len(rows) > 20
    mixed = with_rows(right, left, rows)
    assert not differing_rows(left, mixed)
    assert JobRules.of(mixed) == JobRules.of(left)
    assert differing_rows(left, with_rows(right, left, rows[1:])) == rows[:1]
