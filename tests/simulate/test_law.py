"""The law of the house: a simulated trace replays without a divergence, whatever the world."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.random_worlds import (
    VERSIONS,
    RandomWorld,
    random_world,
    with_late_kubelets,
    with_slow_answers,
)
from tracekit.check.diff.judge import judge_key
from tracekit.check.replay.feed import COLUMNS, histories
from tracekit.check.replay.history import Actor, WriteKind
from tracekit.check.verdict import Judgement
from tracekit.cli.main import main
from tracekit.judge.judged import Judge, resolve_era
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.run import Run, simulate
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.job import JobRules

JOB_CONTROLLER = Actor("system:serviceaccount:kube-system:job-controller", "")
#: `python -m bench law` takes thousands.
WORLDS = 40


def run_of(made: RandomWorld) -> Run:
    return simulate(made.world, made.era, made.flags, SeededDraws(made.seed, made.timing))


def judged(made: RandomWorld, place: Path) -> list[Judgement]:
    reader = TraceReader(written(made, place, made.flags.written))
    return Judge(reader, resolve_era(reader, None, None)).report().judgements


def written(made: RandomWorld, place: Path, flags: tuple[str, ...]) -> Path:
    header = TraceHeader(kubernetes_version=str(made.era.version), controller_flags=flags)
    with TraceWriter(place, header, session={"source": "simulate"}) as writer:
        for row in run_of(made).rows:
            writer.append(row.stream, row.type, row.recv_ns, row.obj)
    return place


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_simulated_trace_replays_without_a_divergence(seed: int, tmp_path: Path) -> None:
    made = random_world(seed, VERSIONS[seed % len(VERSIONS)])
    found = [j for j in judged(made, tmp_path / "t") if j.divergent]
    told = [f"{j.controller} {j.action} {j.verdict.value} {j.object}: {j.why}" for j in found]
    assert not told, f"seed {seed}, {made.era.version}: {told[:3]}"


#: Worlds that once diverged, with their version and what was mended.
MENDED = {
    (52, "v1.31.0"): "a creation that is refused ends the sync, whose status then conflicts",
    (59, "v1.18.20"): "a new process has listed what its predecessor was behind with",
    (63, "v1.14.10"): "two syncs in a row without a write, the second with an Event",
    (68, "v1.19.16"): "deletions that no Event tells, by a sync on an old Job",
    (96, "v1.17.17"): "expectations were read after the handlers had gone on, the pods before",
    (97, "v1.18.20"): "far cuts used up the attempts that handlers behind would have needed",
    (100, "v1.21.14"): "a timer of @every that counts from its sync; a slow client",
    (122, "v1.13.12"): "a start that startingDeadlineSeconds no longer allows",
    (131, "v1.22.2"): "a user's deletion in the foreground before the TTL is over",
    (150, "v1.11.10"): "a second refusal with the same words, of a sync without a write",
    (184, "v1.15.12"): "a retry for a Job that is gone takes the deadline's timer away",
    (1071, "v1.30.14"): "uids whose finalizer is expected to go were read after the handlers",
    (7017, "v1.35.4"): "pods of an orphaned Job, collected when another already had its name",
    (7042, "v1.31.0"): "an idle deletion of a collected pod, by a sync that left only its Event",
    (7110, "v1.11.10"): "retries that ended a Job, of syncs that failed again on an old one",
    (7170, "v1.11.10"): "many syncs in a row that had seen the same old Job",
    (7177, "v1.18.20"): "retries that ended a Job, which syncs on older ones had counted",
    (8118, "v1.27.16"): "news of a new process's writes that came before news of its lease",
    (5078, "v1.19.16"): "a failed sync without a write, before the deadline was over",
    (7174, "v1.15.12"): "retries that ended a Job, one of them by a sync with handlers behind",
    (9070, "v1.21.14"): "a retry takes the place of the timer, and `@every` counts from then",
    (20077, "v1.18.20"): "a DELETE that met a pod on its way out, gone by the sync's status",
    (20164, "v1.15.12"): "retries that ended a Job, whose pods were deleted first",
    (20248, "v1.36.3"): "the orphan worker, whose calls queue for tokens one by one",
    (20563, "v1.23.17"): "deletions by a sync in conflict before the one that they are put down to",
    (20691, "v1.30.14"): "a slow client's deletion of a pod that was no longer the Job's",
    (20766, "v1.17.17"): "retries that a sync on an old end of the Job made the queue forget",
    (21107, "v1.27.4"): "a restart that cut a sync off which had begun long before",
    (21347, "v1.27.4"): "syncs in conflict, of which the next status says nothing",
    (21457, "v1.18.20"): "a refusal before the namespace ended, by a sync without a write",
    (21842, "v1.13.12"): "retries that ended a Job, of syncs with handlers behind",
    (20844, "v1.32.2"): "creations that were refused when the Job had spent its 25 Events",
    (43303, "v1.23.17"): "the same, by one sync in conflict after the other",
    (21193, "v1.23.17"): "a slot just ahead, for which `@every` armed no timer",
    (21255, "v1.25.4"): "creations that waited for tokens until their namespace was ending",
    (23100, "v1.11.10"): "an Event of a sync on an older Job than the one before needed",
    (5071, "v1.12.10"): "statuses put over others, which fit many caches",
    (53108, "v1.19.16"): "the same, where each fits a dozen revisions of the Job",
    (53280, "v1.11.10"): "an Event of a sync on an older Job, where a later one saw a newer Job",
    (52621, "v1.12.10"): "a schedule that changed between a pass's status write and its start",
    (60110, "v1.29.15"): "deletions that took their tokens one after the other, in the model",
    (51039, "v1.20.15"): "pods that the namespace controller deleted, when a deadline was over",
    (52315, "v1.33.9"): "refusals of a slow sync whose Job was gone by then",
    (52347, "v1.35.4"): "a slow client's deletion of an ended pod that was no longer the Job's",
    (52996, "v1.26.13"): "26 deletions of pods on their way out, each of which waited for a token",
    (20150, "v1.29.15"): "the orphan worker's removals beside a sync that a slow client holds up",
    (20840, "v1.29.15"): "an Event of its own, after it was told in a combined one",
    (53561, "v1.22.2"): "an Event of a sync whose status fits an older Job as well",
    (53836, "v1.26.13"): "calls of a Job on which the search gave up, in a process told as idle",
    (90025, "v1.33.9"): "a Job of a name whose last bearer had armed a timer",
    (91116, "v1.17.17"): "a deadline's timer that went off in the midst of a sync, and was lost",
    (53661, "v1.30.14"): "a DELETE that met a Job on its way out, gone by the CronJob's status",
    (80113, "v1.29.15"): "a status that says nothing of a failure which the policy ignores",
    (80672, "v1.36.3"): "a creation in a namespace that was ending by the status, and not before",
    (80711, "v1.37.1"): "an Event of a sync whose own status the search had given up on",
    (80750, "v1.22.2"): "of two starts the first, whose sync began long before its first write",
    (81594, "v1.28.15"): "a second deletion by a sync whose status fits older pods as well",
    (92161, "v1.27.4"): "a status of a new process, taken for one of its predecessor's last sync",
    (
        91387,
        "v1.18.20",
    ): "an untold deletion by the sync that ended the Job, whose Events were spent",
    (91323, "v1.14.10"): "the same of five pods, one of which ended by itself a moment before",
    (60511, "v1.12.10"): "the same, where two of five would do as another's",
    (90336, "v1.17.17"): "the same of 28 pods, on caches older than those before it needed",
    (90840, "v1.11.10"): "the same, on a Job that fails a hundred times",
    (91000, "v1.21.14"): "of two starts the first, whose startTime is of the second before",
    (130141, "v1.12.10"): "a pod deleted by the collector, which two syncs on older pods ask for",
    (130382, "v1.13.12"): "an Event told before the pods came that its status fits as well",
    (20221, "v1.12.10"): "a Job is deleted 23 s late: its pods go first, each waits for a token",
    (91260, "v1.11.10"): "the same, two passes after the slot",
    (53460, "v1.11.10"): "a pod that was gone by the controller's DELETE, as its Event says",
    (21840, "v1.11.10"): "Events of a sync on an older Job, which all syncs before it fit as well",
    (161769, "v1.20.15"): "a start 86 ms after startingDeadlineSeconds had run out",
    (61140, "v1.11.10"): "an Event told before the pods came that its status fits",
    (20160, "v1.11.10"): "a DELETE of a batch that met no pod, by a sync on older pods",
    (60392, "v1.13.12"): "an Event of a sync that its process did not live to end",
    (20881, "v1.12.10"): "retries that ended a Job, where a sync on its old end cleared some",
    (53702, "v1.13.12"): "an untold deletion by the sync that ended the Job, before the dead end",
    (52893, "v1.14.10"): "a wait for retries of syncs on old caches, which left no write",
    (53649, "v1.20.15"): "the same, where three syncs in a row met a conflict",
    (90726, "v1.17.17"): "the same, of a sync that the search puts down to the Job's end",
    (90426, "v1.17.17"): "a DELETE that met a pod which was no longer the Job's, and ended it",
    (51270, "v1.11.10"): "a dead end soon after another, for which choices were thrown away",
    (21873, "v1.14.10"): "a deletion by the second sync on older pods than its status needs",
    (160188, "v1.27.16"): "a creation refused in a sync whose status was never seen",
    (160929, "v1.20.15"): "what is owed waits for retries of failed syncs that left no write",
    (161573, "v1.31.14"): "an Event of the second after a user's deletion, told of another DELETE",
    (180079, "v1.28.15"): "an Event of a sync on an old Job that met a conflict after a creation",
    (180236, "v1.34.4"): "deletions by a sync on an old Job that had spent its Events",
    (170020, "v1.21.14"): "an Event of a sync that the end of the record cut off",
    (170310, "v1.11.10"): "an Event before the Job was there that its sync's status fits as well",
    (182166, "v1.32.2"): "pods that the garbage collector deleted just before a sync asked for it",
    (190835, "v1.16.15"): "a status got in a long line for a token twice: it reads the Job first",
    (192359, "v1.37.1"): "a user's deletion amid a sync of thirty, when Events were spent",
    (160951, "v1.12.10"): "the same, of a sync of thirty on an old Job",
    (190984, "v1.15.12"): "the same",
    (192691, "v1.12.10"): "the same",
    (191723, "v1.31.14"): "a likely cut and a true one with one status, and another back-off",
}


@pytest.mark.parametrize(("seed", "version"), MENDED)
def test_what_was_mended_stays_so(seed: int, version: str, tmp_path: Path) -> None:
    found = [j for j in judged(random_world(seed, version), tmp_path / "t") if j.divergent]
    assert not found, MENDED[seed, version]


def test_of_two_starts_the_first_takes_the_deadlines_timer(tmp_path: Path) -> None:
    """The queue keeps the earlier of two timers, which goes off before the later start's deadline.

    Two syncs set startTime where the answer to the first comes before the news of what it wrote.
    """
    made = with_slow_answers(random_world(9, "v1.20.15"))
    assert not [j for j in judged(made, tmp_path / "t") if j.divergent]


def test_a_deadline_that_ends_the_job_again_when_it_is_gone(tmp_path: Path) -> None:
    """A sync that deletes what is on its way out comes to its status after the Job's own end."""
    made = with_late_kubelets(with_slow_answers(random_world(61020, "v1.21.14")))
    assert not [j for j in judged(made, tmp_path / "t") if j.divergent]


@pytest.mark.full
def test_handlers_that_were_behind_may_be_so_at_the_next_sync_too(tmp_path: Path) -> None:
    """A sync that leaves no write finds a pod in its cache whose creation is still waited for.

    Its failure is the retry that ends the Job; the sync before had found the same.
    """
    made = with_late_kubelets(random_world(6, "v1.17.17"))
    assert not [j for j in judged(made, tmp_path / "t") if j.divergent]


@pytest.mark.full
def test_the_orphan_worker_takes_one_finalizer_after_the_other(tmp_path: Path) -> None:
    """A slow client's call for each of five pods: that another Job is served meanwhile tells no
    more than that the first of them has had its turn.
    """
    made = with_late_kubelets(with_slow_answers(random_world(61132, "v1.31.0")))
    assert not [j for j in judged(made, tmp_path / "t") if j.divergent]


@pytest.mark.parametrize(("actor", "verdict"), [(None, "foreign"), (JOB_CONTROLLER, "match")])
def test_whom_a_log_names_has_deleted_a_pod_of_a_job_that_is_gone(
    tmp_path: Path, actor: Actor | None, verdict: str
) -> None:
    """Where nobody is named it is the garbage collector, if the controller's Event came later."""
    made = random_world(182166, "v1.32.2")
    reader = TraceReader(written(made, tmp_path / "t", made.flags.written))
    judge = Judge(reader, resolve_era(reader, None, None))
    rows = reader.groups(COLUMNS, namespace="bank", job="job-1")
    [history] = histories(rows, [("bank", "job-1")])
    write = next(write for write in history.writes if write.kind is WriteKind.POD_DELETE)
    assert write.pod is not None
    write.pod.actor = actor
    found = judge_key(history, JobRules.of(judge.era), judge.run_context).judgements
    judgement = next(j for j in found if j.resource_version == str(write.rv))
    assert judgement.verdict.value == verdict, judgement.why


def test_a_slow_client_is_known_by_its_flags(tmp_path: Path) -> None:
    """What such a client does late, the default's would not; replay can be told where it is not."""
    made = random_world(100, "v1.21.14")
    trace = str(written(made, tmp_path / "t", ()))
    known = ["--controller-flags", " ".join(made.flags.written)]
    for options, status in (([], 1), (known, 0)):
        with pytest.raises(SystemExit) as ended:
            main(["replay", trace, "--diff", *options])
        assert ended.value.code == status, options


def test_worlds_hold_what_the_controllers_have_rules_for(tmp_path: Path) -> None:
    """A law over worlds in which nothing happens would hold for ever."""
    seen: Counter[tuple[str, str]] = Counter()
    wanted = (
        ("job", "pod-create"),
        ("job", "pod-delete"),
        ("job", "finalizer-removal"),
        ("job", "status-update"),
        ("job", "event"),
        ("cronjob", "job-create"),
        ("cronjob", "job-delete"),
        ("ttl", "job-delete"),
    )
    for seed in range(12):
        found = judged(random_world(seed), tmp_path / str(seed))
        seen.update((j.controller, j.action) for j in found)
        if all(seen[what] >= 3 for what in wanted):
            return
    raise AssertionError(seen)


def test_the_same_seed_makes_the_same_run() -> None:
    for seed in (3, 11):
        assert run_of(random_world(seed)).rows == run_of(random_world(seed)).rows
