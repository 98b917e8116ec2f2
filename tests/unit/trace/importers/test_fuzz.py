"""Files of every kind cut, turned round, doubled and mixed: a sentence or a trace, and no loss unsaid.

What comes in is kept or named as left out: lines of a log, objects of what kubectl prints.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.watchlog import job, pod
from tests.unit.trace.importers.audit_logs import entry
from tests.unit.trace.importers.test_kcm_log import AT_NS, TEXT
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

COUNT = 12


def objects() -> list[dict]:
    kinds = (("batch/v1", "Job", job), ("v1", "Pod", pod))
    made = []
    for number in range(COUNT):
        version, kind, make = kinds[number % 2]
        obj = make(f"{kind.lower()}-{number}")
        meta = {**obj["metadata"], "uid": f"uid-{number}", "resourceVersion": str(100 + number)}
        made.append({"apiVersion": version, "kind": kind, **obj, "metadata": meta})
    return made


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def watch_lines() -> list[bytes]:
    return [
        compact(
            {"recv": 10**18 + n, "resource": f"{o['kind'].lower()}s", "type": "ADDED", "object": o}
        )
        for n, o in enumerate(objects())
    ]


def audit_lines() -> list[bytes]:
    return [
        compact(
            entry(
                "create",
                f"{o['kind'].lower()}s",
                o["metadata"]["name"],
                at_s=n,
                response=o,
                code=201,
                audit_id=f"id-{n}",
            )
        )
        for n, o in enumerate(objects())
    ]


def scheduler_lines() -> list[bytes]:
    stamp = "2026-03-01T10:00:00Z"
    return [compact({"time": stamp, "event": "Add", "resource": o}) for o in objects()]


def event_lines() -> list[bytes]:
    """Events as kubernetes-event-exporter writes them."""
    involved = {"kind": "Job", "namespace": "ns", "name": "job-0", "uid": "uid-0"}
    return [
        compact(
            {
                "metadata": {**o["metadata"], "name": f"job-0.{n}"},
                "reason": "SuccessfulCreate",
                "message": f"Created pod: job-0-{n}",
                "type": "Normal",
                "involvedObject": involved,
            }
        )
        for n, o in enumerate(objects())
    ]


def poll_lines() -> list[bytes]:
    """Polls of k8shark, each of a namespace with one Job."""
    return [
        compact(
            {
                "captured_at": f"2026-03-01T10:00:{n:02}Z",
                "api_path": f"/apis/batch/v1/namespaces/ns-{n}/jobs",
                "response_code": 200,
                "response_body": {"kind": "JobList", "apiVersion": "batch/v1", "metadata": {},
                                  "items": [{**o, "metadata": {**o["metadata"], "namespace": f"ns-{n}"}}]},
            }
        )
        for n, o in enumerate(objects()[::2])
    ]  # fmt: skip


def table_lines() -> list[bytes]:
    head = b"NAME         READY   STATUS    RESTARTS   AGE"
    return [head + b"\npod-%-8d 1/1     Running   0          %ds" % (n, n) for n in range(COUNT)]


def described_lines() -> list[bytes]:
    return [
        f"Name:  job-{n}\nNamespace:  ns\nParallelism:  1\nCompletions:  1\n"
        "Pods Statuses:  1 Active / 0 Succeeded / 0 Failed\nEvents:  <none>".encode()
        for n in range(COUNT)
    ]


class Imported(NamedTuple):
    """What an import says, and of its rows how many are no bounds of lists, gaps or deletions told."""

    result: ImportResult
    rows: int


def of_rows(done: Imported) -> int:
    return done.rows


class Case(NamedTuple):
    """One kind: its lines, and how many of them a result says it kept."""

    kind: str | None
    lines: Callable[[], list[bytes]]
    kept: Callable[[Imported], int]


def of_shapes(done: Imported) -> int:
    return sum(done.result.shapes.values())


CASES = {
    "watch": Case("watch", watch_lines, of_rows),
    "watch, any": Case(None, watch_lines, of_rows),
    "audit": Case("audit", audit_lines, of_shapes),
    "kubectl": Case("kubectl", lambda: [compact(o) for o in objects()], of_rows),
    "events": Case(
        "kubectl",
        lambda: [compact({"type": "ADDED", "object": o}) for o in objects()],
        of_rows,
    ),
    "yaml": Case(
        "kubectl", lambda: [b"---\n" + yaml.safe_dump(o).encode() for o in objects()], of_rows
    ),
    "sched-recorder": Case("sched-recorder", scheduler_lines, of_rows),
    "shipped Events": Case("kubectl", event_lines, of_rows),
    "kshrk": Case("kshrk", poll_lines, of_rows),
    "tables": Case("kubectl-text", table_lines, of_rows),
    "descriptions": Case("kubectl-text", described_lines, of_rows),
}  # fmt: skip
#: What is a line of its own in a table, and within a description is read over.
WITHIN = ("descriptions",)

#: What is put between whole lines, each one line that is no document and opens none.
NOISE = (b"prose", b"\xff\xfe\x00", "Pod läuft".encode("latin-1"), b"I0301 x", b"]", b"null", b"7")


def imported(case: Case, content: bytes) -> Imported | str:
    """What an import says; the sentence where it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "source"
        path.write_bytes(content)
        try:
            trace = Path(folder) / "trace"
            (result,) = import_files(ImportRequest([str(path)], trace, kind=case.kind))
            rows = TraceReader(trace).table(("type", "synthesized", "derived_from")).to_pylist()
            kept = [
                row
                for row in rows
                if row["type"] not in ("LIST_BEGIN", "LIST_END", "GAP")
                and (row["derived_from"] is not None or not row["synthesized"])
            ]
            return Imported(result, len(kept))
        except TraceFormatError as error:
            return str(error)


@st.composite
def shuffled(draw: st.DrawFn, lines: list[bytes]) -> tuple[list[bytes], int]:
    """The lines in any order, some of them twice, with noise between; and how many are whole."""
    whole = draw(st.permutations(lines))
    doubled = draw(st.lists(st.sampled_from(lines), max_size=4))
    mixed = [*whole, *doubled]
    for noise in draw(st.lists(st.sampled_from(NOISE), max_size=4)):
        mixed.insert(draw(st.integers(1, len(mixed))), noise)
    return mixed, len(whole) + len(doubled)


def check_counts(case: Case, data: st.DataObject) -> None:
    """Every whole line is kept or counted as left out; noise is neither kept nor a reason to stop."""
    lines, whole = data.draw(shuffled(case.lines()))
    if case.lines is CASES["yaml"].lines:
        lines = [line for line in lines if line.startswith(b"---")]
    done = imported(case, b"\n".join(lines) + b"\n")
    assert not isinstance(done, str), done
    kept, result = case.kept(done), done.result
    named = sum(n for what, n in result.problems.items() if "left out" in what or "once" in what)
    named += sum(n for what, n in result.problems.items() if "without an audit entry" in what)
    named += sum(n for what, n in result.problems.items() if "that are no records" in what)
    if case.kind == "watch" or case.lines is watch_lines:
        assert kept == len(lines)  # what cannot be read is kept as it is
    else:
        assert kept <= whole
        # A bracket ends an array, or nothing; in text for people it is a line like any other.
        brackets = 0 if case.kind == "kubectl-text" else lines.count(b"]")
        assert kept + named == len(lines) - brackets


def check_cut(case: Case, data: st.DataObject) -> None:
    """Cut anywhere, turned to UTF-16 from anywhere on, with bytes changed: a sentence or a trace."""
    content = bytearray(b"\n".join(case.lines()) + b"\n")
    begin = data.draw(st.integers(0, len(content) // 2))
    end = data.draw(st.integers(len(content) // 2, len(content)))
    content = content[begin:end]
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(content)))
        content[at:] = bytes(content[at:]).decode(errors="replace").encode("utf-16")
    for at in data.draw(st.lists(st.integers(0, max(0, len(content) - 1)), max_size=6)):
        content[at : at + 1] = data.draw(
            st.sampled_from([b"", b"\0", b"{", b'"', b"\n", b"}", b"\xff"])
        )
    said = imported(case, bytes(content))
    assert isinstance(said, Imported) or "\n" not in said


_QUICK = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
_LONG = settings(_QUICK, max_examples=500, derandomize=False)


@pytest.mark.parametrize("name", CASES)
@_QUICK
@given(data=st.data())
def test_what_comes_in_is_kept_or_named(name: str, data: st.DataObject) -> None:
    check_counts(CASES[name], data)


@pytest.mark.parametrize("name", CASES)
@_QUICK
@given(data=st.data())
def test_what_is_broken_is_a_sentence_or_a_trace(name: str, data: st.DataObject) -> None:
    check_cut(CASES[name], data)


@pytest.mark.nightly
@pytest.mark.parametrize("check", [check_counts, check_cut])
@pytest.mark.parametrize("name", CASES)
@_LONG
@given(data=st.data())
def test_the_same_for_a_long_time(
    name: str, check: Callable[[Case, st.DataObject], None], data: st.DataObject
) -> None:
    check(CASES[name], data)


def test_a_body_that_is_no_text_is_a_line_that_cannot_be_read() -> None:
    """What reads an entry passes its bodies over; one of other bytes than UTF-8 ended an import."""
    case = CASES["audit"]
    lines = case.lines()
    at = next(at for at, line in enumerate(lines) if b'"responseObject":{' in line)
    broken = lines[at].replace(b'"responseObject":{', b'"responseObject":{"\xff":0,', 1)
    done = imported(case, b"\n".join([*lines[:at], broken, *lines[at + 1 :]]) + b"\n")
    assert isinstance(done, Imported)
    result = done.result
    assert result.rows == len(lines) - 1
    assert any("without an audit entry" in what for what in result.problems)


@pytest.mark.full
@_QUICK
@given(data=st.data())
def test_a_log_of_a_controller_manager_is_read_whatever_became_of_it(data: st.DataObject) -> None:
    lines, _ = data.draw(shuffled(TEXT.encode().splitlines()))
    content = bytearray(b"\n".join(lines))
    cut = data.draw(st.integers(0, len(content)))
    with tempfile.TemporaryDirectory() as folder:
        log, record = Path(folder) / "log", Path(folder) / "record"
        log.write_bytes(bytes(content[cut:]))
        record.write_bytes(b"\n".join(watch_lines()) + b"\n")
        try:
            import_files(
                ImportRequest(
                    [str(log)], Path(folder) / "trace", kind="kcm-log", others=[str(record)]
                )
            )
        except TraceFormatError as error:
            assert "\n" not in str(error)  # noqa: PT017 - any sentence will do


@pytest.mark.full
@_QUICK
@given(data=st.data())
def test_each_line_of_a_controller_managers_log_is_kept_or_named(data: st.DataObject) -> None:
    """But for those of its head, which tell version and flags of the trace."""
    lines, _ = data.draw(shuffled(TEXT.encode().splitlines()))
    head = sum(b"FLAG: " in line or b'"Starting"' in line for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        log, record = Path(folder) / "log", Path(folder) / "record"
        log.write_bytes(b"\n".join(lines) + b"\n")
        seen = (json.loads(line) for line in watch_lines()[:2])
        times = (AT_NS - 10**10, AT_NS + 10**10)  # not all of the log is of that time
        record.write_bytes(
            b"\n".join(compact({**row, "recv": at}) for row, at in zip(seen, times, strict=True))
            + b"\n"
        )
        results = import_files(
            ImportRequest([str(log)], Path(folder) / "trace", kind="kcm-log", others=[str(record)])
        )
        (result,) = (result for result in results if result.kind == "kcm-log")
        rows = TraceReader(Path(folder) / "trace").table(("type",), types=["CALL"]).num_rows
        named = sum(n for what, n in result.problems.items() if "left out" in what)
        assert sum(result.calls.values()) == rows
        assert rows + named + head == len(lines)
