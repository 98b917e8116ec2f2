"""Every number and time of every kind at every edge, asked with every verb.

docs/trust.md: "A fault of tracekit's own is exit status 2 and one sentence, never 1".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.attack.answers import run
from tests.attack.edge_matrix import EDGES, FIELDS, record

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
    ("minimise", "-o", "OUT", "--attempts", "2"),
)  # fmt: skip
FEW = (
    ("diagnose",),
    ("jobs", "-o", "wide"),
    ("explain", "CRONJOB"),
    ("export", "--format", "otlp"),
)


def asked(
    folder: Path, edge: str, verbs: Sequence[tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """The exit status, and what is said on stderr, of an import and of questions about it."""
    rows = record(EDGES[edge])
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


def named(rows: Sequence[dict], kind: str, number: int) -> str:
    metas = [row["object"].get("metadata", {}) for row in rows if row["resource"] == kind]
    return sorted({f"{m['namespace']}/{m['name']}" for m in metas if "namespace" in m})[number]


def check(folder: Path, edge: str, verbs: Sequence[tuple[str, ...]]) -> None:
    for words, code, said in asked(folder, edge, verbs):
        assert "fault of tracekit" not in said, (words, said)
        assert "Traceback" not in said, (words, said)
        assert "not enough memory" not in said, (words, said)
        nothing_wrong = words[0] == "minimise" and "divergence" in said
        # A row with NaN in it is no JSON, so there may be no row of the Job, nor of any CronJob.
        nothing_wrong |= words[0] == "compare" and "only what belongs to it was seen" in said
        nothing_wrong |= words[0] == "cron" and "has no CronJob that can be read, and" in said
        assert code in (0, 1) or nothing_wrong, (words, said)


@pytest.mark.parametrize("edge", ["1", str(2**63 - 1), "year-9999", "list"])
def test_a_handful(tmp_path: Path, edge: str) -> None:
    check(tmp_path, edge, FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("edge", EDGES)
def test_each_edge(tmp_path: Path, edge: str) -> None:
    check(tmp_path, edge, VERBS)


@pytest.mark.full
def test_the_fields_are_there() -> None:
    """Else a field that was renamed, or misspelt here, would be asked for in vain."""
    rows = json.dumps(record(4711))
    for kind, fields in FIELDS.items():
        for field in fields:
            *_, last = field.split(".")
            assert f'"{last}": 4711' in rows, (kind, field)
