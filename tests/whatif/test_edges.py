"""Jobs that hang on when they are served: the steps are the same, and the answer is not certain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from click.testing import CliRunner
from msgspec.structs import replace

from tests.whatif.unsimulated import Unsimulated
from tracekit.answers.whatif.answers import Drawn, JobAnswer
from tracekit.answers.whatif.beside_proof import on_time
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.edges import on_edge
from tracekit.answers.whatif.plan import Plan
from tracekit.answers.whatif_inputs.jobs import JobWorld
from tracekit.answers.whatif_inputs.latencies import Pace
from tracekit.base.kube.views import job_from_raw
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.rerun import Rerunner
from tracekit.check.replay.run_context import RunContext
from tracekit.cli.main import cli
from tracekit.judge.judged import Judge
from tracekit.model.process.manager import ManagerFlags
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

_MS = 1_000_000
_ERA = Era.resolve("v1.34.4")
_ONE_JOB = """
duration: 30s
kubernetesVersion: v1.34.4
jobs:
- name: edge
  namespace: shop
  at: 1s
"""
#: A container fails once, runs again for as long, and ends well; its Job allows for no failure.
_WORKLOAD = """\
  spec: {{backoffLimit: 0, template: {{spec: {{restartPolicy: OnFailure}}}}}}
  pods: {{start: 500ms, run: {run}, restarts: 1}}
"""
#: A user suspends a Job about when its second pod is due: a batch after the first one ended.
_SUSPENDED = """\
  spec: {{completions: 2, parallelism: 1}}
  pods: {{bind: 100ms, start: 100ms, run: 2s}}
actions:
- {{at: {run}, target: jobs/shop/edge, patch: {{spec: {{suspend: true}}}}}}
"""


def hangs(folder: Path, run: str, what: str = _WORKLOAD) -> Callable[[int], bool]:
    """Whether a sync of the Job would have decided otherwise so many ms earlier or later."""
    workload, trace = folder / f"{run}.yaml", folder / run
    workload.write_text(_ONE_JOB + what.format(run=run))
    arguments = ["simulate", "--workload", str(workload), "-o", str(trace)]
    made = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert made.exception is None, made.exception
    reader = TraceReader(trace)
    judge, rules = Judge(reader, _ERA), JobRules.of(_ERA)
    (judged,) = judge_groups(reader.groups(COLUMNS), rules, judge.run_context)
    rerunner = Rerunner(KeyEvidence(judged.replay.history, rules, judge.run_context))
    return lambda ms: bool(on_edge(rerunner, judged.replay, rules, ms * _MS))


def test_a_restart_beside_the_edge_of_a_batch_has_a_small_margin(tmp_path: Path) -> None:
    """A batch that ends before the container is started again finds nothing; one after it fails."""
    near, far = (hangs(tmp_path, run) for run in ("900ms", "2s"))
    assert near(60)
    assert not near(0)
    assert not far(200)


def test_a_user_s_edit_beside_the_time_of_a_sync_has_a_small_margin(tmp_path: Path) -> None:
    """Before it the second pod is made, and deleted; after it, it never is."""
    before, after, late = (hangs(tmp_path, at, _SUSPENDED) for at in ("4200ms", "4300ms", "4700ms"))
    assert before(60)
    assert not after(60)
    assert after(120)
    assert not late(400)
    assert late(1000)


# What is made of it.


class Served(Unsimulated):
    """By the same rules, one run in three ends well."""

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        del era, by_pod
        return COMPLETE if seed % 3 == 1 else FAILED


FAILED = JobCourse("Failed", "BackoffLimitExceeded", 1, 0, 1, 3.0)
COMPLETE = JobCourse("Complete", "CompletionsReached", 1, 1, 0, 3.0)


def asked(*, edge: bool, target: Era = _ERA, model: type[Served] = Served) -> Served:
    """The model that is asked about a Job."""
    flags = ManagerFlags()
    plan = Plan(_ERA, target, RunContext(0), flags, flags)
    on_edge = frozenset({"u1"} if edge else ())
    return model(plan, {"u1": JobWorld(_JOB)}, on_edge=on_edge)


_JOB = job_from_raw({"metadata": {"name": "one", "namespace": "shop", "uid": "u1"}})


def proved(recorded: JobCourse) -> JobAnswer:
    """What the steps say."""
    return JobAnswer(_JOB, recorded, "same", proved=True, target=recorded)


def told(
    recorded: JobCourse, *, edge: bool, target: Era = _ERA, model: type[Served] = Served
) -> JobAnswer:
    """What is said of a Job whose steps are proved the same."""
    answer = proved(recorded)
    runs = asked(edge=edge, target=target, model=model)
    return on_time(answer, runs.answer([answer])["u1"])


def test_what_hangs_on_the_time_of_a_sync_is_told_in_draws_with_the_class_of_the_proof() -> None:
    """And what is told is what a real control plane came to, be it seldom in the model."""
    for recorded, times in ((FAILED, 13), (COMPLETE, 7)):
        answer = told(recorded, edge=True)
        assert (answer.verdict, answer.proved, answer.drawn) == ("same", False, Drawn(times, 20))
        assert [(way.course, way.times) for way in answer.courses] == [(FAILED, 13), (COMPLETE, 7)]
        assert answer.target == recorded
        assert "when it is served" in answer.why


class Seldom(Served):
    """By the same rules, one run in twenty ends well."""

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        del era, by_pod
        return COMPLETE if seed == 20 else FAILED


def test_five_runs_that_agree_are_not_enough_on_an_edge() -> None:
    answer = told(FAILED, edge=True, model=Seldom)
    assert [(way.course, way.times) for way in answer.courses] == [(FAILED, 19), (COMPLETE, 1)]


class Never(Served):
    """No run is as slow as the recorded control plane was."""

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        del era, seed, by_pod
        return FAILED


def test_on_an_edge_the_record_is_a_draw_where_no_run_goes_as_it_did() -> None:
    answer = told(COMPLETE, edge=True, model=Never)
    assert [(way.course, way.times) for way in answer.courses] == [(FAILED, 20), (COMPLETE, 1)]
    assert (answer.target, answer.drawn) == (COMPLETE, Drawn(1, 21))
    assert told(FAILED, edge=True, model=Never).proved


def test_runs_of_another_course_than_the_record_s_count_only_on_an_edge() -> None:
    answer = told(FAILED, edge=False)
    assert (answer.proved, answer.courses) == (True, ())


# The pace of other control planes.


def test_each_run_but_the_first_has_a_pace_of_its_own() -> None:
    flags = ManagerFlags()
    plan = Plan(_ERA, _ERA, RunContext(0), flags, flags, turns_ns=(0, 50 * _MS, 100 * _MS))
    paces = [plan.timing_of(seed).turns for seed in range(6)]
    assert paces[0] == ()
    assert len(set(paces)) == 6
    assert all(0 < turns[2] < 200 * _MS for turns in paces[1:])
    prompt = replace(plan, turns_ns=())
    assert {prompt.timing_of(seed).turns for seed in range(6)} == {()}


def test_half_of_the_runs_keep_the_record_s_pace_where_the_rules_have_races() -> None:
    """Up to 1.27: a slower run loses races too seldom."""
    flags = ManagerFlags()
    raced = Plan(_ERA, Era.resolve("v1.25.4"), RunContext(0), flags, flags, turns_ns=(_MS,))
    assert [bool(raced.timing_of(seed).turns) for seed in range(6)] == [False, True] * 3


def paced(waits_ms: Iterable[int], calls_ms: Iterable[int] = ()) -> int:
    """How long a key may well wait, after so many measurements."""
    waits, calls = [n * _MS for n in waits_ms], [n * _MS for n in calls_ms]
    turns_ns = Pace(calls, [], [], waits).turns_ns()
    return Plan(
        _ERA, _ERA, RunContext(0), ManagerFlags(), ManagerFlags(), turns_ns=turns_ns
    ).turn_ns


def test_a_key_may_wait_as_long_as_one_in_ten_of_the_new_jobs_did() -> None:
    assert paced([5] * 17 + [80] * 3, [6] * 30) == 74 * _MS
    assert paced([80] * 19) == 0  # too few
    assert paced([4] * 30, [6] * 30) == 0


def test_a_client_is_throttled_where_calls_found_its_bucket_empty() -> None:
    second = 1000 * _MS
    assert not Pace(requests_ns=[n * second // 10 for n in range(100)]).throttled()
    # Thirty at once, and then as fast as the default lets pass, received a little closer together.
    at_once = [0] * 30 + [n * second // 20 - second // 100 for n in range(1, 40)]
    assert Pace(requests_ns=at_once).throttled()
    assert not Pace(requests_ns=at_once[:33]).throttled()
