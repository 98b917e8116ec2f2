"""One answer: of every trace, replay, explain, SQL, the report and the Python API say the same.

The traces are all that are shipped, and some with a planted lie of each sort, so that there is
something to disagree about.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
import pytest
from click.testing import CliRunner

import tracekit
from tests.lies import plant
from tests.support.pages import data_of
from tests.support.traces import ALL, TRACES, import_log, json_lines
from tracekit.api import Trace
from tracekit.base.errors import UsageError
from tracekit.check.verdict import Judgement
from tracekit.cli import main as entry
from tracekit.cli.explain import narrative_document
from tracekit.judge.misfit import SAMPLE
from tracekit.report.html.data import report_data
from tracekit.report.html.page import report_page
from tracekit.report.replay import judgement_document
from tracekit.sql.session import Session
from tracekit.versions.era import NEWEST
from tracekit.versions.overrides import AskedRules

INCIDENTS = sorted(path.parent.name for path in TRACES.glob("incidents/*/about.json"))
#: Lies of each sort: different, missing, extra, early, late; of Jobs, CronJobs and TTL.
LIES = (
    "pod-removed",
    "pod-extra-silent",
    "body-image",
    "status-failed-high-once",
    "finalizer-early",
    "deletion-claimed",
    "deletion-missing-backoff",
    "event-wrong-message",
    "sync-late",
    "retry-late",
    "cron-early",
    "cron-last-schedule",
    "cron-tick-skipped",
    "cron-wrong-name",
    "ttl-late",
    "ttl-missing",
)
PLACE = "v1.36.3-all"

Fact = tuple[str, ...]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where a shipped trace or a lie is, as a trace."""
    root = tmp_path_factory.mktemp("traces")

    @cache
    def path_of(name: str) -> Path:
        if name in INCIDENTS:
            return TRACES / "incidents" / name
        target = root / name
        if name in ALL:
            import_log(TRACES / name / "watch.jsonl.zst", target, name)
            return target
        rows = list(json_lines(TRACES / PLACE / "watch.jsonl.zst"))
        lied = plant(name, rows, random.Random(crc32(name.encode())))
        assert lied is not None, name
        log = root / f"{name}.jsonl"
        log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in lied[0]))
        import_log(log, target, PLACE)
        return target

    return path_of


def fact(document: dict[str, Any]) -> Fact:
    """What a divergence is, from its JSON document."""
    where = document["object"]
    fields = json.dumps(document["fields"], sort_keys=True)
    revision = document["resource_version"]
    return (
        *(document[key] for key in ("controller", "action", "verdict")),
        revision if revision.isdigit() else "",
        *(where[key] for key in ("kind", "namespace", "name", "uid")),
        document["subject"],
        document["why"],
        fields,
    )


def facts(judgements: list[Judgement]) -> Counter[Fact]:
    return Counter(fact(judgement_document(j)) for j in judgements)


def replayed(trace: Path, *options: str) -> Counter[Fact]:
    result = CliRunner().invoke(
        entry.cli,
        ["replay", str(trace), "--diff", "-o", "json", *options],
        standalone_mode=False,
        catch_exceptions=False,
    )
    found = Counter(fact(document) for document in json.loads(result.stdout)["divergences"])
    assert result.return_value == (1 if found else 0)
    return found


def in_sql(session: Session) -> Counter[Fact]:
    table = session.table(
        "SELECT controller, action, verdict, coalesce(rv::VARCHAR, '') AS rv, kind, namespace, "
        "name, uid, subject, why, fields FROM divergences"
    )
    found: Counter[Fact] = Counter()
    for row in table.to_pylist():
        fields = [
            {k: v if k == "path" else json.loads(v) for k, v in field.items()}
            for field in row.pop("fields")
        ]
        found[(*row.values(), json.dumps(fields, sort_keys=True))] += 1
    return found


def reported(session: Session) -> Counter[Fact]:
    data = report_data(session)
    assert data_of(report_page(data))["title"] == session.sources[0].name
    found: Counter[Fact] = Counter()
    for row in data["divergences"]:
        fields = [
            {k: v if k == "path" else json.loads(v) for k, v in field.items()}
            for field in row["fields"]
        ]
        where = {name: row[name] for name in ("kind", "namespace", "name", "uid")}
        found[fact({**row, "object": where, "fields": fields})] += 1
    return found


def explained(trace: Trace, keys: set[str]) -> Counter[Fact]:
    found: dict[Fact, int] = {}
    for key in sorted(keys):
        narrative = trace.explain(key)
        document = narrative_document(narrative)
        told = Counter(fact(d) for d in document["divergences"])  # type: ignore[attr-defined]
        # What the CronJob controller did to a Job is told of both.
        found |= told
        closing = str(document["closing"])
        assert ("nothing contradicts the rules" in closing) == (not told), closing
        lines = narrative.text()
        for verdict in {d[2] for d in told}:
            assert f"[{verdict}]" in lines or f"{verdict}: " in lines, (key, verdict)
    return Counter(found)


@pytest.mark.parametrize("name", [*ALL, *INCIDENTS, *LIES])
def test_all_say_the_same(name: str, place: Callable[[str], Path]) -> None:
    path = place(name)
    whole = replayed(path)
    assert bool(whole) == (name in LIES)
    trace = tracekit.open(path)
    replay = trace.replay()
    assert facts(replay.divergences) == whole
    assert sum(replay.to_arrow()["divergent"].to_pylist()) == sum(whole.values())
    with closing(Session([path])) as session:
        assert in_sql(session) == whole
        assert reported(session) == whole
    keys = {f"{f[5]}/{f[6]}" for f in whole}
    some = random.Random(name).sample(trace.jobs().to_pylist(), 3) if name in ALL else []
    assert explained(trace, keys | {f"{row['namespace']}/{row['job']}" for row in some}) == whole


@pytest.mark.parametrize("name", LIES)
def test_a_part_of_the_verdicts_is_a_part_of_the_same_verdicts(
    name: str, place: Callable[[str], Path]
) -> None:
    trace = tracekit.open(place(name))
    whole = facts(trace.replay().divergences)
    keys = sorted({f"{f[5]}/{f[6]}" for f in whole})
    of_keys: Counter[Fact] = Counter()
    for key in keys:  # what the CronJob controller did to a Job is told of both
        of_keys |= facts(trace.replay(job=key).divergences)
    assert of_keys == whole
    namespaces = {f[5] for f in whole}
    of_namespaces = [facts(trace.replay(namespace=n).divergences) for n in sorted(namespaces)]
    assert sum(of_namespaces, Counter()) == whole
    controllers = {f[0] for f in whole}
    of_controllers = [facts(trace.replay(controllers=[c]).divergences) for c in controllers]
    assert sum(of_controllers, Counter()) == whole


@pytest.mark.full
def test_a_job_is_late_in_every_view_although_its_neighbours_are_not_shown(
    place: Callable[[str], Path],
) -> None:
    """The neighbours' syncs set the bound: without them this Job would pass."""
    path = place("sync-late")
    late = {f for f in replayed(path) if f[2] == "late"}
    assert late
    (key,) = {f"{f[5]}/{f[6]}" for f in late}
    namespace = key.split("/")[0]
    assert set(replayed(path, "-n", namespace)) >= late
    assert set(replayed(path, "--job", key)) >= late
    narrative = tracekit.open(path).explain(key)
    assert "late" in {step.verdict for step in narrative.steps}
    assert "1 divergence from the rules" in narrative.closing


@pytest.mark.full
def test_the_flags_of_the_controller_manager_count_for_every_verb(
    place: Callable[[str], Path], tmp_path: Path
) -> None:
    """Who has one token in a hundred seconds is late for want of them."""
    path = place("sync-late")
    (key,) = {f"{f[5]}/{f[6]}" for f in replayed(path) if f[2] == "late"}
    flags = ("--controller-flags", "--kube-api-qps=0.01")
    assert replayed(path, *flags) == Counter()
    assert tracekit.open(path, controller_flags=flags[1:]).replay().divergences == []

    def output(*words: str) -> str:
        result = CliRunner().invoke(entry.cli, [*words, *flags], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    for executor in ((), ("--processes", "1")):
        query = "SELECT count(*) AS n FROM divergences"
        assert json.loads(output("sql", str(path), query, "-o", "json", *executor)) == [{"n": 0}]
    assert "nothing contradicts the rules" in output("explain", str(path), key)
    found = json.loads(output("diagnose", str(path), "-o", "json"))["findings"]
    assert not [finding for finding in found if finding["id"].startswith("TK1")]
    output("report", str(path), "-o", str(tmp_path / "page.html"))
    assert data_of((tmp_path / "page.html").read_text())["divergences"] == []
    assert '"TK1' not in output("watch", str(path), "--once", "-o", "jsonl", "--fail-on", "error")
    # There is something else to say of this Job, and that is what is shown.
    small = ("-o", str(tmp_path / "small"), "--job", key, "--attempts", "20")
    assert "late" not in output("minimise", str(path), *small)


@pytest.mark.full
def test_the_zone_of_the_process_counts_for_every_verb(tmp_path: Path) -> None:
    """At a quarter to six in Greenwich it is half past eleven in Kathmandu."""
    path, zone = tmp_path / "trace", "Asia/Kathmandu"
    log = tmp_path / "watch.jsonl"
    every_minute = b'"schedule":"* * * * *"'
    with log.open("wb") as file:
        for row in json_lines(TRACES / PLACE / "watch.jsonl.zst"):
            file.write(orjson.dumps(row).replace(every_minute, b'"schedule":"* 11 * * *"') + b"\n")
    import_log(log, path, PLACE)
    trace = tracekit.open(path)

    def ticks(zone: str | None) -> int:
        narrative = trace.explain("t-cronjobs/allow", process_zone=zone)
        query = "SELECT count(*) FROM cron_ticks WHERE cronjob = 'allow'"
        (due,) = Session([path], rules=AskedRules(process_zone=zone)).sql(query).fetchall()[0]
        assert due == narrative.text().count("  tick ")
        assert narrative.opening.startswith(f"{due} due time")
        return due

    assert ticks(zone) > ticks(None)
    assert trace.diagnose(process_zone=zone) != trace.diagnose()


#### A part that is not there ####


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"namespace": "t-indexd"}, "did you mean t-indexed"),
        ({"namespace": ""}, "namespace ''"),
        ({"job": "t-indexed/idxx"}, "did you mean t-indexed/idx"),
        ({"job": "no-such-job"}, "no-such-job"),
        ({"job": "t-indexed/idx", "namespace": "t-backoff-limit"}, "leave out -n"),
        ({"controllers": ["cronjobs"]}, "did you mean cronjob"),
        ({"controllers": []}, "no controller"),
        ({"controllers": ["ttl"], "namespace": "t-indexed"}, "nothing to judge"),
        ({"min_actions": 100_000}, "100000"),
        ({"job": "t-indexed/idx", "min_actions": 500}, "500"),
    ],
)
def test_a_part_that_is_not_there_is_an_error_everywhere(
    part: dict[str, Any], said: str, place: Callable[[str], Path]
) -> None:
    path = place(PLACE)
    with pytest.raises(UsageError, match=said):
        tracekit.open(path).replay(**part)
    options = {
        "namespace": "-n", "job": "--job", "controllers": "--controller",
        "min_actions": "--min-actions",
    }  # fmt: skip
    words = [
        word
        for name, value in part.items()
        for word in (options[name], ",".join(value) if isinstance(value, list) else str(value))
    ]
    result = CliRunner().invoke(entry.cli, ["replay", str(path), "--diff", *words])
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
    assert result.stdout == ""


def test_a_divergence_is_told_however_few_actions_there_are(
    place: Callable[[str], Path],
) -> None:
    assert tracekit.open(place("pod-removed")).replay(min_actions=10**6).divergences


@pytest.mark.parametrize("verb", [["jobs"], ["export", "--format", "jsonl"]])
def test_other_verbs_know_no_namespace_that_is_not_there(
    verb: list[str], place: Callable[[str], Path]
) -> None:
    words = [*verb, str(place(PLACE)), "-n", "t-indexd"]
    result = CliRunner().invoke(entry.cli, words)
    assert isinstance(result.exception, UsageError)
    assert "did you mean t-indexed" in str(result.exception)
    with pytest.raises(UsageError, match="t-indexed"):
        tracekit.open(place(PLACE)).jobs("t-indexd")


def test_a_cronjob_that_is_not_there_is_an_error(place: Callable[[str], Path]) -> None:
    words = ["jobs", str(place(PLACE)), "--cronjob", "forbdi"]
    result = CliRunner().invoke(entry.cli, words)
    assert isinstance(result.exception, UsageError)
    assert "did you mean forbid" in str(result.exception)


@pytest.mark.full
def test_to_explain_one_job_judges_every_job_once(
    place: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tracekit.check.diff import alternative_readings as whole  # noqa: PLC0415

    seen: Counter[str] = Counter()
    judge_key = whole.judge_key

    def counted(history: Any, *rest: Any) -> Any:
        seen[history.key] += 1
        return judge_key(history, *rest)

    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))  # nothing is kept yet
    monkeypatch.setattr(whole, "judge_key", counted)
    trace = tracekit.open(place(PLACE))
    trace.explain("t-indexed/idx")
    jobs = {f"{row['namespace']}/{row['job']}" for row in trace.jobs().to_pylist()}
    # A few are asked first whether the record fits the rules at all; the one is told of once more.
    assert seen.keys() == jobs
    twice = {job for job, times in seen.items() if times == 2} - {"t-indexed/idx"}
    assert len(twice) <= SAMPLE < len(jobs) / 2
    assert max((times for job, times in seen.items() if job != "t-indexed/idx")) <= 2
    seen.clear()
    trace.explain("t-backoff-limit/once")
    tracekit.open(place(PLACE)).explain("t-indexed/idx")
    assert seen == Counter(["t-backoff-limit/once", "t-indexed/idx"])


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "TRACE", "--diff"),
        ("diagnose", "TRACE"),
        ("explain", "TRACE", "t-missed-start/report"),
        ("explain", "TRACE", "t-missed-start/report-29920964"),
        ("report", "TRACE", "-o", "REPORT"),
        ("sql", "TRACE", "SELECT count(*) FROM verdicts"),
        ("sql", "TRACE", "SELECT verdict FROM verdicts"),  # judged before
    ],
    ids=" ".join,
)
def test_every_verb_says_by_which_rules_it_judges(words: tuple[str, ...], tmp_path: Path) -> None:
    names = {"TRACE": str(TRACES / "incidents" / "missed-start"), "REPORT": str(tmp_path / "r")}
    line = [names.get(word, word) for word in words]
    result = CliRunner().invoke(entry.cli, [*line, "--kubernetes-version", "v1.99.0"])
    assert result.exit_code in (0, 1), result.output
    assert result.stderr.count(f"the rules of v{NEWEST.branch} are used") == 1


def test_what_is_not_judged_says_nothing_of_rules() -> None:
    trace = str(TRACES / "incidents" / "missed-start")
    line = ["sql", trace, "SELECT 1", "--kubernetes-version", "v1.99.0"]
    assert CliRunner().invoke(entry.cli, line).stderr == ""
