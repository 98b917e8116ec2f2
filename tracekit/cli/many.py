"""One question to many traces: each is a task, whose answer is kept as a part.

A trace of a cluster's hour needs no other: so the tasks go to whatever workers there are, and a run
that was cut goes on with the traces that it has no answer of yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

import orjson
from msgspec import Struct

from tracekit.base.errors import TracekitError, UsageError
from tracekit.base.time_input import TimeRange
from tracekit.cli.damage import note_damage
from tracekit.cli.executor_options import executor_of, parts_of
from tracekit.cli.messages import tell, tell_all
from tracekit.cli.trace_options import absolute
from tracekit.judge.executors.inline import Inline
from tracekit.judge.executors.processes import cores
from tracekit.judge.executors.tasks import Executor, Lost
from tracekit.judge.verdict_cache import code_digest
from tracekit.report.table import counted
from tracekit.trace.format.limits import lifted
from tracekit.trace.stores.parts import Parts
from tracekit.trace.stores.rotated import overlapping
from tracekit.trace.stores.stamps import stamp_of

#: A store that fails for a moment is asked again.
_TRIES: Final = 3

Document = dict[str, Any]


def without(namespace: str) -> Document:
    """The document about a trace that has no such namespace."""
    return {"left_out": f"it has no namespace {namespace}"}


class Question(Protocol):
    """What is asked about each trace; its text tells it from every other question."""

    #: The folder of its parts.
    run: ClassVar[str]

    @property
    def no_limits(self) -> bool:
        """Whether traces may be as large as they like."""
        ...

    def answer(self, word: str) -> Document:
        """The document about one trace."""
        ...


class Answering(Struct, frozen=True):
    """The work on traces."""

    question: Question
    parts: Parts | None
    code: str

    def do(self, word: str) -> bytes:
        """The document about one trace; where there is none, the sentence that says why."""
        from tracekit.judge.partitioned import check_code  # noqa: PLC0415 - slow to import

        check_code(self.code)
        for left in reversed(range(_TRIES)):
            try:
                return self._answer(word)
            except (TracekitError, OSError) as error:
                if not left or not isinstance(error, TracekitError):
                    return orjson.dumps({"trace": word, "error": str(error)})
        raise AssertionError

    def _answer(self, word: str) -> bytes:
        name, run = "", self.question.run
        if self.parts is not None:
            printed = repr((word, stamp_of(word), self.question, self.code))
            name = f"{hashlib.blake2b(printed.encode(), digest_size=16).hexdigest()}.json"
            known = self.parts.read(run, name)
            if known is not None and _is_whole(known):
                return known
        with lifted(on=self.question.no_limits):
            document = {"trace": word, **self.question.answer(word)}
        answer = orjson.dumps(document)
        if self.parts is not None:
            try:
                self.parts.write(run, name, answer)
            except TracekitError as error:  # what was found is an answer all the same
                return orjson.dumps({**document, "unkept": str(error)})
        return answer


def _is_whole(content: bytes) -> bool:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and "trace" in found and "error" not in found


def ask(
    traces: Sequence[str], question: Question, executor: Executor, parts: Parts | None
) -> list[Document]:
    """The documents about the traces, in their order."""
    work = Answering(question, parts, code_digest())
    found: dict[str, Document] = {}
    for outcome in executor.run(work, list(traces), lambda _: ()):
        if isinstance(outcome, Lost):
            found[outcome.task] = {"trace": outcome.task, "error": f"{outcome.task}: {outcome.why}"}
        else:
            found[outcome.task] = orjson.loads(outcome.result)
    return [found[trace] for trace in traces]


def ask_executor(
    traces: Sequence[str],
    question: Question,
    *,
    processes: int | None,
    scheduler: str | None,
    parts: str | None,
) -> list[Document]:
    """The same by those whom the command line names."""
    with executor_of(processes or min(cores(), len(traces)), scheduler, len(traces)) as executor:
        return ask(traces, question, executor or Inline(), parts_of(parts, scheduler))


def of_that_time(traces: Sequence[str], times: Mapping[str, Any]) -> tuple[list[str], TimeRange]:
    """The traces that may hold something of the time that is asked for; it must be absolute."""
    within = absolute(times)
    if within is None:
        raise UsageError(
            "several traces have several ends: say --from and --to as times, like "
            "2026-11-21T05:42:45Z"
        )
    found, left_out = overlapping(traces, within.from_ns, within.until_ns)
    if not found:
        raise UsageError(f"none of the {len(traces)} traces was recorded then: ask another time")
    if left_out:
        tell(f"{counted(left_out, 'trace')} of other times: not read")
    return found, within


def tell_troubles(documents: Sequence[Document]) -> None:
    """Say what of the traces could not be read, or kept; the exit status is 2 then."""
    printed: set[str] = set()
    if all("left_out" in document for document in documents):
        note_damage()  # an answer about nothing would be no answer
        tell("none of the traces holds what is asked about: name another part, or other traces")
    for document in documents:
        printed = tell_all(document.get("warnings", ()), printed)
        wrong = [text for text in (document.get("error"), document.pop("unkept", None)) if text]
        for problem in (*document.get("problems", ()), *wrong):
            note_damage()
            printed = tell_all([problem], printed)
