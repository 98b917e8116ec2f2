"""Traces that several tests of this folder ask about, imported once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.traces import TRACES, import_log
from tracekit.answers.whatif.answers import Answers
from tracekit.answers.whatif_traces import Running, Selected, Settings, answer_all
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.cli.main import cli
from tracekit.model.simulate.draws import SeededDraws
from tracekit.model.simulate.run import STREAMS, Row, simulate
from tracekit.model.simulate.workload import flags_of, read_workload, timing_of, world_of
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.era import Era

Import = Callable[[str], Path]


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Import:
    """A shipped trace by its name."""
    known: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in known:
            target: Path = tmp_path_factory.mktemp("whatif") / name
            import_log(TRACES / name / "watch.jsonl.zst", target, name)
            known[name] = target
        return known[name]

    return get


_ANSWERED: dict[tuple[Any, ...], list[Answers]] = {}


def _answer_once(
    reader: TraceReader,
    recorded: Era,
    targets: Sequence[Era],
    selected: Selected,
    settings: Settings,
    running: Running,
) -> list[Answers]:
    """`answer_all`, once for all questions that differ only in how they are printed."""
    key = (reader.path, recorded, tuple(targets), selected, repr(settings), running)
    if key not in _ANSWERED:
        _ANSWERED[key] = answer_all(reader, recorded, targets, selected, settings, running)
    return _ANSWERED[key]


@cache
def ask(trace: Path, *options: str, verb: str = "whatif") -> Result:
    """Run the verb; once for all tests that ask the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracekit.cli.whatif_many.answer_all", _answer_once)
        return CliRunner().invoke(cli, [verb, str(trace), *options], standalone_mode=False)


def answers(trace: Path, *options: str) -> dict[str, Any]:
    """The JSON document of `whatif`."""
    result = ask(trace, *options, "-o", "json")
    assert result.exception is None, result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The Jobs of a document; of several with one name the last."""
    return {f"{job['namespace']}/{job['name']}": job for job in document["jobs"]}


# Records with CronJobs, simulated: a few minutes each.

WORKLOAD = """
duration: {duration}
kubernetesVersion: {version}
cronJobs:
- name: allow
  namespace: shop
  spec: {{schedule: "* * * * *"}}
  pods: {{run: 80s}}
- name: forbid
  namespace: shop
  spec: {{schedule: "* * * * *", concurrencyPolicy: Forbid}}
  pods: {{run: 70s}}
- name: zoned
  namespace: shop
  spec: {{schedule: "TZ=UTC */2 * * * *"}}
  pods: {{run: 2s}}
- name: stubborn
  namespace: shop
  spec:
    schedule: "* * * * *"
    concurrencyPolicy: Forbid
    jobTemplate:
      spec:
        activeDeadlineSeconds: 40
        template:
          spec: {{terminationGracePeriodSeconds: 60}}
  pods: {{run: null, grace: 30s}}
"""


class Records:
    """Simulated records by version, each made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, version: str, duration: str = "5m") -> Path:
        """The record of a control plane of that version."""
        target = self._folder / version
        if not target.exists():
            workload = self._folder / f"{version}.yaml"
            workload.write_text(WORKLOAD.format(version=version, duration=duration))
            asked = ["simulate", "--workload", str(workload), "-o", str(target)]
            made = CliRunner().invoke(cli, asked, standalone_mode=False)
            assert made.exception is None, made.exception
        return target

    def begun_late(self, version: str, after_s: int) -> Path:
        """The same, by a recorder that was started later: it lists what is there by then."""
        target = self._folder / f"{version}-late"
        plan = read_workload(WORKLOAD.format(version=version, duration="6m").encode(), "late")
        world = world_of(plan)
        run = simulate(world, Era.resolve(version), flags_of(plan), SeededDraws(1, timing_of(plan)))
        begin_ns = world.start_ns + after_s * NS_PER_S
        there: dict[tuple[str, str], Row] = {}
        for row in run.rows:
            if row.recv_ns < begin_ns and row.type not in ("LIST_BEGIN", "LIST_END"):
                key = row.stream, str(row.obj["metadata"]["uid"])
                there.pop(key, None)
                if row.type != "DELETED":
                    there[key] = row
        newest = max(int(row.obj["metadata"]["resourceVersion"]) for row in there.values())
        head = {"resourceVersion": str(newest)}
        with TraceWriter(target, TraceHeader(kubernetes_version=version)) as writer:
            for stream in STREAMS:
                writer.append(stream, "LIST_BEGIN", begin_ns, head)
                for (of, _), row in there.items():
                    if of == stream:
                        writer.append(stream, "LIST", begin_ns, row.obj)
                writer.append(stream, "LIST_END", begin_ns, head)
            for row in run.rows:
                if row.recv_ns >= begin_ns:
                    writer.append(row.stream, row.type, row.recv_ns, row.obj)
        return target


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return Records(tmp_path_factory.mktemp("cron-records"))
