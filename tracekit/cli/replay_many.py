"""`tracekit replay` of many traces: each one is a task, whose answer is kept as a part.

A trace of a cluster's hour needs no other: so the tasks go to whatever workers there are, the
largest first, and a run that was cut goes on with the traces that it has no answer of yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

import orjson
import pyarrow as pa

from tracekit.crew.tasks import Crew, Lost
from tracekit.errors import TracekitError, UsageError
from tracekit.judging.judged import Asked, Judge, resolve_era
from tracekit.judging.kept import code_digest, verdicts_key
from tracekit.judging.pieces import check_code
from tracekit.report.documents import write_document, write_lines
from tracekit.report.replay import SCHEMA_VERSION, diff_document
from tracekit.report.rows import write_listing
from tracekit.trace.format.limits import lifted
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.parts import Parts
from tracekit.trace.stores.stamps import stamp_of

OUTPUTS: Final = ("table", "json", "jsonl")
#: The folder of parts.
_RUN: Final = "replay"
#: A store that fails for a moment is asked again.
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about each trace."""

    kubernetes_version: str | None
    feature_gates: str | None
    process_zone: str | None
    namespace: str | None
    controllers: tuple[str, ...] | None
    around_damage: bool
    no_limits: bool


@dataclass(frozen=True, slots=True)
class ReplayTraces:
    """The work on traces."""

    question: Question
    parts: Parts | None
    code: str

    def do(self, word: str) -> bytes:
        """The document about one trace; where it cannot be judged, the sentence that says why."""
        check_code(self.code)
        for left in reversed(range(_TRIES)):
            try:
                return self._answer(word)
            except (TracekitError, OSError) as error:
                if not left or not isinstance(error, TracekitError):
                    return orjson.dumps({"trace": word, "error": str(error)})
        raise AssertionError

    def _answer(self, word: str) -> bytes:
        name = ""
        if self.parts is not None:
            told = repr((word, stamp_of(word), self.question, self.code))
            name = f"{hashlib.blake2b(told.encode(), digest_size=16).hexdigest()}.json"
            known = self.parts.read(_RUN, name)
            if known is not None and _is_whole(known):
                return known
        with lifted(on=self.question.no_limits):
            document = self._judged(word)
        answer = orjson.dumps(document)
        if self.parts is not None:
            self.parts.write(_RUN, name, answer)
        return answer

    def _judged(self, word: str) -> dict[str, Any]:
        asked = self.question
        reader = TraceReader(word, on_damage="skip" if asked.around_damage else "raise")
        rules = (asked.kubernetes_version, asked.feature_gates, asked.process_zone)
        era = resolve_era(reader, *rules)
        judge = Judge(reader, era, kept_as=verdicts_key(reader.snapshot, *rules))
        controllers = None if asked.controllers is None else list(asked.controllers)
        wanted = Asked(None, None, controllers)
        if asked.namespace is not None:
            if asked.namespace not in judge.objects.namespaces:
                return {"trace": word, "left_out": f"it has no namespace {asked.namespace}"}
            wanted = Asked(asked.namespace, None, controllers)
        return {
            "trace": word,
            "problems": reader.problems,
            **diff_document(judge.tally(wanted), era),
        }


def _is_whole(content: bytes) -> bool:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and ("summary" in found or "left_out" in found)


def replay_many(
    traces: Sequence[str], question: Question, crew: Crew, parts: Parts | None
) -> list[dict[str, Any]]:
    """The documents about the traces, in their order."""
    work = ReplayTraces(question, parts, code_digest())
    found: dict[str, dict[str, Any]] = {}
    for outcome in crew.run(work, list(traces), lambda _: ()):
        if isinstance(outcome, Lost):
            found[outcome.task] = {"trace": outcome.task, "error": f"{outcome.task}: {outcome.why}"}
        else:
            found[outcome.task] = orjson.loads(outcome.result)
    return [found[trace] for trace in traces]


def write_many(documents: Sequence[dict[str, Any]], output: str, out: TextIO) -> None:
    """Print what was found of each trace."""
    if output == "json":
        answered = {"schema_version": SCHEMA_VERSION, "traces": list(documents)}
        write_document(answered, out)
    elif output == "jsonl":
        write_lines(documents, out)
    elif output == "table":
        rows = [row for document in documents if (row := _row(document)) is not None]
        write_listing(pa.Table.from_pylist(rows, _COLUMNS), out)
    else:
        raise UsageError(f"several traces are printed with -o {', '.join(OUTPUTS)}")


_COLUMNS: Final = pa.schema(
    [
        ("trace", pa.string()),
        *((name, pa.int64()) for name in ("observations", "actions", "explained", "divergences")),
        ("note", pa.string()),
    ]
)


def _row(document: dict[str, Any]) -> dict[str, Any]:
    if "summary" not in document:
        note = document.get("left_out") or document["error"]
        return {"trace": document["trace"], "note": note}
    cells = list(_cells(document))
    return {
        "trace": document["trace"],
        "observations": document["observations"],
        "actions": sum(count for _, count in cells),
        "explained": sum(count for verdict, count in cells if verdict.startswith("match")),
        "divergences": len(document["divergences"]),
    }


def _cells(document: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for actions in document["summary"].values():
        for verdicts in actions.values():
            yield from verdicts.items()
