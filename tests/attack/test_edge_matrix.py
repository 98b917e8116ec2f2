"""Every number and time of every kind at every edge, asked with every verb.

docs/trust.md: "A fault of tracekit's own is exit status 2 and one sentence, never 1".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.attack.answers import run
from tests.attack.edge_matrix import EDGES, FIELDS, SHAPES, Row, record, record_of, shaped

VERBS: tuple[tuple[str, ...], ...] = (
    ("info", "-o", "json"), ("replay", "--diff"), ("replay", "--diff", "-o", "json"),
    ("replay", "-o", "wide"), ("diagnose",), ("diagnose", "-o", "json"), ("diagnose", "-o", "sarif"),
    ("jobs", "-o", "wide"), ("jobs", "-o", "json"), ("explain", "JOB"), ("explain", "CRONJOB"),
    ("explain", "JOB", "-o", "json"), ("report", "-o", "OUT"), ("export", "--format", "otlp"),
    ("export", "--format", "chrome"), ("export", "--format", "csv"),
    ("export", "--format", "perfetto", "-o", "OUT"), ("sql", "FROM jobs", "-o", "json"),
    ("sql", "FROM attempts", "-o", "json"), ("sql", "FROM cron_ticks", "-o", "csv"),
    ("sql", "FROM observations", "-o", "jsonl"), ("sql", "FROM node_pods"),
    ("sql", "FROM latency_shares"), ("watch", "--once"), ("cron", "lint"), ("who",), ("timeline",),
    ("compare", "JOB", "OTHER"), ("whatif", "--kubernetes-version", "v1.37.1"),
    ("whatif", "--set", "spec.backoffLimit=0"), ("compact",), ("redact", "-o", "OUT"),
    ("minimise", "-o", "OUT", "--attempts", "2"), ("timeline", "-o", "json"), ("timeline", "JOB"),
    ("who", "--object", "JOB"), ("explain", "OTHER", "-v"), ("report", "OTHER", "-o", "OUT"),
    ("compare", "CRONJOB"), ("sql", "FROM causes", "-o", "json"), ("diagnose", "-v"),
    ("upgrade", "--to", "v1.37.1", "--report", "OUT"), ("redact", "--check"),
)  # fmt: skip
#: What `compare` cannot set side by side.
_NAME_OTHERS = (
    "in this trace: name two Jobs",
    "has no uid: what belongs to it is not known, name another",
)
FEW = (
    ("diagnose",),
    ("jobs", "-o", "wide"),
    ("explain", "CRONJOB"),
    ("export", "--format", "otlp"),
)


def asked(
    folder: Path, rows: list[Row], verbs: Sequence[tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """The exit status, and what is said on stderr, of an import and of questions about it."""
    log, trace = folder / "watch.jsonl", folder / "trace"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, said = run("import", "watch", str(log), "-o", str(trace))
    yield ("import",), code, said
    put = {"JOB": named(rows, "jobs", 0), "OTHER": named(rows, "jobs", 3)}
    put["CRONJOB"] = named(rows, "cronjobs", 0)
    for number, (verb, *words) in enumerate(verbs):
        put["OUT"] = str(folder / str(number))
        if verb == "cron":
            code, _, said = run(verb, *words, str(trace))
        else:
            code, _, said = run(verb, str(trace), *(put.get(word, word) for word in words))
        yield (verb, *words), code, said


def named(rows: Sequence[Row], kind: str, number: int) -> str:
    metas = [row["object"].get("metadata") for row in rows if row["resource"] == kind]
    names = [(m.get("namespace"), m.get("name")) for m in metas if isinstance(m, dict)]
    return sorted({"/".join(key) for key in names if all(isinstance(n, str) for n in key)})[number]


def check(folder: Path, rows: list[Row], verbs: Sequence[tuple[str, ...]]) -> None:
    for words, code, said in asked(folder, rows, verbs):
        assert "fault of tracekit" not in said, (words, said)
        assert "Traceback" not in said, (words, said)
        assert "not enough memory" not in said, (words, said)
        nothing_wrong = words[0] == "minimise" and "divergence" in said
        # A row with NaN in it is no JSON, so there may be no row of the Job, nor of any CronJob.
        nothing_wrong |= words[0] == "compare" and "only what belongs to it was seen" in said
        nothing_wrong |= words[0] == "compare" and said.rstrip().endswith(_NAME_OTHERS)
        nothing_wrong |= words[0] == "cron" and "has no CronJob that can be read, and" in said
        assert code in (0, 1) or nothing_wrong, (words, said)


@pytest.mark.parametrize("edge", ["1", str(2**63 - 1), "year-9999", "list"])
def test_a_handful(tmp_path: Path, edge: str) -> None:
    check(tmp_path, record(EDGES[edge]), FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("edge", EDGES)
def test_each_edge(tmp_path: Path, edge: str) -> None:
    check(tmp_path, record(EDGES[edge]), VERBS)


def test_objects_without_names_or_labels(tmp_path: Path) -> None:
    """Two happenings of one instant were not in order; a track of Perfetto has a name.

    And labels that are a text are none.
    """
    placed = [
        ("jobs", "metadata.labels", "x"),
        ("jobs", "spec.template", "x"),
        ("cronjobs", "z", 0),
    ]
    placed += [("pods", "metadata.namespace", []), ("pods", "metadata.name", []), ("jobs", "z", 0)]
    verbs = (("timeline", "-o", "json"), ("export", "--format", "perfetto", "-o", "OUT"))
    check(tmp_path, record_of(placed), (*verbs, ("compare", "e001/wq", "e002/wq")))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(12))
def test_each_shape(tmp_path: Path, part: int) -> None:
    """Of another turn each day: all of them in as many days as there are shapes."""
    turn = int(time.time() // 86400) % len(SHAPES)
    check(tmp_path, record_of(shaped(turn, part, 12)), VERBS)


@pytest.mark.full
def test_the_fields_are_there() -> None:
    """Else a field that was renamed, or misspelt here, would be asked for in vain."""
    rows = json.dumps(record(4711))
    for kind, fields in FIELDS.items():
        for field in fields:
            *_, last = field.split(".")
            assert f'"{last}": 4711' in rows, (kind, field)
