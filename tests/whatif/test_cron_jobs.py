"""CronJobs under other rules: what is proved of them, what the model tells, what is set otherwise.

The records are simulated, a few minutes each, but where a real one has to agree.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from tests.support.traces import ROOT
from tests.whatif.conftest import Import, Records, answers, ask
from tracekit.answers.whatif.answers import Drawn
from tracekit.base.errors import TracekitError
from tracekit.cli.main import cli
from tracekit.report.whatif import in_draws

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "whatif.schema.json").read_text())


def cron_jobs(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The CronJobs of a document by name."""
    return {cron_job["name"]: cron_job for cron_job in document["cronjobs"]}


def ticks_of(trace: Path) -> dict[str, dict[str, int]]:
    """The same counts by the SQL view, by uid."""
    query = (
        "SELECT cronjob_uid AS key, lower(outcome) AS outcome, count(*) AS n "
        "FROM cron_ticks GROUP BY ALL"
    )
    run = CliRunner().invoke(cli, ["sql", str(trace), query, "-o", "json"], standalone_mode=False)
    assert run.exception is None, run.exception
    found: dict[str, dict[str, int]] = {}
    for row in json.loads(run.stdout):
        found.setdefault(row["key"], {})[row["outcome"]] = row["n"]
    return found


@pytest.mark.parametrize("name", ["v1.36.3-conflicts", "v1.36.3-restart"])
def test_what_is_recorded_is_what_the_view_counts(imported: Import, name: str) -> None:
    """One answer: started, missed and skipped are the same in `sql` and here."""
    trace = imported(name)
    document = answers(trace, "--kubernetes-version", "v1.36.3")
    view = ticks_of(trace)
    assert document["cronjobs"]
    for cron_job in document["cronjobs"]:
        counts = view.get(cron_job["uid"], {})
        names = ("started", "missed", "skipped")
        assert cron_job["recorded"] == {n: counts.get(n, 0) for n in names}, cron_job["name"]


@pytest.mark.parametrize("name", ["v1.36.3-conflicts", "v1.36.3-restart"])
def test_the_same_rules_start_the_same(imported: Import, name: str) -> None:
    """A proof that finds a difference where there is none would be worth nothing."""
    found = answers(imported(name), "--kubernetes-version", "v1.36.3")["cronjobs"]
    odd = [c for c in found if c["verdict"] not in ("same", "unknowable") or c["because"]]
    assert not odd
    assert all(c["proved"] and c["target"] == c["recorded"] for c in found if "target" in c)


def test_the_queue_starts_what_the_polling_controller_started_later(records: Records) -> None:
    """1.21: CronJobs are looked at in their time, not every ten seconds."""
    trace = records.of("v1.20.15")
    found = cron_jobs(answers(trace, "--kubernetes-version", "v1.21.14"))
    allow = found["allow"]
    assert (allow["verdict"], allow["proved"]) == ("timing", False)
    assert allow["target"] == allow["recorded"]
    assert allow["because"] == [{"kind": "gate", "name": "CronJobControllerV2"}]
    assert allow["fork"]["kind"] == "queue"
    # Nor does a controller that cannot read the schedule start anything.
    assert found["zoned"]["recorded"]["started"] == 0


@pytest.mark.full
def test_cron_jobs_that_were_there_before_the_record_are_put_into_the_run(
    records: Records,
) -> None:
    """A record of a cluster that lives begins in the middle: they have a last time, and Jobs."""
    trace = records.begun_late("v1.20.15", 130)
    document = answers(trace, "--kubernetes-version", "v1.21.14")
    found = cron_jobs(document)
    for name in ("allow", "forbid"):
        # When the passes of the polling controller come is not in the record.
        assert found[name]["verdict"] in ("fields", "timing"), found[name].get("why")
        assert found[name]["baseline"] == found[name]["recorded"]
        assert found[name]["recorded"]["started"] > 0
    # A CronJob that has a zone in its schedule keeps it: only a new one is refused.
    late = records.begun_late("v1.28.15", 130)
    zoned = cron_jobs(answers(late, "--kubernetes-version", "v1.36.3"))["zoned"]
    assert zoned["verdict"] in ("same", "fields")
    assert zoned["proved"]


@pytest.mark.full
def test_a_downgrade_is_answered_as_an_upgrade_is(records: Records) -> None:
    found = cron_jobs(answers(records.of("v1.28.15"), "--kubernetes-version", "v1.20.15"))
    # The library up to 1.21 cannot read a zone in a schedule.
    assert (found["zoned"]["verdict"], found["zoned"]["target"]["started"]) == ("outcome", 0)
    assert {c["name"] for c in found["zoned"]["because"]} & {
        "cron_grammar_with_zones", "CronJobControllerV2",
    }  # fmt: skip
    assert found["allow"]["verdict"] == "timing"


def test_a_schedule_with_a_zone_is_refused_and_its_jobs_are_never_made(records: Records) -> None:
    """PR#116252: 1.29 and later take no new CronJob with TZ in its schedule."""
    document = answers(records.of("v1.28.15"), "--kubernetes-version", "v1.36.3")
    zoned = cron_jobs(document)["zoned"]
    assert (zoned["verdict"], zoned["target"]["started"]) == ("outcome", 0)
    cause = {"kind": "behavior", "name": "zone_in_schedule_refused"}
    assert zoned["because"] == [cause]
    group = next(c for c in document["causes"] if c["name"] == cause["name"])
    assert (group["verdict"], group["cronjobs"]) == ("outcome", 1)
    assert group["reference"].endswith("/pull/116252")
    jobs = [job for job in document["jobs"] if job["name"].startswith("zoned-")]
    assert len(jobs) == zoned["recorded"]["started"] == len(zoned["only_baseline"]) > 0
    for job in jobs:
        assert (job["verdict"], job["reason"], job["target"]["pods"]) == (
            "outcome",
            "not-started",
            0,
        )
        assert job["because"] == [cause]


def test_forbid_waits_for_what_an_ending_waits_for(records: Records) -> None:
    """#125089: from 1.31 on a Job ends when its last pod is gone, and Forbid waits until then."""
    document = answers(records.of("v1.30.14"), "--kubernetes-version", "v1.31.1")
    stubborn = cron_jobs(document)["stubborn"]
    # The tick that came in between is made up for as soon as the Job has ended.
    assert (stubborn["verdict"], stubborn["proved"]) == ("timing", False)
    assert stubborn["target"]["started"] == stubborn["recorded"]["started"]
    cause = {"kind": "behavior", "name": "terminal_condition_waits_for_terminating_pods"}
    assert cause in stubborn["because"]
    # What nothing happened to is proved.
    assert cron_jobs(document)["allow"]["proved"]


def test_another_policy_is_its_own_cause(records: Records) -> None:
    trace = records.of("v1.28.15")
    setting = "spec.concurrencyPolicy=Forbid"
    document = answers(trace, "--set-cron", setting)
    found = cron_jobs(document)
    assert document["settings"] == [f"cronjob {setting}"]
    assert found["allow"]["verdict"] == "outcome"
    assert found["allow"]["target"]["skipped"] > found["allow"]["recorded"]["skipped"] == 0
    assert found["allow"]["because"] == [{"kind": "setting", "name": f"cronjob {setting}"}]
    assert found["forbid"]["verdict"] == "same"


def test_the_document_keeps_its_promise_for_cron_jobs(records: Records) -> None:
    for version, target in (("v1.28.15", "v1.36.3"), ("v1.20.15", "v1.21.14")):
        document = answers(records.of(version), "--kubernetes-version", target)
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        assert sum(document["cronjob_counts"].values()) == len(document["cronjobs"]) == 4


@pytest.mark.full
def test_a_cron_job_counts_for_fail_on_and_tells_why(records: Records) -> None:
    trace, options = records.of("v1.28.15"), ("--kubernetes-version", "v1.36.3")
    for limit, status in (("outcome", 1), ("fields", 1)):
        assert (
            ask(trace, *options, "--job", "shop/zoned", "--fail-on", limit).return_value == status
        )
    assert ask(trace, *options, "--job", "shop/allow", "--fail-on", "pods").return_value == 0
    told = ask(trace, *options, "--why", "shop/zoned").stdout
    assert "CronJob shop/zoned" in told
    assert "fork    the API server refuses the CronJob" in told
    assert "Only v1.28.15 starts" in told
    assert "Job shop/zoned-" not in told


def test_the_screens_name_cron_jobs(records: Records) -> None:
    trace, options = records.of("v1.28.15"), ("--kubernetes-version", "v1.36.3")
    table = ask(trace, *options).stdout
    assert "4 CronJobs" in table
    assert "zone_in_schedule_refused" in table
    assert "shop/zoned " in ask(trace, *options, "-o", "wide").stdout
    assert "| class | CronJobs | |" in ask(trace, *options, "-o", "markdown").stdout


def test_how_sure_is_said_in_draws() -> None:
    assert in_draws(None) == in_draws(Drawn(20, 20)) == "certain"
    assert in_draws(Drawn(7, 20)) == "in 7 of 20 draws"
    assert in_draws((Drawn(7, 20), Drawn(18, 20))) == "in 7 to 18 of 20 draws"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("spec.concurencyPolicy=Forbid", "did you mean concurrencyPolicy"),
        ("spec.concurrencyPolicy=Never", "is one of Allow, Forbid, Replace"),
        ("spec.suspend=1", "takes true or false"),
        ("spec.suspend", "sets nothing"),
        ("spec.startingDeadlineSeconds=-1", "takes a whole number"),
        ("spec.schedule=every minute", "the schedule cannot be read"),
        ("spec.schedule=null", "needs a schedule"),
        ("spec.timeZone=Middle/Earth", "is no time zone"),
        ("spec.jobTemplate.spec.backoffLimit=1", "is set with --set"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence(
    records: Records, setting: str, said: str
) -> None:
    result = ask(records.of("v1.28.15"), "--set-cron", setting)
    assert isinstance(result.exception, TracekitError)
    assert said in str(result.exception)
