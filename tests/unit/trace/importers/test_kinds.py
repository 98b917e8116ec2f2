"""Every kind of source refuses what is none of it: one sentence, exit 2, and no trace left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracekit.cli.main import main
from tracekit.trace.importers.kinds import KINDS, recognise
from tracekit.trace.importers.source import LineSource

BAD = {
    "empty": b"",
    "half-a-line": b'{"type": "ADDED", "object": {"kind": "Job", "metadata": {"na',
    "binary": bytes(range(256)) * 40,
    "prose": b"the quick brown fox\njumps over the lazy dog\n" * 30,
    "another-json": b'{"a": 1}\n{"b": [2, 3]}\n' * 20,
    "blanks": b" \n" * 200_000,
    "nesting": b"[" * 20_000,
    "carriage-returns": b"a,b\rc,d\n1,2\n",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_what_is_none_of_a_kind_is_refused_in_a_sentence(
    kind: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "source", tmp_path / "trace"
    source.write_bytes(content)
    with pytest.raises(SystemExit) as end:
        main(["import", kind, str(source), "-o", str(target)])
    assert end.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("tracekit: ")
    assert not target.exists()


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_no_kind_recognises_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(content)
    assert recognise(LineSource(str(path))) is None


@pytest.mark.parametrize("content", [b"", b" \n\t\n" * 100_000], ids=["empty", "blank"])
def test_a_watch_log_without_text_is_said_to_be_so(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    source.write_bytes(content)
    with pytest.raises(SystemExit):
        main(["import", "watch", str(source), "-o", str(tmp_path / "trace")])
    why = "nothing but white space" if content else "is empty"
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("words", [["import"], ["import", "audit"]])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "nothing but white space"),
        (BAD["blanks"], "begins with 256 KiB of white space"),
        (BAD["half-a-line"], "cut off"),
        (rb'{"kind": "List", "items": [{"kind": "Job", "a": "\ud83d"}]}', "half a character"),
        (b"[" * 2000 + b"]" * 2000, "nested more than 200 levels deep"),
        (None, "does not exist"),
    ],
    ids=["empty", "blank", "blanks", "cut", "half", "deep", "missing"],
)
def test_a_file_that_holds_nothing_whole_is_said_to(
    words: list[str],
    content: bytes | None,
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = tmp_path / "source"
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(SystemExit):
        main([*words, str(source), "-o", str(tmp_path / "trace")])
    assert why in capsys.readouterr().err
