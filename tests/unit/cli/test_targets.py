"""Files that verbs write for their user."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from tracekit.base.errors import UsageError
from tracekit.cli.targets import check_free, opened, text_opened


def test_a_link_is_there_also_where_it_leads_nowhere(tmp_path: Path) -> None:
    target = tmp_path / "out"
    check_free(target, force=False)
    target.symlink_to("victim")
    with pytest.raises(UsageError, match="exists: choose another name with --report, or add"):
        check_free(target, force=False, option="--report")
    check_free(target, force=True)


@pytest.mark.parametrize("make", [opened, text_opened])
def test_what_comes_after_the_check_is_not_written_through(make, tmp_path: Path) -> None:
    target, victim = tmp_path / "out", tmp_path / "victim"
    target.symlink_to(victim)
    with (
        pytest.raises(UsageError, match=r"cannot be written \(File exists\)"),
        make(target, force=False),
    ):
        pass
    assert not victim.exists()
    with make(target, force=True):
        pass
    assert victim.exists()
    assert target.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"out", "victim"}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_what_is_not_whole_is_not_there(tmp_path: Path, force: bool, stop: BaseException) -> None:
    target = tmp_path / "out"
    if force:
        target.write_text("before")
    with pytest.raises((UsageError, KeyboardInterrupt)):
        _write_half(target, force, stop)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"] * force


def _write_half(target: Path, force: bool, stop: BaseException) -> None:
    with text_opened(target, force=force) as file:
        file.write("half")
        file.flush()
        assert force == target.exists()
        raise stop


def test_a_pipe_and_a_device_are_written_on(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with text_opened(pipe, force=True) as file:
        file.write("whole")
    reader.join()
    assert read == ["whole"]
    with text_opened(Path("/dev/null"), force=True) as file:
        file.write("nothing")
    assert pipe.is_fifo()
    assert Path("/dev/null").is_char_device()


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    target = tmp_path / "out"
    with text_opened(target, force=False) as file:
        file.write("whole")
    assert target.read_text() == "whole"
    with pytest.raises(UsageError), text_opened(target, force=False) as file:
        file.write("other")
    assert target.read_text() == "whole"


def test_a_file_that_is_mounted_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    target = tmp_path / "out"
    target.write_text("before")
    with text_opened(target, force=True) as file:
        file.write("after")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["after"]
