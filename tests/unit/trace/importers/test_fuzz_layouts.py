"""Layouts of audit logs and of what kubectl prints, turned round, doubled, spliced, cut and recoded.

What goes in is kept, or a problem names that something is left out, or one sentence refuses it.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
import zstandard

from tests.unit.trace.importers.test_fuzz import compact, objects
from tests.unit.trace.importers.test_wrappers import SHAPES, entries, wrapped
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.containers import joined
from tracekit.trace.importers.kubectl import CUT_OBJECT
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.importers.source import _decoded
from tracekit.trace.reading.reader import TraceReader

Raw = dict[str, Any]
COUNT = 12
PACKED: tuple[Callable[[bytes], bytes], ...] = (
    bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress,
)  # fmt: skip
ENCODED = ("utf-8", "utf-8-sig", "utf-16")
#: Problems that name no loss.
KEPT = ("kept", "receive time", "begins without a list", "out of order", "repeat the revision",
        "numeric resourceVersion")  # fmt: skip


@cache
def events() -> list[Raw]:
    """Answered writes of Jobs and pods, each with the object."""
    found = [
        e for e in entries()
        if (e.get("objectRef") or {}).get("resource") in ("jobs", "pods")
        and isinstance(e.get("responseObject"), dict)
        and e["responseObject"].get("kind") in ("Job", "Pod")
    ]  # fmt: skip
    return found[:COUNT]


def as_list(given: list[Raw], *, indent: int | None) -> str:
    return json.dumps(
        {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": given}, indent=indent
    )


def lines(given: list[Raw]) -> str:
    return "".join(compact(obj).decode() + "\n" for obj in given)


PRINTED: dict[str, Callable[[list[Raw]], str]] = {
    "a list": lambda given: as_list(given, indent=None),
    "a pretty list": lambda given: as_list(given, indent=4),
    "lines": lines,
    "pretty objects": lambda given: "".join(json.dumps(o, indent=4) + "\n" for o in given),
    "an array": json.dumps,
    "jsonpath": lambda given: " ".join(json.dumps(o) for o in given),
    "a watch": lambda given: lines([{"type": "ADDED", "object": o} for o in given]),
    "YAML": lambda given: "".join("---\n" + yaml.safe_dump(o) for o in given),
    "a list in YAML": lambda given: yaml.safe_dump(json.loads(as_list(given, indent=None))),
}  # fmt: skip


class Kind(NamedTuple):
    """Layouts of one kind, the things in them, what each has once, how many a result kept."""

    things: Callable[[], list[Raw]]
    layouts: dict[str, Callable[[list[Raw]], str]]
    mark: str
    kept: Callable[[ImportResult, Path], int]


def states(_: ImportResult, trace: Path) -> int:
    rows = TraceReader(trace).table(("type", "synthesized")).to_pylist()
    return sum(not r["synthesized"] and not r["type"].startswith(("LIST_", "GAP")) for r in rows)


KINDS = {
    "audit": Kind(
        events,
        {name: (lambda given, name=name: wrapped(name, given)) for name in ("plain", *SHAPES)},
        "auditID",
        lambda result, _: sum(result.shapes.values()),
    ),
    "kubectl": Kind(objects, PRINTED, "resourceVersion", states),
}


def changed(rng: random.Random, kind: Kind, layout: str) -> tuple[bytes, int, bool]:
    """A file, how many things went into it, and whether it may be refused."""
    things = kind.things()
    given = rng.sample(things, rng.randrange(3, len(things))) + rng.choices(
        things, k=rng.randrange(3)
    )
    text, count = kind.layouts[layout](given), len(given)
    is_spliced, is_cut = rng.random() < 0.3, rng.random() < 0.4
    if is_spliced:
        text += "\n" * (not text.endswith("\n"))
        text += kind.layouts[rng.choice(sorted(kind.layouts))](things[:2])
        count += 2
    if is_cut:  # of what is behind the cut nothing can be said
        text = text[: rng.randrange(len(text) // 3, len(text))]
        count = min(count, text.count(kind.mark))
    if rng.random() < 0.3:
        text = text.replace("\n", "\r\n")
    content = text.encode(rng.choice(ENCODED), errors="surrogatepass")
    return rng.choice(PACKED)(content), count, is_spliced or is_cut


def check(seed: str, kind: Kind, layout: str) -> None:
    content, count, may_refuse = changed(random.Random(seed), kind, layout)
    with tempfile.TemporaryDirectory() as folder:
        path, trace = Path(folder) / "source", Path(folder) / "trace"
        path.write_bytes(content)
        try:
            (result,) = import_files(ImportRequest([str(path)], trace))
        except TraceFormatError as error:
            said = str(error)
        else:
            said, kept = "", kind.kept(result, trace)
    if said:
        assert may_refuse, (seed, said)
        assert "\n" not in said
        return
    named = {what: n for what, n in result.problems.items() if not any(k in what for k in KEPT)}
    assert may_refuse or kept <= count, seed
    if kept < count:
        assert named, (seed, kept, count)
        if not may_refuse:
            assert kept + sum(named.values()) >= count, (seed, kept, count, named)


#### What it has found, each by itself ####


def test_parts_of_a_line_with_windows_line_ends_are_one_line() -> None:
    stamp = b"2026-11-21T05:56:42.4Z stdout"
    assert [*joined([stamp + b' P {"a":\r', stamp + b" F 1}\r"])] == [stamp + b' P {"a":1}\r']


def test_colours_are_taken_off_in_every_encoding() -> None:
    coloured = "\x1b[1;39m{\x1b[0m}\n"
    for encoding in ENCODED:
        assert b"".join(_decoded(iter([coloured.encode(encoding)]))) == b"{}\n"


@pytest.mark.parametrize("end", ["", "spec: {}\n", "status:"])
def test_an_object_in_yaml_that_ends_before_its_status_is_cut(tmp_path: Path, end: str) -> None:
    whole, cut = (
        objects()[0],
        "kind: Pod\napiVersion: v1\nmetadata: {name: a, creationTimestamp: x}\n",
    )
    path = tmp_path / "log"
    path.write_text(f"{yaml.safe_dump(whole)}---\n{cut}{end}")
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    assert result.problems[CUT_OBJECT] == 1


EVERY = {"audit": 3, "kubectl": 1}
CASES = [(name, layout) for name, kind in KINDS.items() for layout in kind.layouts]


@pytest.mark.full
@pytest.mark.parametrize("name", KINDS)
def test_each_layout_is_kept_named_or_refused(name: str) -> None:
    for layout in [*KINDS[name].layouts][:: EVERY[name]]:  # `make nightly` has them all
        check(f"{name} {layout}", KINDS[name], layout)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "layout"), CASES)
def test_the_same_for_a_long_time(name: str, layout: str) -> None:
    for _ in range(100):
        check(f"{random.randrange(2**32)}", KINDS[name], layout)
