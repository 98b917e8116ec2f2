"""The pages of docs/incidents: what they show is what the commands print, and the verdicts hold."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.docs.console import Console, examples, is_shown
from tests.support.traces import CONTROLLERS, ROOT, TRACES, audited_writes
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.report import DiffReport
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Judge, resolve_era
from tracekit.judge.run_context import run_context_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.job import JobRules

PAGES = ROOT / "docs" / "incidents"
INDEX = PAGES / "README.md"
INCIDENTS = TRACES / "incidents"
NAMES = sorted(path.parent.name for path in INCIDENTS.glob("*/about.json"))
EXPLAINED = (Verdict.MATCH, Verdict.MATCH_LAGGED)
#: Bytes that a trace may take in the checkout: it shows one thing.
TRACE_BYTES_MAX = 64 << 10


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with the incidents' traces in it, where caches may be written."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(
        INCIDENTS, root / "traces" / "incidents", ignore=shutil.ignore_patterns("cache")
    )
    return root


def _pages() -> list[Path]:
    return sorted(path for path in PAGES.glob("*.md") if path != INDEX)


@pytest.mark.parametrize("page", _pages(), ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(
    page: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    console = Console()
    found = list(examples(page))
    assert len(found) >= 4
    for example in found:
        printed = console.run(example.command)
        assert is_shown(example.shown, printed), (
            f"{page.name}: {example.command}\nprints\n" + "\n".join(printed)
        )


@pytest.fixture(scope="module", params=NAMES)
def judged(request: pytest.FixtureRequest) -> tuple[str, DiffReport]:
    reader = TraceReader(INCIDENTS / request.param)
    return request.param, Judge(reader, resolve_era(reader, None, None)).report()


def test_nothing_diverges_on_an_incident(judged: tuple[str, DiffReport]) -> None:
    name, report = judged
    assert [(j.object.name, j.action, j.verdict, j.why) for j in report.divergences] == [], name


def test_what_is_explained_is_what_the_audit_log_counts(judged: tuple[str, DiffReport]) -> None:
    name, report = judged
    explained = Counter(
        j.action for j in report.judgements if j.controller == "job" and j.verdict in EXPLAINED
    )
    patches = ("finalizer-removal", "pod-adopt", "pod-release")
    counted = Counter({k: n for k, n in explained.items() if k not in patches})
    counted["pod-patch"] = sum(explained[kind] for kind in patches)
    assert +counted == +audited_writes(INCIDENTS / name, CONTROLLERS["job"]), name


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_is_small_and_on_a_page(name: str) -> None:
    folder = INCIDENTS / name
    about = json.loads((folder / "about.json").read_text())
    header = json.loads((folder / "trace.json").read_text())
    assert header["kubernetes_version"] == about["gitVersion"]
    files = [p for p in folder.rglob("*") if p.is_file() and "cache" not in p.parts]
    assert sum(path.stat().st_size for path in files) <= TRACE_BYTES_MAX
    on_pages = [page for page in _pages() if f"`traces/incidents/{name}`" in page.read_text()]
    assert len(on_pages) == 1
    thread = about["incident"].rpartition("/")[2]
    assert f"[#{thread}]({about['incident']})" in on_pages[0].read_text()
    assert f"`{name}`" in INDEX.read_text()


def test_the_index_has_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w-]+)\.md\)", INDEX.read_text()))
    assert linked == {page.stem for page in _pages()}


def test_the_checker_of_the_pages_can_say_no() -> None:
    printed = ["a", "b", "c", "d"]
    assert is_shown(["a", "…", "d"], printed)
    assert is_shown(["…", "b", "…"], printed)
    assert is_shown(printed, printed)
    for wrong in (
        ["a", "d"],
        ["…", "c"],
        ["b", "…"],
        ["a", "…", "x", "…", "d"],
        ["…", "c", "b", "…"],
    ):
        assert not is_shown(wrong, printed)


def test_a_pod_that_the_ending_sync_did_not_know_is_owed_nothing() -> None:
    """A finished Job hands the pods in its cache to the orphan worker; a later one stays as it is."""
    reader = TraceReader(INCIDENTS / "counted-twice")
    around = run_context_of(reader)
    longer = replace(around, end_ns=around.end_ns + 60 * NS_PER_S)
    groups = reader.groups(COLUMNS, namespace="t-counted-twice")
    (judged,) = judge_groups(groups, JobRules.of(resolve_era(reader, None, None)), longer)
    assert [j for j in judged.judgements if j.verdict is Verdict.MISSING] == []
