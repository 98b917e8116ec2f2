"""A folder that is no trace: what its name is answered with is a command that works."""

from pathlib import Path

import pytest

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.header import read_header


def said(folder: Path) -> str:
    with pytest.raises(TraceFormatError) as told:
        read_header(folder)
    return str(told.value).replace(f"{folder}", "F")


def test_what_is_said_of_a_folder_that_is_no_trace(tmp_path: Path) -> None:
    no_trace = "F is not a trace: it has no trace.json; "
    made = "name the directory that `tracekit import` or `tracekit record` wrote"
    assert said(tmp_path) == no_trace + made
    bundle = tmp_path / "namespaces"
    bundle.mkdir()
    (bundle / "pods.json").write_text("{}", encoding="utf-8")
    imported = "make one of it with `tracekit import F -o run`, then name run"
    assert said(tmp_path) == f"{no_trace}if it is a bundle, a dump or logs, {imported}"
    (bundle / "trace.json").write_text("{}", encoding="utf-8")
    assert said(tmp_path) == f"{no_trace}name a trace that lies in it, for example F/namespaces"
