"""Archives that are not what they should be: what is whole is taken, the rest is said in a sentence.

docs/trust.md: "what is whole is taken".
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attack.answers import is_refusal, run
from tests.support.watchlog import job

BLOCK = tarfile.BLOCKSIZE
LIST = json.dumps({
    "apiVersion": "v1", "kind": "List",
    "items": [{"apiVersion": "batch/v1", "kind": "Job", **job("taken", 5)}],
}).encode()  # fmt: skip


def entry(archive: tarfile.TarFile, name: str, data: bytes = LIST, **members: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for member, value in members.items():
        setattr(info, member, value)
    archive.addfile(info, io.BytesIO(data))


def linked(archive: tarfile.TarFile, name: str, kind: bytes, to: str = "") -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    archive.addfile(info)


def tar(*entries: Callable[[tarfile.TarFile], None]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for add in entries:
            add(archive)
    return out.getvalue()


def zipped(*names: str, data: bytes = LIST) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return out.getvalue()


def whole(archive: tarfile.TarFile) -> None:
    entry(archive, "b/jobs.json")


def sparse(**headers: str) -> bytes:
    """A file with holes, whose map of them is in its data: no number where numbers must be."""
    members = {f"GNU.sparse.{name}": value for name, value in headers.items()}
    data = b"two\n".ljust(BLOCK, b"\0") + LIST
    return tar(whole, lambda archive: entry(archive, "b/s.json", data, pax_headers=members))


def mended(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def claimed(name: str, kind: bytes, size: int) -> bytes:
    """The head of a file that says to be so large."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def holes(blocks: int) -> bytes:
    """A file of GNU's old kind with a map of its holes that goes on for so many blocks."""
    head = bytearray(claimed("b/s.json", tarfile.GNUTYPE_SPARSE, 0))
    head[482] = 1
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    holes = b"00000000001\0" * 42
    return bytes(head) + (holes + b"\1" + bytes(7)) * blocks


#: More than any header needs, and far less than it could be.
MANY = 4 << 20
SPARSE = {"major": "1", "minor": "0", "name": "b/s.json", "realsize": "9"}
#: What is whole comes before what is not, and is taken.
TAKEN: dict[str, bytes] = {
    "a name that is no UTF-8": tar(
        whole, lambda archive: entry(archive, "b/\udcff.json", b'{"kind":"Job"')
    ),
    "holes that are no numbers": sparse(**SPARSE),
    "more holes than it has bytes": sparse(map="0,1,2", size="9" * 20, numblocks="1"),
    "links and devices": tar(
        lambda archive: linked(archive, "b/l.json", tarfile.SYMTYPE, "/etc/passwd"),
        lambda archive: linked(archive, "b/h.json", tarfile.LNKTYPE, "/etc/passwd"),
        lambda archive: linked(archive, "b/k.json", tarfile.LNKTYPE, "b/k.json"),
        lambda archive: linked(archive, "b/zero.json", tarfile.CHRTYPE),
        lambda archive: linked(archive, "b/pipe.json", tarfile.FIFOTYPE),
        whole,
    ),
    "places outside": tar(
        lambda archive: entry(archive, "../../escaped.json"),
        lambda archive: entry(archive, "/tmp/escaped.json"),  # noqa: S108 - not to be written
        whole,
    ),
    "a name to obey": tar(
        whole, lambda archive: entry(archive, "b/\x1b]0;owned\x07\nforged.json", b'{"kind":"Job"')
    ),
    "two times that are none": tar(
        lambda archive: entry(archive, "b/a.json", pax_headers={"mtime": "nan"}),
        lambda archive: entry(archive, "b/b.json", pax_headers={"mtime": "1e400"}),
    ),
}
DEFLATED = zipped("j.json")
#: Nothing in it is whole.
REFUSED: dict[str, bytes] = {
    "bytes that do not decompress": mended(DEFLATED, len("j.json") + 31, b"\xff\xff\xff\xff"),
    "another way to compress": mended(
        mended(DEFLATED, 8, b"\x61"), DEFLATED.rindex(b"PK\x01\x02") + 10, b"\x61"
    ),
    "a password": mended(
        mended(DEFLATED, 6, b"\x01"), DEFLATED.rindex(b"PK\x01\x02") + 8, b"\x01"
    ),
    "a place before its beginning": mended(DEFLATED, len(DEFLATED) - 6, b"\xff\xff\xff\xff"),
    "a size of 8 EiB": mended(
        tar(whole), 124, b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"
    )[:BLOCK],
    "headers without a file": tar(lambda archive: linked(archive, "g", b"g"))[:BLOCK] * 3_000
    + tar(whole),
    **{
        f"a header of type {kind.decode()} without an end": claimed("x", kind, MANY)
        + b"a" * MANY + tar(whole)
        for kind in (b"L", b"K", b"x", b"g")
    },
    "holes without an end": holes(MANY // BLOCK) + tar(whole),
    "a hidden file of 4 EiB": claimed("b/.s.json", tarfile.REGTYPE, 1 << 62),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_whole_is_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    archive = tmp_path / "in" / "bundle.tar"
    archive.write_bytes(TAKEN[name])
    code, _, said = run("import", str(archive), "-o", str(tmp_path / "trace"))
    assert (code, "fault of tracekit" in said) == (0, False), said
    assert not {c for c in said if not c.isprintable()} - {"\n"}
    assert not [line for line in said.splitlines() if line.startswith("forged")]
    _, out, _ = run("jobs", str(tmp_path / "trace"), "-o", "jsonl")
    assert '"taken"' in out
    assert {path.name for path in tmp_path.rglob("*.json")} == {"trace.json", "manifest.json"}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_is_said(tmp_path: Path, name: str) -> None:
    archive = tmp_path / ("bundle.zip" if REFUSED[name][:2] == b"PK" else "bundle.tar")
    archive.write_bytes(REFUSED[name])
    answer = run("import", str(archive), "-o", str(tmp_path / "trace"))
    assert is_refusal(answer), answer
    assert "fault of tracekit" not in answer[2]
    assert "end too early or are damaged" in answer[2]
    assert "<ZipInfo" not in answer[2]
    assert "recursion" not in answer[2]


def test_a_capture_of_a_method_that_nobody_has(tmp_path: Path) -> None:
    data = zipped("k8shark-capture/metadata.json", data=b"{}")
    capture = tmp_path / "capture.kshrk"
    capture.write_bytes(mended(data, data.rindex(b"PK\x01\x02") + 6, b"\x7f"))
    answer = run("import", "kshrk", str(capture), "-o", str(tmp_path / "trace"))
    assert is_refusal(answer), answer
    assert "is a broken archive" in answer[2]


@pytest.mark.parametrize("verb", [("info",), ("jobs",), ("replay", "--diff"), ("compact",)])
def test_a_path_that_is_no_text(tmp_path: Path, verb: tuple[str, ...]) -> None:
    """Neither Arrow nor DuckDB can be given one; a stranger's archive can make one."""
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    log = tmp_path / "list.json"
    log.write_bytes(LIST)
    answers = [
        run("import", str(log), "-o", place),
        run(verb[0], place, *verb[1:]),
    ]
    for code, _, said in answers:
        assert code == 2
        assert said.splitlines()[-1].endswith("is not UTF-8: rename it"), said


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE])
def test_entries_that_are_no_files_count(
    kind: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """38 kB of zstd hold 800,000 folders: each is work, though it holds nothing."""
    monkeypatch.setattr("tracekit.trace.importers.gather._ENTRIES_MAX", 3)
    path = tmp_path / "many.tar"
    path.write_bytes(tar(*[lambda archive: linked(archive, "d", kind)] * 4, whole))
    status, _, said = run("import", str(path), "-o", str(tmp_path / "out"))
    assert status == 2
    assert "more than 3 files, folders and links" in said


def test_the_files_of_a_zip_are_counted_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 of 120,000 files were looked at before that was said, 40 s later."""
    gather = "tracekit.trace.importers.gather"
    monkeypatch.setattr(f"{gather}._ENTRIES_MAX", 3)
    looked: list[str] = []
    monkeypatch.setattr(f"{gather}.concerns", lambda _, source: looked.append(source.name))
    path = tmp_path / "many.zip"
    path.write_bytes(zipped(*(f"{n}.json" for n in range(4))))
    status, _, said = run("import", str(path), "-o", str(tmp_path / "out"))
    assert status == 2
    assert "more than 3 files, folders and links" in said
    assert not looked


def test_what_is_no_file_is_counted_and_said(tmp_path: Path) -> None:
    """docs/trust.md: links and devices in a tar were left out without a word, and so were pipes."""
    path = tmp_path / "links.tar"
    path.write_bytes(TAKEN["links and devices"])
    place = tmp_path / "folder"
    place.mkdir()
    os.mkfifo(place / "pipe.json")
    (place / "link.json").symlink_to("/etc/passwd")
    status, _, said = run("import", str(path), "-o", str(tmp_path / "out"))
    assert status == 0
    assert f"5 files that are no plain files left out, for example {path}/b/l.json" in said
    status, _, said = run("import", str(place), "-o", str(tmp_path / "none"))
    assert status == 2
    assert "(1 that are links; 1 that are no plain files)" in said
