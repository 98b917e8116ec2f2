"""The Jobs that fork: the record, the old rules in the model, the new rules in the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests.whatif.conftest import Import, answers, by_name
from tests.whatif.unsimulated import Unsimulated
from tracekit.answers.whatif import three_worlds
from tracekit.answers.whatif.answers import Cause, Drawn, JobAnswer
from tracekit.answers.whatif.beside_proof import with_lots
from tracekit.answers.whatif.course import JobCourse
from tracekit.answers.whatif.plan import Plan
from tracekit.answers.whatif_inputs.jobs import JobWorld, merge_difference
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import job_from_raw
from tracekit.check.replay.run_context import RunContext
from tracekit.cli.main import cli
from tracekit.model.process.manager import ManagerFlags
from tracekit.model.simulate.world import CreateObject, DeleteObject, DeletePodOf, UserWrite
from tracekit.versions.behaviors import Behavior
from tracekit.versions.era import Era
from tracekit.versions.rows import differing_rows


@pytest.mark.full
def test_pods_that_fail_together_make_other_pods(imported: Import) -> None:
    """Up to 1.27 the queue holds failures back one by one; later all are counted at once."""
    document = answers(imported("v1.25.4-twins"), "--kubernetes-version", "v1.36.3")
    job = by_name(document)["t-twin-failing-together/all-fail"]
    assert (job["verdict"], job["proved"]) == ("pods", False)
    assert job["recorded"]["pods"] == job["baseline"]["pods"] == 11
    assert job["target"]["pods"] == 10
    assert {"kind": "behavior", "name": "pod_failure_delays_sync"} in job["because"]
    assert document["calibrated"] >= 0.9


def test_the_delay_of_replacements_is_named(imported: Import) -> None:
    """7 s there, 34 s here: measured on real control planes of both releases."""
    document = answers(imported("v1.25.4-twins"), "--kubernetes-version", "v1.32.2")
    job = by_name(document)["t-twin-failing-together/twice"]
    assert job["verdict"] == "timing"
    assert job["recorded"]["finished_after_s"] == pytest.approx(7, abs=1)
    assert job["target"]["finished_after_s"] == pytest.approx(34, abs=2)
    assert any("backoff" in cause["name"] for cause in job["because"])


@pytest.mark.parametrize(
    ("left", "right"),
    [("v1.25.4-twins", "v1.32.2-twins"), ("v1.32.2-twins", "v1.25.4-twins")],
)
def test_what_is_told_came_true_on_a_real_control_plane(
    imported: Import, left: str, right: str
) -> None:
    version = right.removesuffix("-twins")
    told = by_name(answers(imported(left), "--kubernetes-version", version))
    real = by_name(answers(imported(right), "--kubernetes-version", version))
    names = ("ended", "pods", "succeeded", "failed")
    compared = [key for key in told if key in real and "target" in told[key]]
    assert len(compared) >= 10
    wrong = set()
    for key in compared:
        happened = [real[key]["recorded"][n] for n in names]
        # Where a race decides, what happened is a course that at least one run in ten took.
        courses = told[key].get("courses", [{**told[key]["target"], "draws": 1}])
        draws = sum(course["draws"] for course in courses)
        often = [course for course in courses if course["draws"] >= draws / 10]
        if happened not in [[course[n] for n in names] for course in often]:
            wrong.add(key)
    assert not wrong


def test_a_life_that_was_cut_off_is_not_made_up(imported: Import) -> None:
    """The old rules killed the pod; what it would have done later nobody saw."""
    document = answers(imported("v1.25.4-twins"), "--kubernetes-version", "v1.36.3")
    job = by_name(document)["t-twin-on-failure/none"]
    assert (job["verdict"], job["reason"]) == ("unknowable", "censored")
    assert "target" not in job


def test_a_merge_patch_leads_from_one_to_the_other() -> None:
    old = {"a": 1, "b": {"c": [1], "d": 2}, "e": 3}
    new = {"a": 1, "b": {"c": [2], "d": 2}, "f": None}
    assert merge_difference(old, new) == {"b": {"c": [2]}, "e": None, "f": None}
    assert merge_difference(old, old) == {}


# Causes, and how many runs look for them.

OLD, NEW = Era.resolve("v1.25.4"), Era.resolve("v1.36.3")
ROWS = differing_rows(OLD, NEW)
#: The one row on which the number of pods hangs here.
CAUSE = Cause("behavior", "pod_failure_delays_sync")
OTHER = Cause("constant", next(row.name for row in ROWS if row.kind == "constant"))


class TwoOrOnePods(Unsimulated):
    """The old rules make one pod, the new ones two."""

    eras: list[Era]

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        del seed, by_pod
        self.eras.append(era)
        return JobCourse(None, "", 1 if Behavior[CAUSE.name.upper()] in era else 2, 0, 0, None)


def causes(*proved: Cause) -> tuple[tuple[Cause, ...], int]:
    """Those of a Job of which the steps proved some, and how many runs looked for them."""
    job = job_from_raw({"metadata": {"name": "one", "namespace": "shop", "uid": "u1"}})
    recorded = JobCourse(None, "", 1, 0, 0, None)
    fork = JobAnswer(job, recorded, "uncalibrated", reason="fork", because=proved)
    flags = ManagerFlags()
    model = TwoOrOnePods(Plan(OLD, NEW, RunContext(0), flags, flags), {"u1": JobWorld(job)})
    model.eras = []
    answer = model.answer([fork])["u1"]
    assert answer.verdict == "pods"
    assert model.eras == [OLD, NEW]
    found = model.because(answer, ROWS)
    assert NEW not in model.eras[2:]
    return found, len(model.eras) - 2


def test_rows_that_make_other_pods_are_found() -> None:
    assert causes(CAUSE) == ((CAUSE,), 1)
    assert causes(CAUSE, OTHER)[0] == (CAUSE,)
    assert causes()[0] == causes(OTHER)[0] == (CAUSE,)


@pytest.mark.parametrize("runs", [0, 1])
def test_causes_that_the_steps_proved_stay_where_no_run_is_left(
    runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(three_worlds, "RUNS_MAX", runs)
    assert causes(OTHER) == ((OTHER,), runs)
    assert causes(CAUSE) == ((CAUSE,), runs)
    # One run tells that the two suffice; that both are needed is what no run is left for.
    assert causes(CAUSE, OTHER) == ((CAUSE, OTHER), runs)


# Draws that do not agree, and the two readings of a deletion.


class Racing(Unsimulated):
    """Some seeds make another pod."""

    pods: tuple[int, ...] = ()
    by_age: int = 1

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        made = 1 if era is OLD else self.by_age if by_pod else self.pods[seed % len(self.pods)]
        return JobCourse(None, "", made, 0, 0, None)


def raced(
    pods: tuple[int, ...],
    target: Era,
    by_age: int | None = None,
    writes: Sequence[UserWrite] = (),
) -> JobAnswer:
    """The answer about one Job that the target's runs end with so many pods."""
    job = job_from_raw({"metadata": {"name": "one", "namespace": "shop", "uid": "u1"}})
    world = JobWorld(job, [*writes])
    if by_age is not None:
        world.writes.append(DeletePodOf(0, "shop", "one", ordinal=0))
    fork = JobAnswer(job, JobCourse(None, "", 1, 0, 0, None), "uncalibrated", reason="fork")
    flags = ManagerFlags()
    model = Racing(Plan(OLD, target, RunContext(0), flags, flags), {"u1": world})
    model.pods, model.by_age = pods, by_age or 1
    return model.answer([fork])["u1"]


def test_where_a_race_decides_the_answer_says_in_how_many_runs() -> None:
    """Up to 1.27 failures hold a Job back one by one, so more runs are made, and still more then."""
    older = Era.resolve("v1.20.15")
    answer = raced((2, 3, 3), older)
    assert (answer.verdict, answer.drawn) == ("pods", Drawn(13, 20))
    assert [(way.course.pods, way.times) for way in answer.courses] == [(3, 13), (2, 7)]
    assert answer.target == answer.courses[0].course
    assert raced((2, 2), older).courses == ()
    assert raced((2, 2), older).verdict == "pods"
    assert raced((2, 3), NEW).verdict == "pods"  # no such race there: one run is enough


@pytest.mark.parametrize(("deleted_s", "drawn"), [(0.5, Drawn(12, 20)), (1.5, Drawn(5, 5))])
def test_a_deletion_just_after_the_creation_races_with_the_first_sync(
    deleted_s: float, drawn: Drawn
) -> None:
    """That the first five runs agree is chance then."""
    writes = (
        CreateObject(0, "Job", {}, "u1"),
        DeleteObject(int(deleted_s * NS_PER_S), "Job", "shop", "one"),
    )
    answer = raced((2, 2, 2, 2, 2, 2, 3, 3, 3, 3), Era.resolve("v1.14.10"), writes=writes)
    assert answer.drawn == drawn
    assert [way.times for way in answer.courses] == ([12, 8] if drawn.of == 20 else [])


class WrittenOver(Unsimulated):
    """Each run draws anew whether a stale sync writes over what was counted."""

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        del by_pod
        counted = 3 if (seed + (era is OLDEST)) % 3 else 0
        return JobCourse("Failed", "DeadlineExceeded", 3, 0, counted, 9.0)


OLDEST, OLDER = Era.resolve("v1.14.10"), Era.resolve("v1.20.15")


@pytest.mark.parametrize("recorded", [0, 3])
def test_the_luck_of_the_record_is_not_taken_for_a_rule(recorded: int) -> None:
    """Which status is written last is chance: no step proves it, and every run counts."""
    job = job_from_raw({"metadata": {"name": "one", "namespace": "shop", "uid": "u1"}})
    course = JobCourse("Failed", "DeadlineExceeded", 3, 0, recorded, 9.0)
    proved = JobAnswer(job, course, "same", proved=True, target=course)
    flags = ManagerFlags()
    model = WrittenOver(Plan(OLDER, OLDEST, RunContext(0), flags, flags), {"u1": JobWorld(job)})
    assert model.raced(course)
    modelled = model.answer([proved])["u1"]
    told = with_lots(proved, modelled, OLDER)
    assert sorted((way.course.failed, way.times) for way in told.courses) == [(0, 6), (3, 14)]
    assert told.target is not None
    assert told.target.failed == 3
    assert told.verdict == ("same" if recorded == 3 else "fields")
    assert not told.proved
    assert told.why.endswith("by both rules")
    assert with_lots(proved, modelled, NEW).why.endswith("by the other rules")


def test_a_job_that_waits_when_the_record_ends_is_held_against_it_as_it_stood_then(
    tmp_path: Path,
) -> None:
    """In its back-off nothing of it runs: the model goes on, and the record shows what came before."""
    workload = tmp_path / "waits.yaml"
    workload.write_text(
        "{duration: 70s, kubernetesVersion: v1.22.2, jobs: [{name: waits, namespace: shop, at: 1s,"
        " spec: {backoffLimit: 4}, pods: {run: 1s, exit: 1}}]}"
    )
    trace = tmp_path / "trace"
    asked = ["simulate", "--workload", str(workload), "-o", str(trace)]
    made = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert made.exception is None, made.exception
    job = by_name(answers(trace, "--kubernetes-version", "v1.30.14"))["shop/waits"]
    assert job["recorded"]["ended"] is None
    assert 1 < job["recorded"]["failed"] < 5
    assert job["verdict"] not in ("uncalibrated", "unknowable"), job["why"]
    assert not job["proved"]
    for side in ("baseline", "target"):
        assert (job[side]["ended"], job[side]["pods"], job[side]["failed"]) == ("Failed", 5, 5)


def test_another_ending_is_no_luck() -> None:
    flags = ManagerFlags()
    model = WrittenOver(Plan(OLDER, NEW, RunContext(0), flags, flags), {})
    failed = JobCourse("Failed", "DeadlineExceeded", 3, 0, 3, 9.0)
    assert model.other_luck("u1", failed, replace(failed, failed=0))
    assert not model.other_luck("u1", failed, replace(failed, failed=0, pods=4))
    assert not model.raced(failed)  # the new rules write over nothing
    done = replace(failed, ended="Complete", reason="")
    assert not model.other_luck("u1", done, replace(done, failed=0))


@pytest.mark.parametrize(("by_age", "ways"), [(2, []), (3, [2, 3])])
def test_a_deletion_is_read_as_bound_to_its_time_and_to_the_age_of_the_pod(
    by_age: int, ways: list[int]
) -> None:
    answer = raced((2,), NEW, by_age)
    assert (answer.verdict, answer.drawn) == ("pods", Drawn(1 if ways else 2, 2))
    assert [way.course.pods for way in answer.courses] == ways


class Unseen(Unsimulated):
    """By the new rules most runs need what nobody saw."""

    known: tuple[int, ...] = ()

    def course(self, era: Era, seed: int, *, by_pod: bool) -> JobCourse:
        del seed, by_pod
        return JobCourse(None, "", 1 if era is OLD else 2, 0, 0, None)

    def censored(self, era: Era, seed: int) -> str:
        return "" if era is OLD or seed in self.known else "nobody saw it"


@pytest.mark.parametrize(
    ("known", "verdict"), [((0,), "unknowable"), ((0, 1, 2, 3), "unknowable"), (range(5), "pods")]
)
def test_few_runs_that_need_nothing_unseen_are_not_all(known: Sequence[int], verdict: str) -> None:
    """Which runs these are hangs on what nobody saw: their course is not that of the others."""
    job = job_from_raw({"metadata": {"name": "one", "namespace": "shop", "uid": "u1"}})
    fork = JobAnswer(job, JobCourse(None, "", 1, 0, 0, None), "uncalibrated", reason="fork")
    flags = ManagerFlags()
    model = Unseen(Plan(OLD, NEW, RunContext(0), flags, flags, draws=5), {"u1": JobWorld(job)})
    model.known = tuple(known)
    answer = model.answer([fork])["u1"]
    assert (answer.verdict, answer.why) == (verdict, "" if verdict == "pods" else "nobody saw it")
