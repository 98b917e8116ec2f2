"""What kubectl prints for people, beside what the objects of that moment were.

The texts are those of kubectl 1.32 at an API server of 1.36.3.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from tracekit.base.errors import TracekitError
from tracekit.base.kube.printed.ages import age_of, moment_of
from tracekit.base.kube.printed.model import LeftOut, Shown, ShownEvent
from tracekit.base.kube.printed.texts import read_text
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.cli.main import main
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

AT = "2026-11-26T20:59:49Z"
UID = "8654cdf9-68cb-535d-a9ae-b64e45730a61"

ALL = """\
NAMESPACE   NAME                         SCHEDULE      TIMEZONE   SUSPEND   ACTIVE   LAST SCHEDULE   AGE
ballots     cronjob.batch/poll-handout   0 */2 * * *   <none>     True      1        17h             25h

NAMESPACE   NAME              STATUS      COMPLETIONS   DURATION   AGE
lab         job.batch/scan    Failed      0/1           3m35s      3m35s
lab         job.batch/waits   Suspended   0/3                      5m10s

NAMESPACE   NAME             READY   STATUS             RESTARTS      AGE
lab         pod/scan-aaaa1   0/1     ImagePullBackOff   0             2m20s
lab         pod/scan-bbbb2   0/2     Init:Error         4 (67s ago)   3h

NAMESPACE   LAST SEEN   TYPE      REASON                 OBJECT     MESSAGE
lab         10s         Warning   BackoffLimitExceeded   job/scan   Job has reached the  specified backoff limit
"""
WATCHED = """\
$ kubectl get pods -n shop -w
NAME         READY   STATUS    RESTARTS   AGE
load-x2k4p   0/1     Pending   0          0s
load-x2k4p   0/1     ContainerCreating   0          1s
load-x2k4p   1/1     Running             0          4s
load-x2k4p   0/1     Error               0          9s
"""
DESCRIBED = f"""\
Name:             migrate
Namespace:        ops
Selector:         batch.kubernetes.io/controller-uid={UID}
Labels:           batch.kubernetes.io/job-name=migrate
                  job-name=migrate
Annotations:      <none>
Controlled By:    CronJob/nightly
Parallelism:      1
Completions:      1
Completion Mode:  NonIndexed
Suspend:          false
Backoff Limit:    6
Start Time:       Thu, 26 Nov 2026 20:55:19 +0000
Pods Statuses:    0 Active (0 Ready) / 0 Succeeded / 2 Failed
Pod Template:
  Labels:  job-name=migrate
  Containers:
   main:
    Image:         registry.local/work:1
  Volumes:         <none>
Events:
  Type     Reason                Age    From            Message
  ----     ------                ----   ----            -------
  Normal   SuccessfulCreate      4m30s  job-controller  Created pod: migrate-i7n8t
  Warning  BackoffLimitExceeded  9s     job-controller  Job has reached the specified backoff limit


Name:         migrate-i7n8t
Namespace:    ops
Node:         node-a/10.0.0.3
Start Time:   Thu, 26 Nov 2026 21:55:19 +0100
Labels:       batch.kubernetes.io/controller-uid={UID}
              batch.kubernetes.io/job-name=migrate
Annotations:  <none>
Status:       Pending
IP:           10.1.0.9
IPs:
  IP:           10.1.0.9
Controlled By:  Job/migrate
Init Containers:
  wait-db:
    Image:          registry.local/wait:1
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    2
      Started:      Thu, 26 Nov 2026 20:58:39 +0000
      Finished:     Thu, 26 Nov 2026 20:58:42 +0000
    Ready:          False
    Restart Count:  4
Containers:
  main:
    Image:          registry.local/work:1
    State:          Waiting
      Reason:       PodInitializing
    Ready:          False
    Restart Count:  0
Conditions:
  Type              Status
  PodScheduled      True 
  Initialized       False 
Volumes:
  config:
    Type:      ConfigMap (a volume populated by a ConfigMap)
    Name:      settings
QoS Class:          BestEffort
Events:
  Type     Reason   Age                From     Message
  ----     ------   ----               ----     -------
  Warning  BackOff  9s (x9 over 4m9s)  kubelet  Back-off restarting failed container wait-db in pod


Name:                          nightly
Namespace:                     ops
Labels:                        <none>
Schedule:                      0 */2 * * *
Concurrency Policy:            Forbid
Suspend:                       False
Starting Deadline Seconds:     300s
Parallelism:                   <unset>
Completions:                   <unset>
Pod Template:
  Labels:  <none>
  Containers:
   main:
    Image:           registry.local/work:1
Last Schedule Time:  Thu, 26 Nov 2026 03:59:35 +0000
Active Jobs:         migrate
Events:              <none>
"""  # noqa: W291 - kubectl ends some lines so


def read(text: str) -> list[Any]:
    return list(read_text(text.splitlines()))


def shown(text: str) -> dict[str, Shown]:
    return {f"{i.kind}/{i.name}": i for i in read(text) if isinstance(i, Shown)}


def imported(text: str, tmp_path: Path, name: str = "text.txt") -> tuple[ImportResult, Path]:
    path, trace = tmp_path / name, tmp_path / "trace"
    path.write_text(text)
    at_ns = parse_rfc3339(AT)
    (result,) = import_files(ImportRequest([str(path)], trace, looked_at_ns=at_ns))
    return result, trace


def rows(trace: Path) -> list[dict[str, Any]]:
    columns = ("verb", "namespace", "name", "job", "reason", "recv_ns", "not_before_ns", "raw")
    return TraceReader(trace).table(columns).to_pylist()


#### Tables ####


def test_each_table_is_told_by_its_columns() -> None:
    found = shown(ALL)
    cron, failed, waits = (
        found[n] for n in ("CronJob/poll-handout", "Job/scan", "Job/waits")
    )  # fmt: skip
    assert (cron.schedule, cron.suspended, cron.active, cron.time_zone) == ("0 */2 * * *", True, 1, None)  # fmt: skip
    assert (failed.status, failed.succeeded) == ("Failed", 0)
    assert failed.completions is None  # 0/1 is printed where completions is not set, too
    assert (waits.status, waits.completions) == ("Suspended", 3)
    assert "DURATION" not in waits.printed
    pull, init = found["Pod/scan-aaaa1"], found["Pod/scan-bbbb2"]
    assert (pull.status, pull.ready, pull.total) == ("ImagePullBackOff", 0, 1)
    assert (init.status, init.restarts) == ("Init:Error", 4)
    assert {item.namespace for item in found.values()} == {"lab", "ballots"}


def test_a_message_keeps_its_gaps() -> None:
    (event,) = (item for item in read(ALL) if isinstance(item, ShownEvent))
    assert event.message == "Job has reached the  specified backoff limit"
    assert (event.kind, event.name, event.age) == ("Job", "scan", "10s")


def test_the_columns_of_wide_tables_and_labels_tell_more() -> None:
    text = (
        "NAME   STATUS    COMPLETIONS   DURATION   AGE   CONTAINERS   IMAGES   SELECTOR\n"
        f"a      Running   0/1 of 4      30m        30m   main         w:1      controller-uid={UID}\n\n"
        "NAME      READY   STATUS    RESTARTS   AGE   IP       NODE     NOMINATED NODE   READINESS GATES\n"
        "a-4x2pl   1/1     Running   0          30m   <none>   node-a   <none>           <none>\n\n"
        "NAME      READY   STATUS    RESTARTS   AGE   LABELS\n"
        f"a-4x2pl   1/1     Running   0          30m   controller-uid={UID},job-name=a\n"
    )  # fmt: skip
    job, wide, labelled = (item for item in read(text) if isinstance(item, Shown))
    assert (job.uid, job.parallelism, job.completions) == (UID, 4, None)
    assert (wide.node, wide.owner_name) == ("node-a", None)  # a name is no proof of whose it is
    assert (labelled.owner_kind, labelled.owner_name, labelled.owner_uid) == ("Job", "a", UID)


def test_lines_of_a_watch_are_looks_in_order_without_ages(tmp_path: Path) -> None:
    result, trace = imported(WATCHED, tmp_path)
    found = [orjson.loads(row["raw"]) for row in rows(trace)]
    assert [one["status"] for one in found] == ["Pending", "ContainerCreating", "Running", "Error"]
    assert {one["namespace"] for one in found} == {"shop"}  # the command says it
    assert not any("created_before" in one for one in found)
    assert result.shapes == {"table row": 4}


def test_with_stamps_a_watch_has_times_and_ages(tmp_path: Path) -> None:
    lines = [f"2026-03-01T10:00:{n:02}Z {line}" for n, line in enumerate(WATCHED.splitlines()[1:])]
    _, trace = imported("\n".join(lines), tmp_path)
    found = rows(trace)
    assert found[-1]["recv_ns"] == parse_rfc3339("2026-03-01T10:00:04Z")
    last = orjson.loads(found[-1]["raw"])
    assert last["created_before"] == "2026-03-01T09:59:55Z"
    assert last["created_after"] == "2026-03-01T09:59:54Z"


def test_what_watch_events_say_is_kept() -> None:
    text = (
        "EVENT      NAME         READY   STATUS    RESTARTS   AGE\n"
        "ADDED      load-x2k4p   1/1     Running   0          5s\n"
        "DELETED    load-x2k4p   1/1     Running   0          9s\n"
    )
    assert [item.event for item in read(text)] == ["ADDED", "DELETED"]


def test_every_line_is_kept_or_named() -> None:
    text = f"some prose\n{WATCHED}not a row at all, is it\n\nNAME READY UP-TO-DATE\nweb 1/1 1\n"
    found = read(text)
    whys = [item.why for item in found if isinstance(item, LeftOut)]
    assert len(found) - len(whys) == 4
    assert whys == [
        "lines that are of no table or description",
        "lines that are no rows of the table above",
        "rows of tables of other kinds",
    ]


#### Descriptions ####


def test_a_description_tells_of_its_object() -> None:
    found = shown(DESCRIBED)
    assert list(found) == ["Job/migrate", "Pod/migrate-i7n8t", "CronJob/nightly"]
    job, pod, cron = found.values()
    assert (job.uid, job.owner_name, job.backoff_limit) == (UID, "nightly", 6)
    assert (job.active, job.succeeded, job.failed) == (0, 0, 2)
    assert (job.started, job.completed) == ("2026-11-26T20:55:19Z", None)
    assert (pod.owner_name, pod.owner_uid, pod.node) == ("migrate", UID, "node-a")
    assert pod.started == "2026-11-26T20:55:19Z"
    assert pod.conditions == {"PodScheduled": "True", "Initialized": "False"}
    init, main_ = pod.containers or ()
    assert (init.name, init.init, init.reason, init.restarts) == ("wait-db", True, "CrashLoopBackOff", 4)  # fmt: skip
    assert (init.before_reason, init.before_exit_code, init.exit_code) == ("Error", 2, None)
    assert (main_.name, main_.reason) == ("main", "PodInitializing")
    assert (cron.schedule, cron.suspended) == ("0 */2 * * *", False)
    assert cron.last_schedule == "2026-11-26T03:59:35Z"


def test_events_of_a_description_have_a_time_as_exact_as_their_age(tmp_path: Path) -> None:
    _, trace = imported(DESCRIBED, tmp_path)
    found = {row["reason"]: row for row in rows(trace) if row["verb"] == "event"}
    made = found["SuccessfulCreate"]
    assert made["recv_ns"] == parse_rfc3339("2026-11-26T20:55:19Z")
    assert made["recv_ns"] - made["not_before_ns"] == 10**9
    assert orjson.loads(found["BackOff"]["raw"])["count"] == 9


def test_a_description_of_an_old_client_is_read() -> None:
    text = (
        "Name:\t\tpi\nNamespace:\tdefault\nImage(s):\tperl\nParallelism:\t1\nCompletions:\t1\n"
        f"Labels:\tcontroller-uid={UID},job-name=pi\n"
        "Pods Statuses:\t0 Running / 1 Succeeded / 0 Failed\nNo volumes.\nEvents:\n"
        "  FirstSeen\tLastSeen\tCount\tFrom\t\tSubobjectPath\tType\tReason\tMessage\n"
        "  ---------\t--------\t-----\t----\t\t-------------\t----\t------\t-------\n"
        "  3m\t1m\t2\t{job-controller }\t\tNormal\tSuccessfulCreate\tCreated pod: pi-dtn4q\n"
    )
    job, event = read(text)
    assert (job.uid, job.succeeded, job.active) == (UID, 1, 0)
    assert (event.reason, event.age, event.count) == ("SuccessfulCreate", "1m", 2)
    assert (event.source, event.message) == ("job-controller", "Created pod: pi-dtn4q")


def test_other_descriptions_are_counted() -> None:
    (left,) = read("Name:    node-a\nRoles:   <none>\nLabels:  a=b\n")
    assert left == LeftOut("descriptions of other kinds")


@pytest.mark.parametrize(
    ("text", "age"),
    [
        *(("9s", (9, 1)), ("3m35s", (215, 1)), ("5m", (300, 60)), ("7h30m", (27000, 60))),
        *(("47h", (169200, 3600)), ("2d3h", (183600, 3600)), ("2y35d", (66096000, 86400))),
        # No time.Duration is longer than 292 years.
        *(("292y", (292 * 365 * 86400, 365 * 86400)), ("293y", None), ("999999y", None)),
        *(("<unknown>", None), ("", None), ("soon", None), ("1h2m3s", None)),
    ],
)
def test_an_age_is_as_exact_as_it_is_printed(text: str, age: tuple[int, int] | None) -> None:
    assert age_of(text) == age


def test_a_time_that_is_none_is_none() -> None:
    assert moment_of("yesterday") is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Fri, 31 Dec 9999 23:59:59 -2359", "10000-01-01T23:58:59Z"),
        ("Mon, 01 Jan 0001 00:00:00 +0000", "0001-01-01T00:00:00Z"),
        ("Sun, 01 Mar 2026 10:00:00 +0130", "2026-03-01T08:30:00Z"),
    ],
)
def test_a_time_is_read_in_its_zone(text: str, moment: str) -> None:
    assert moment_of(text) == moment


EDGES = """\
Name:           load
Namespace:      shop
Parallelism:    1
Completions:    1
Start Time:     Fri, 31 Dec 9999 23:59:59 -2359
Pods Statuses:  0 Active (0 Ready) / 0 Succeeded / {count} Failed
Events:
  Type     Reason                Age     From            Message
  ----     ------                ----    ----            -------
  Normal   SuccessfulCreate      {age}   job-controller  Created pod: load-x2k4p
"""


@pytest.mark.parametrize("age", ["292y", "9999y", "999999y"])
@pytest.mark.parametrize("count", ["3", "9" * 5000])
def test_numbers_of_any_size_are_no_fault(age: str, count: str, tmp_path: Path) -> None:
    _, trace = imported(EDGES.format(age=age, count=count), tmp_path)
    looks = rows(trace)
    assert [row["verb"] for row in sorted(looks, key=lambda row: row["verb"])] == [
        "describe",
        "event",
    ]
    assert all(row["recv_ns"] >= 0 and (row["not_before_ns"] or 0) >= 0 for row in looks)


@pytest.mark.parametrize(
    "at",
    [
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+23:59",
        "1969-12-31T23:59:59Z",
        "-200000d",
    ],
)
@pytest.mark.parametrize("verb", ["import", "diagnose"])
def test_nobody_looked_at_a_time_that_no_record_has(
    verb: str, at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.txt"
    path.write_text(ALL)
    words = [verb, str(path), f"--at={at}"]
    code, out, err = said(words + (["-o", str(tmp_path / "t")] if verb == "import" else []), capsys)
    assert (code, out) == (2, "")
    assert "is no time of a look: name one from 1970 to 2115" in err


#### What is said ####


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as end:
        main(words)
    out, err = capsys.readouterr()
    return end.value.code, out, err


def diagnosed(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    path = tmp_path / "text.txt"
    path.write_text(text)
    code, out, _ = said(["diagnose", str(path), "--at", AT, "-o", "json"], capsys)
    assert code == 0
    return orjson.loads(out)["findings"]


def told(findings: list[Any]) -> set[tuple[str, str]]:
    return {(finding["id"], finding["text"]) for finding in findings}


def test_diagnose_says_what_tables_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(diagnosed(ALL, tmp_path, capsys)) == {
        ("TK443", "Job lab/scan: was shown as failed (BackoffLimitExceeded)"),
        ("TK444", "Pod lab/scan-aaaa1: was shown as ImagePullBackOff"),
        ("TK444", "Pod lab/scan-bbbb2: was shown as Init:Error"),
        ("TK446", "CronJob ballots/poll-handout: was shown as suspended"),
        ("TK446", "Job lab/waits: was shown with STATUS Suspended"),
        ("TK908", "the record: is text that kubectl prints for people: nothing is judged"),
    }


def test_diagnose_says_what_descriptions_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = diagnosed(DESCRIBED, tmp_path, capsys)
    assert {text for _, text in told(found)} >= {
        "Job ops/migrate: was shown as failed (BackoffLimitExceeded)",
        "Pod ops/migrate-i7n8t: was shown as CrashLoopBackOff",
    }
    assert "before that Error (2)" in str(found)


def test_a_watch_says_how_it_came_to_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = diagnosed(WATCHED, tmp_path, capsys)
    assert ("TK444", "Pod shop/load-x2k4p: was shown as Error") in told(found)
    assert "after Pending, ContainerCreating, Running" in str(found)


def test_whether_a_job_failed_is_unknown_without_its_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DESCRIBED.partition("Events:")[0] + "Events:  <none>\n"
    (finding,) = (f for f in diagnosed(text, tmp_path, capsys) if f["id"] == "TK443")
    assert finding["severity"] == "info"
    assert "whether it failed is unknown" in finding["text"]


def test_a_younger_one_of_a_name_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "NAME   STATUS    COMPLETIONS   DURATION   AGE\n"
        "load   Failed    0/1           9m         9m\n"
        "load   Running   0/1           0s         0s\n"
    )
    assert not {f for f in told(diagnosed(text, tmp_path, capsys)) if f[0] == "TK443"}


def test_a_pod_that_no_node_takes_is_unschedulable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "NAME    READY   STATUS    RESTARTS   AGE\na-1x2   0/1     Pending   0          9s\n\n"
        "LAST SEEN   TYPE      REASON             OBJECT      MESSAGE\n"
        "9s          Warning   FailedScheduling   pod/a-1x2   0/6 nodes are available: 3 Insufficient cpu\n"
    )
    found = diagnosed(text, tmp_path, capsys)
    assert ("TK444", "Pod a-1x2: was shown as Unschedulable") in told(found)
    assert "Insufficient cpu" in str(found)


#### A trace of it ####


@pytest.mark.parametrize(
    "verb", [["replay", "--diff"], ["replay", "--kubernetes-version", "v1.36.3"]]
)
def test_nothing_of_it_is_judged(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, trace = imported(DESCRIBED, tmp_path)
    words = [verb[0], str(trace), *verb[1:]]
    code, _, err = said(words, capsys)
    assert code == 2
    assert "nothing of the trace can be judged" in err
    assert "`tracekit diagnose`" in err


def test_no_stream_of_it_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, trace = imported(DESCRIBED, tmp_path)
    header = TraceReader(trace).header
    assert all(about["recorded"] is False for about in header.streams.values())
    code, out, err = said(["jobs", str(trace)], capsys)
    assert (code, out.strip()) == (0, "")
    assert "`tracekit diagnose` says what it tells" in err


def test_ages_count_from_when_the_file_was_written(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(ALL)
    os.utime(path, (1_795_700_565, 1_795_700_565))
    import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert {row["recv_ns"] for row in rows(tmp_path / "trace") if row["verb"] == "get"} == {
        1_795_700_565 * 10**9
    }


def test_beside_what_has_states_it_is_left_out_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "a.txt").write_text(ALL)
    (folder / "jobs.json").write_bytes(
        orjson.dumps({"apiVersion": "batch/v1", "kind": "JobList", "metadata": {}, "items": []})
    )
    (result,) = import_files(ImportRequest([str(folder)], tmp_path / "trace"))
    assert result.kind == "kubectl"
    assert any("1 file that kubectl prints for people" in remark for remark in result.remarks)


def test_a_namespace_that_nobody_names_is_asked_for_with_scope(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.txt"
    path.write_text(WATCHED.partition("\n")[2])
    code, _, _ = said(
        ["import", str(path), "--scope", "shop", "-o", str(tmp_path / "trace")], capsys
    )
    assert code == 0
    assert {row["namespace"] for row in rows(tmp_path / "trace")} == {"shop"}


@pytest.mark.parametrize("kind", ["audit", "kubectl"])
def test_as_another_kind_it_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(ALL)
    with pytest.raises(TracekitError, match="kubectl-text"):
        import_files(ImportRequest([str(path)], tmp_path / "trace", kind=kind))


def test_an_empty_duration_of_a_watch_is_no_age() -> None:
    text = (
        "NAME   STATUS   COMPLETIONS   DURATION   AGE\nload   Suspended   0/3         5m10s\n"
        "load   Running   0/3   1s   5m11s\n"
    )
    printed = [item.printed for item in read(text)]
    assert [p.get("DURATION") for p in printed] == [None, "1s"]
    assert [p["AGE"] for p in printed] == ["5m10s", "5m11s"]


#### Recognition ####


@pytest.mark.parametrize(
    "text",
    [
        "[root@node job]# kubectl get job\nNAME   COMPLETIONS   DURATION   AGE\npi     1/1           3m17s      10m\n",
        "kubectl get pod -A -w | grep limit\nshop   limit-646jx   0/1       Error     0         2s\n",
        "limit-646jx   0/1   CrashLoopBackOff   4 (67s ago)   2m20s\n",
    ],
    ids=["a prompt with a bracket", "a head that grep took", "nothing but a row"],
)  # fmt: skip
def test_one_row_is_enough(text: str, tmp_path: Path) -> None:
    result, _ = imported(text, tmp_path)
    assert result.shapes == {"table row": 1}


LASTING = """\
NAME        READY   STATUS        RESTARTS   AGE
load-7xk2p  1/2     NotReady      0          3h
etl-4xk2p   0/1     Terminating   0          26h
fat-8s7df   0/1     OOMKilled     0          14m

NAME   STATUS      COMPLETIONS   DURATION   AGE
etl    Suspended   0/1                      26h
"""


def test_what_is_trouble_only_where_it_lasts_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = diagnosed(LASTING, tmp_path, capsys)
    assert told(found) >= {
        ("TK444", "Pod load-7xk2p: was shown as NotReady"),
        ("TK444", "Pod etl-4xk2p: was shown as Terminating"),
        ("TK444", "Pod fat-8s7df: was shown as OOMKilled"),
        ("TK446", "Job etl: was shown with STATUS Suspended"),
    }
    by_text = {finding["text"]: finding for finding in found}
    assert by_text["Pod etl-4xk2p: was shown as Terminating"]["severity"] == "info"
    assert "limits.memory" in str(by_text["Pod fat-8s7df: was shown as OOMKilled"])
