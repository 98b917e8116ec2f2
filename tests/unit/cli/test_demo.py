"""`tracekit demo`: clean without the lie, found with it, and honest where neither holds."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

from tests.support.traces import ROOT, TRACES
from tracekit.cli import demo
from tracekit.cli.main import cli

DATA = ROOT / "tracekit" / "cli" / "demo_trace"


def _run(*arguments: str):
    return CliRunner().invoke(cli, ["demo", *arguments], standalone_mode=False)


def test_it_shows_a_clean_trace_and_a_lie_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = _run()
    assert done.exception is None
    before, _, after = done.stdout.partition("\nThey do,")
    assert before.rstrip().endswith("\nno divergence")
    assert "DIFFERENT status-update of Job t-fixed-completions/three" in after
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_what_it_keeps_is_judged_as_it_showed(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    shown = _run("-o", str(place)).stdout
    for name, status in (("real", 0), ("lie", 1)):
        again = CliRunner().invoke(
            cli, ["replay", str(place / name), "--diff"], standalone_mode=False
        )
        assert again.return_value == status
        assert again.stdout in shown
    refused = _run("-o", str(place))
    assert "is there already" in str(refused.exception)


@pytest.mark.full
def test_a_lie_that_is_not_found_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def all_of(lines, out) -> str:
        out.writelines(lines)
        return "none"

    monkeypatch.setattr(demo, "_without_a_pod", all_of)
    failed = _run("-o", str(tmp_path / "demo"))
    assert isinstance(failed.exception, demo.DemoError)


@pytest.mark.full
def test_a_real_trace_with_a_divergence_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    edited = io.StringIO()
    demo._without_a_pod(demo._lines(DATA / "watch.jsonl.zst"), edited)
    packed = zstandard.ZstdCompressor().compress(edited.getvalue().encode())
    (tmp_path / "watch.jsonl.zst").write_bytes(packed)
    (tmp_path / "about.json").write_bytes((DATA / "about.json").read_bytes())
    monkeypatch.setattr(demo, "_trace", lambda: tmp_path)
    failed = _run("-o", str(tmp_path / "demo"))
    assert isinstance(failed.exception, demo.DemoError)


def test_the_trace_in_the_package_is_small_and_a_real_one() -> None:
    for name in ("watch.jsonl.zst", "about.json"):
        assert (DATA / name).read_bytes() == (TRACES / "v1.36.3-all" / name).read_bytes()
    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 300 << 10
