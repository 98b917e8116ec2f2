"""Source files that lie in object storage: one, a folder of them, compressed, together with others."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.s3 import S3
from tests.unit.trace.importers.audit_logs import TRACES, shipped
from tracekit.cli.main import cli, main
from tracekit.trace.reading.reader import TraceReader

NAME = "v1.36.3-restart"


def run(*args: str):
    return CliRunner().invoke(cli, args, catch_exceptions=False)


def states(path: Path):
    columns = ("stream", "type", "rv", "uid", "actor")
    rows = TraceReader(path).table(columns).to_pylist()
    return sorted(str(row) for row in rows)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    assert run("import", str(TRACES / NAME / "audit.jsonl.zst"), "-o", str(tmp_path / "plain")
               ).exit_code == 0  # fmt: skip
    return tmp_path / "plain"


@pytest.mark.full
def test_a_file_and_a_folder_of_parts(s3: S3, tmp_path: Path, plain: Path) -> None:
    lines = shipped(NAME)
    folder = tmp_path / "logs"
    (folder / "2026" / "11").mkdir(parents=True)
    (folder / "whole.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
    s3.put(folder, "whole")
    (folder / "whole.jsonl.gz").unlink()
    (folder / "2026" / "11" / "b.log").write_bytes(b"\n".join(lines[700:]) + b"\n")
    (folder / "2026" / "11" / "a.log.gz").write_bytes(
        gzip.compress(b"\n".join(lines[:800]) + b"\n")
    )
    s3.put(folder, "parts")
    for number, url in enumerate(("s3://whole/whole.jsonl.gz", "s3://parts", "s3://parts/2026/11")):
        target = tmp_path / f"trace-{number}"
        result = run("import", url, "-o", str(target))
        assert result.exit_code == 0, result.output
        assert "recognised as audit" in result.stderr
        assert states(target) == states(plain)


def test_a_snapshot_and_a_trace_beside_it(s3: S3, tmp_path: Path, plain: Path) -> None:
    data = TRACES.parent / "tests" / "data" / "etcd"
    place = tmp_path / "snapshots"
    place.mkdir()
    (place / "db.zst").write_bytes((data / "v1.36.3-db.zst").read_bytes())
    s3.put(place, "etcd")
    s3.put(plain, "traces/plain")
    result = run("import", "etcd", "s3://etcd/db.zst", "-o", str(tmp_path / "t"))
    assert result.exit_code == 0, result.output
    log = TRACES / NAME / "watch.jsonl.zst"
    both = run("import", str(log), "--with", "s3://traces/plain", "-o", str(tmp_path / "both"))
    assert both.exit_code == 0, both.output
    assert "learned who wrote them" in both.stderr


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://parts/none.log", "does not exist"),
        ("s3://nowhere/audit.log", "does not exist"),
        ("s3://parts/note.txt", "none of the files in s3://parts/note.txt can be imported"),
    ],
)
def test_what_is_not_there_is_said(s3: S3, tmp_path, capsys, url: str, words: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "note.txt").write_text("nothing of the kind")
    s3.put(folder, "parts")
    with pytest.raises(SystemExit) as ended:
        main(["import", url, "-o", str(tmp_path / "t")])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
