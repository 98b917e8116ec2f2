"""Traces in object storage by row group: what is fetched for a question, and what it is checked by."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.stores.test_stores import run
from tests.support.s3 import S3
from tests.support.traces import TRACES, import_log
from tracekit.base.errors import TraceFormatError
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.judge import partitioned
from tracekit.judge.executors.inline import Inline
from tracekit.judge.judged import resolve_era
from tracekit.judge.partition import families
from tracekit.judge.partitioned import JudgeUnits, PartitionedJudge
from tracekit.judge.run_context import run_context_of
from tracekit.judge.unit_result import decoded
from tracekit.trace.format import segments
from tracekit.trace.format.model import HEADER_NAME, MANIFEST_NAME
from tracekit.trace.format.seal import read_footer, rest_offset
from tracekit.trace.format.segments import live_segments
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores import mirror, place
from tracekit.trace.stores.origin import fetched_bytes
from tracekit.trace.stores.place import local_trace
from tracekit.trace.writing.whole import compact_in_place

NAME = "v1.36.3-all"
NAMESPACE = "t-work-queue"


@pytest.fixture(scope="module", params=["wide", "narrow"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of few segments with many row groups, as a large one has them."""
    found = tmp_path_factory.mktemp("ranges") / "trace"
    import_log(TRACES / NAME / "watch.jsonl.zst", found, NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "ROW_GROUP_ROWS", 128)
        for narrow in (True, False):  # from one form to the other: each is written anew
            if narrow or request.param == "wide":
                compact_in_place(found, narrow=narrow)
    assert TraceReader(found).snapshot.files[0].row_groups > 10
    return found


@pytest.fixture
def url(s3: S3, trace: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(mirror, "_WHOLE_BYTES", 0)  # no file is so small as to be fetched whole
    monkeypatch.setattr(mirror, "_END_BYTES", 64)  # and every footer is larger than was thought
    return s3.put(trace, f"bucket/{trace.name}")


def size(trace: Path) -> int:
    return sum(path.stat().st_size for path in trace.rglob("*") if path.is_file())


def ends(trace: Path) -> int:
    """Bytes of all that must be there for the trace to be opened."""
    groups = 0
    for segment in live_segments(trace):
        with segment.path.open("rb") as file:
            seal = read_footer(file.fileno()).seal
        assert seal is not None
        groups += sum(part.length for part in seal.groups)
    return size(trace) - groups


def test_to_open_a_trace_takes_the_ends_of_its_files(s3: S3, url: str, trace: Path) -> None:
    before = fetched_bytes()
    with s3.watched() as answers:
        reader = TraceReader(url)
    assert reader.rows == TraceReader(trace).rows
    assert fetched_bytes() - before == ends(trace) < size(trace)
    # The rest is listings and what the protocol says around them.
    assert sum(answer.size_bytes for answer in answers) < ends(trace) + 20_000
    assert reader.size_bytes == TraceReader(trace).size_bytes


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "TRACE", "-n", NAMESPACE, "-o", "jsonl"),
        ("sql", "TRACE", "-n", NAMESPACE, "SELECT * FROM attempts ORDER BY ALL", "-o", "jsonl"),
    ],
    ids=lambda command: command[0],
)
def test_a_namespace_costs_its_own_row_groups(
    url: str, trace: Path, command: tuple[str, ...]
) -> None:
    expected = run(*(str(trace) if word == "TRACE" else word for word in command))
    before = fetched_bytes()
    found = run(*(url if word == "TRACE" else word for word in command))
    assert found.exit_code == expected.exit_code == 0
    assert found.output == expected.output
    assert NAMESPACE in found.output
    spent = fetched_bytes() - before - ends(trace)
    assert 0 < spent < (size(trace) - ends(trace)) / 3
    run(*(url if word == "TRACE" else word for word in command))
    again = fetched_bytes() - before - ends(trace) - spent
    small = sum((trace / name).stat().st_size for name in (HEADER_NAME, MANIFEST_NAME))
    assert again <= 2 * small  # what was fetched of the log stays


def test_a_unit_costs_what_its_jobs_take_and_is_judged_alike(
    url: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker of a cluster does, which has nothing of the trace yet."""
    here, there = TraceReader(trace), TraceReader(url)
    era, context = resolve_era(here, None, None), run_context_of(here)
    unit = next(f for f in families(here) if f.jobs and f.jobs[0][0] == NAMESPACE)
    expected = JudgeUnits(
        PartitionedJudge(here, era, lambda: context, Inline()).source, era, context, built=True
    )
    source = PartitionedJudge(there, era, lambda: context, Inline()).source
    assert source.trace == url
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "of a worker"))
    partitioned._reader.cache_clear()
    before = fetched_bytes()
    found = JudgeUnits(source, era, context, built=True)
    one, other = (decoded_of(work.do(unit)) for work in (found, expected))
    assert one == other
    assert one[1]
    spent = fetched_bytes() - before - ends(trace)
    assert 0 < spent < (size(trace) - ends(trace)) / 5


def decoded_of(content: bytes) -> tuple[object, object]:
    found, rest = decoded(content)
    return found.jobs, [*found.judgements, *rest.to_pylist()]


def test_a_time_costs_its_own_row_groups(url: str, trace: Path) -> None:
    reader = TraceReader(trace)
    times = reader.table(("recv_ns",))["recv_ns"].to_pylist()
    until = times[len(times) // 10]
    count = sum(at <= until for at in times)
    words = ("SELECT count(*) AS n FROM observations", "--to", format_rfc3339(until), "-o", "csv")
    found = run("sql", url, *words)
    assert found.output == run("sql", str(trace), *words).output
    assert abs(int(found.output.split()[1]) - count) <= 1


@pytest.mark.usefixtures("url")
def test_a_row_group_that_is_damaged_in_the_bucket_is_named_when_it_is_read(
    s3: S3, trace: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(trace, broken)
    path = live_segments(broken)[0].path
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    s3.put(broken, "bucket/broken")
    reader = TraceReader("s3://bucket/broken")
    with pytest.raises(TraceFormatError, match="its row group 0 is not what was written"):
        list(reader.batches())
    assert list(reader.batches(("raw",), namespace=NAMESPACE))
    reader.snapshot.verify()
    assert path.name in reader.problems[0]
    told = run("sql", "s3://bucket/broken", "-n", NAMESPACE, "SELECT count(*) AS n FROM jobs")
    assert path.name in told.stderr


def test_a_file_that_is_gone_when_its_rows_are_read_is_one_sentence(
    s3: S3, url: str, trace: Path
) -> None:
    reader = TraceReader(url)
    name = live_segments(trace)[0].path.name
    s3.delete(f"bucket/{trace.name}/log/{name}")
    with pytest.raises(TraceFormatError, match=f"{url} has lost log/{name} since it was opened"):
        list(reader.batches())


def test_what_was_spoilt_in_the_copy_is_fetched_again(url: str, trace: Path) -> None:
    copy = local_trace(url)
    whole = TraceReader(url).table()
    path = live_segments(copy)[0].path
    content = bytearray(path.read_bytes())
    assert content == live_segments(trace)[0].path.read_bytes()
    content[100] ^= 1
    path.write_bytes(content)
    assert TraceReader(url).table().equals(whole)
    assert path.read_bytes() == live_segments(trace)[0].path.read_bytes()


def test_a_directory_that_is_no_copy_of_this_process_asks_nobody(trace: Path) -> None:
    """Whatever lies in it: where a trace comes from is the user's word alone."""
    (trace / mirror.STATE_NAME).write_text("{}")
    assert place.origin_of(trace) is None
    (trace / mirror.STATE_NAME).unlink()


def test_where_the_rest_of_a_file_begins(trace: Path) -> None:
    for segment in live_segments(trace):
        content = segment.path.read_bytes()
        file = SegmentFile(segment)
        assert file._footer.seal is not None
        rest = file._footer.seal.rest.offset
        assert rest_offset(content, len(content)) == rest
        assert rest_offset(content[-8:], len(content)) >= rest
        assert rest_offset(content[:-1], len(content)) == 0
        file.close()


def test_a_footer_that_says_nonsense_is_no_hole() -> None:
    for end in (b"", b"PAR1", b"\xff\xff\xff\xffPAR1", bytes(100) + b"\x10\0\0\0PAR1"):
        assert rest_offset(end, len(end)) == 0
