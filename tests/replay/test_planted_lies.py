"""A diff that never says no is worth nothing: each planted lie is found, on its own Job only."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from zlib import crc32

import orjson
import pytest

from tests.lies import KINDS, Lie, Record, plant
from tests.support.raw_histories import histories_of
from tests.support.traces import TRACES, about, import_log, json_lines
from tracekit.diff.judge import KeyJudgement, judge_key
from tracekit.diff.trace import settled
from tracekit.eras.era import Era
from tracekit.eras.gates import GATE_BY_NAME
from tracekit.eras.job import JobRules
from tracekit.eras.texts import parse_feature_gates
from tracekit.judging.judged import Asked, Judge, resolve_era

PLACES = ("v1.36.3-all", "v1.28.15-all", "v1.34.4-all")
OLD_PLACES = ("v1.23.17-all", "v1.21.14-all", "v1.17.17-all")

#: Kinds of which a single record cannot tell that they are lies, with the reason.
UNDETECTABLE = {
    "batch-early": "an older delta may have had a timer pending",
    "event-missing": "Events may be dropped, merged or late",
    "spec-replacement-policy": "decides nothing where no pod was terminating at the wrong moment",
    "status-ready-lags": "an earlier cut writes it",
    "body-container-security": "admission may add it; told only where three pods show it is odd",
    "body-image-pull-secrets": "as body-container-security",
    "body-preemption": "as body-container-security",
    "body-priority": "as body-container-security",
    "body-resources": "as body-container-security",
    "body-service-account": "as body-container-security",
    "body-toleration-exists": "as body-container-security",
    "body-toleration-gone": "as body-container-security",
    "body-toleration-seconds": "as body-container-security",
    "finalizer-orphan-kept": "told only where the record goes on for a while after the end",
}
#: Kinds about what came after 1.23.
NEWER = (
    "body-failure-count", "body-index-label-gone", "condition-policy-message",
    "deletion-missing-policy", "deletion-wrong-pod", "failed-indexes-", "interim-", "pod-exit-code",
    "pod-never-ready", "ready-absent", "spec-always-suspended", "spec-index-limit-",
    "spec-managed-by", "spec-max-failed-", "spec-policy-", "spec-success-", "status-ready-",
    "status-terminating-", "terminating-absent",
)  # fmt: skip
#: Kinds for which the shipped traces have no place: `tests/lies/test_lies.py` plants them elsewhere.
NO_PLACE = {"pod-finish-later", "first-sync-late", "spec-backoff-limit-passed"}
CRON = sorted(kind for kind in KINDS if kind.startswith(("cron-", "ttl-")))
FOUND = sorted(set(KINDS) - set(UNDETECTABLE) - NO_PLACE - set(CRON))


@cache
def record(name: str) -> Record:
    return Record(list(json_lines(TRACES / name / "watch.jsonl.zst")))


@cache
def rules(name: str) -> JobRules:
    facts = about(name)
    gates = parse_feature_gates(facts["feature_gates"])
    known = {gate: on for gate, on in gates.items() if gate in GATE_BY_NAME}
    return JobRules.of(Era.resolve(facts["gitVersion"], known))


@cache
def judged_before(name: str) -> dict[object, KeyJudgement]:
    """Keys that are judged already, by all that their judgement depends on."""
    assert name
    return {}


def divergent_keys(rows: list, name: str) -> dict[str, list[str]]:
    histories, run_context = histories_of(rows)
    known = judged_before(name)
    keys = []
    for history in histories:
        same = (
            history.key,
            run_context.end_ns,
            tuple((r.rv, id(r.evidence.raw)) for r in (*history.jobs, *history.pods)),
            tuple(history.events),
        )
        if same not in known:
            known[same] = judge_key(history, rules(name), run_context)
        keys.append(known[same])
    found: dict[str, list[str]] = {}
    judgements = [judgement for key in keys for judgement in key.judgements]
    for judgement in settled(judgements, [key.timing for key in keys], run_context):
        if judgement.divergent:
            where = f"{judgement.object.namespace}/{judgement.object.name}"
            found.setdefault(where, []).append(f"{judgement.action} {judgement.verdict.value}")
    return found


def planted(kind: str, places: tuple[str, ...] = PLACES) -> tuple[str, list, Lie] | None:
    start = crc32(kind.encode()) % len(places)
    for name in (*places[start:], *places[:start]):
        answer = plant(kind, record(name), random.Random(crc32(f"{kind}/{name}/0".encode())))
        if answer is not None:
            return name, *answer
    return None


@pytest.mark.parametrize("name", PLACES + OLD_PLACES)
def test_the_untouched_record_says_nothing(name: str) -> None:
    assert divergent_keys(record(name).rows, name) == {}


@pytest.mark.parametrize("kind", FOUND)
def test_a_lie_is_found_on_its_own_job_and_nowhere_else(kind: str) -> None:
    lied = planted(kind)
    assert lied is not None, "no place for this lie in any of the traces"
    name, rows, lie = lied
    found = divergent_keys(rows, name)
    assert set(found) <= {lie.key, *lie.also}, lie.description
    assert lie.key in found or lie.doubt, f"not found: {lie.description}"


@pytest.mark.parametrize("kind", [kind for kind in FOUND if not kind.startswith(NEWER)])
def test_a_lie_about_an_old_controller_is_found(kind: str) -> None:
    lied = planted(kind, OLD_PLACES)
    assert lied is not None, "no place for this lie in any of the traces"
    name, rows, lie = lied
    found = divergent_keys(rows, name)
    assert set(found) <= {lie.key, *lie.also}, lie.description
    assert lie.key in found or lie.doubt, f"not found: {lie.description}"


@pytest.mark.parametrize(
    ("kind", "places"),
    [(kind, PLACES) for kind in CRON]
    # An annotation of 1.28; no deletion in the old traces comes long enough after the end.
    + [(kind, OLD_PLACES) for kind in CRON if kind not in {"cron-body-scheduled", "ttl-early"}],
)
def test_a_lie_about_a_cron_job_or_a_ttl_is_found_on_its_own_object(
    kind: str, places: tuple[str, ...], tmp_path: Path
) -> None:
    lied = planted(kind, places)
    assert lied is not None, "no place for this lie in any of the traces"
    name, rows, lie = lied
    log = tmp_path / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    reader = import_log(log, tmp_path / "trace", name)
    report = Judge(reader, resolve_era(reader, None, None)).report(
        Asked(controllers=("cronjob", "ttl"))
    )
    found = {f"{j.object.namespace}/{j.object.name}" for j in report.divergences}
    # A lie in the spec of a CronJob's Job is told of the CronJob that would have posted it.
    own = {key for key in found if lie.key.startswith(key)}
    assert found <= {*own, *lie.also}, lie.description
    assert own or lie.doubt, f"not found: {lie.description}"
