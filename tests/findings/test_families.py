"""Each kind of finding: a trace outside the incidents that shows it, and a near miss."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.findings.conftest import Traces
from tests.support.traces import ROOT
from tracekit.answers.findings.advice import advice
from tracekit.answers.findings.diagnosis import RULES
from tracekit.answers.findings.overruns import OVERRUN
from tracekit.versions.behavior_releases import behaviors_of
from tracekit.versions.behaviors import Behavior
from tracekit.versions.version import KubeVersion

HERE = Path(__file__).parent
T, ALL, CHURN = "v1.36.3-troubles", "v1.36.3-all", "v1.36.3-churn7"
RECORD = "the record"
LEASE = "kube-system/kube-controller-manager"


class Shown(NamedTuple):
    """Where a finding shows, and an object that looks like it and is not."""

    trace: str
    about: str
    near_trace: str
    near: str


def _trouble(about: str, near: str) -> Shown:
    return Shown(T, f"t-troubles/{about}", T, f"t-troubles/{near}")


SHOWN = {
    "TK201": Shown("deaf", "t-troubles/overrun", T, "t-troubles/overrun"),
    "TK202": Shown("duplicate-pod", "t-duplicate-pod/import", ALL, "t-orphans/adopter"),
    "TK203": Shown("counted-twice", "t-counted-twice/import", ALL, "t-work-queue/queue"),
    "TK204": Shown("finalizer-left", "t-finalizer-left/import", "counted-twice", "t-counted-twice/import"),
    "TK205": Shown("rewritten", "t-troubles/strict", T, "t-refused/never-admitted"),
    "TK206": Shown(T, "t-troubles/sleeps", "v1.30.14-all", "t-elastic-indexed/shrink"),
    "TK207": Shown(CHURN, "the Job controller", T, "the Job controller"),
    "TK208": Shown("v1.36.3-restart", LEASE, ALL, LEASE),
    "TK301": _trouble("strict", "in-time"),
    "TK302": _trouble("sleeps", "edited"),
    "TK303": Shown("without-run", "t-troubles/strict", T, "t-troubles/every"),
    "TK304": _trouble("hangs", "in-time"),
    "TK305": _trouble("paused", "strict"),
    "TK306": Shown("v1.30.14-all", "t-cronjobs/taken", T, "t-troubles/in-time"),
    "TK307": Shown(T, "t-troubles/edited", ALL, "t-cronjobs/replace"),
    "TK308": _trouble("every", "thirteenth"),
    "TK309": _trouble("friday-13th", "thirteenth"),
    "TK310": Shown(ALL, "t-cronjobs/suspended", T, "t-troubles/edited"),
    "TK311": _trouble("forgets", "remembers"),
    "TK401": _trouble("other-exits", "same-exit"),
    "TK402": _trouble("oom", "oom-once"),
    "TK403": _trouble("evicted", "same-exit"),
    "TK404": _trouble("no-image", "slow-image"),
    "TK405": Shown(T, "t-refused/never-admitted", ALL, "t-quota/squeezed"),
    "TK406": _trouble("no-room-deadline", "too-long"),
    "TK407": _trouble("same-exit", "other-exits"),
    "TK408": _trouble("too-long", "no-room-deadline"),
    "TK409": Shown("v1.30.14-all", "t-pod-killed/strict", T, "t-troubles/other-exits"),
    "TK410": _trouble("one-index-fails", "same-exit"),
    "TK411": _trouble("no-room", "no-room-deadline"),
    "TK412": _trouble("held", "collected"),
    "TK413": _trouble("suspended", "no-room"),
    "TK414": Shown("short", "t-troubles/same-exit", T, "t-troubles/same-exit"),
    "TK421": Shown(ALL, "t-backoff-limit/flaky", T, "t-troubles/oom"),
    "TK422": _trouble("one-index-fails", "one-index-recovers"),
    "TK423": _trouble("outlived", "collected"),
    "TK424": _trouble("overrun", "too-long"),
    "TK425": _trouble("ttl-late", "ttl-kept"),
    "TK426": _trouble("again", "again-later"),
    "TK427": Shown(ALL, "t-on-failure-restarts/restarts", T, "t-troubles/same-exit"),
    "TK901": Shown("interrupted", RECORD, T, RECORD),
    "TK903": Shown("without-streams", RECORD, T, RECORD),
    "TK904": Shown("slow-clock", RECORD, T, RECORD),
    "TK905": Shown("interrupted", RECORD, T, RECORD),
}  # fmt: skip
#: Where the others are shown, by their ids: situations out of public reports, what kubectl prints
#: for people, traces that are broken on purpose.
OTHER_TESTS = (
    *sorted(path for path in HERE.glob("test_*.py") if path.name != Path(__file__).name),
    ROOT / "tests/replay/test_misfit.py",
    ROOT / "tests/unit/trace/importers/test_kubectl_text.py",
)


def test_every_kind_of_finding_is_shown() -> None:
    kinds = {rule.id for rule in RULES if not rule.id.startswith("TK1")}
    text = "".join(path.read_text(encoding="utf-8") for path in OTHER_TESTS)
    assert kinds == set(SHOWN) | (kinds & set(re.findall(r"\bTK\d{3}\b", text)))


#: Records of several times the rows of the others.
LARGE = (CHURN, "v1.30.14-all")


def marked(finding_id: str, trace: str) -> object:
    return pytest.param(finding_id, marks=pytest.mark.full if trace in LARGE else ())


@pytest.mark.parametrize("finding_id", [marked(of, shown.trace) for of, shown in SHOWN.items()])
def test_it_is_found(finding_id: str, traces: Traces) -> None:
    shown = SHOWN[finding_id]
    assert shown.about in traces.about(shown.trace, finding_id)


@pytest.mark.parametrize(
    "finding_id", [marked(of, shown.near_trace) for of, shown in SHOWN.items()]
)
def test_a_near_miss_is_not_it(finding_id: str, traces: Traces) -> None:
    shown = SHOWN[finding_id]
    assert shown.near not in traces.about(shown.near_trace, finding_id)


@pytest.mark.parametrize("name", [T, ALL, CHURN, "v1.36.3-restart", "v1.30.14-all"])
def test_a_clean_trace_has_no_divergence(name: str, traces: Traces) -> None:
    assert [f.text for f in traces.findings(name) if f.id.startswith("TK1")] == []


def test_the_kinds_are_named_once_and_say_how_they_are_decided() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.title
        assert rule.decided.endswith(".")
        assert rule.false_alarms.endswith(".")
        assert rule.todo


def test_only_divergences_are_always_errors_and_controllers_at_most_warn() -> None:
    for rule in RULES:
        if rule.id.startswith("TK1"):
            assert rule.severity.value == "error"
        if rule.id.startswith("TK2"):
            assert rule.severity.value != "error"


def test_a_tick_that_has_a_reason_is_told_with_it(traces: Traces) -> None:
    told = [f.text for f in traces.findings("v1.36.3-conflicts") if f.id == "TK306"]
    assert any("a Job of that name was there already" in text for text in told)
    assert not any("does not tell why" in text for text in told)


@pytest.mark.parametrize("where", ["advice", "page"])
def test_the_releases_that_lose_a_deadline_are_those_of_the_version_table(where: str) -> None:
    page = ROOT / "docs" / "incidents" / "deadline-overrun.md"
    text = {"advice": OVERRUN.todo, "page": page.read_text().rpartition("## Answer")[2]}[where]
    lasts = [KubeVersion.parse(found) for found in re.findall(r"1\.\d+\.\d+", text)]
    assert [last.minor for last in lasts] == [22, 23, 24]
    for last in lasts:
        following = KubeVersion.parse(f"1.{last.minor}.{last.patch + 1}")
        mended = Behavior.DEADLINE_TIMER_REARMED_ON_EVERY_SYNC
        assert mended not in behaviors_of(last)
        assert mended in behaviors_of(following)


def test_advice_hands_a_shell_no_hostile_name(traces: Traces) -> None:
    rule = next(rule for rule in RULES if "{object}" in rule.todo)
    finding = traces.findings("finalizer-left")[0]
    case = replace(finding.cases[0], rule=rule, todo=None)
    finding = replace(finding, rule=rule, cases=(case, *finding.cases[1:]))
    assert f" {case.target.namespace}/{case.target.name}`" in advice(finding)
    hostile = replace(case, target=case.target._replace(namespace="ns", name="x;$(id)"))
    assert " 'ns/x;$(id)'`" in advice(replace(finding, cases=(hostile, *finding.cases[1:])))
