"""Verdicts as the findings ask for them, out of columns: objects are made of those asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.answers.judgements import Judgements, Key
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.verdict import DIVERGENT, Judgement, ObjectRef, Reason, Verdict

#: The columns of `internal._verdicts` that they are made of.
VERDICT_COLUMNS = (
    *("controller", "kind", "namespace", "name", "uid", "action", "verdict", "time_ns"),
    *("resource_version", "subject", "why", "fields", "lag_observations", "lag_ns", "reason"),
)
_VERDICTS = {verdict.value: verdict for verdict in Verdict}
#: Between the parts of a key: in no name of an object.
_SLASH = "/"


class KeptJudgements(Judgements):
    """All verdicts of a trace, by time, with the columns `VERDICT_COLUMNS`."""

    def __init__(self, rows: pa.Table, misfit: str = "") -> None:
        """`misfit`: how the record as a whole contradicts the rules."""
        self.misfit = misfit
        self._rows = rows

    def everything(self) -> Sequence[Judgement]:
        """All of them."""
        return [*_built(self._rows)]

    def with_verdicts(self, verdicts: Collection[Verdict]) -> Sequence[Judgement]:
        """Those with one of some verdicts."""
        wanted = pa.array(sorted(verdict.value for verdict in verdicts), pa.string())
        return [*_built(self._rows.filter(pc.is_in(self._rows["verdict"], value_set=wanted)))]

    def of_write(self, key: Key, action: str, subject: str) -> Sequence[Judgement]:
        """Those about such a write by an object of that namespace and name, of any kind."""
        wanted = [*self._places(key, action, subject)]
        return [*_built(self._rows.take(wanted))] if wanted else ()

    def verdict_of(self, key: Key, action: str, subject: str) -> Verdict | None:
        """The verdict of the first of those; None if there is none."""
        verdicts = self._writes[2]
        return next((_VERDICTS[verdicts[at]] for at in self._places(key, action, subject)), None)

    def _places(self, key: Key, action: str, subject: str) -> Iterator[int]:
        order, places = self._by_object
        begin, count = places.get(_SLASH.join(key), (0, 0))
        actions, subjects, _ = self._writes
        for at in order[begin : begin + count]:
            if subjects[at] == subject and actions[at] == action:
                yield at

    def naming(self, keys: Collection[Key]) -> Sequence[Judgement]:
        """Those whose object, or what was acted upon, has a name of one of these, maybe others."""
        names = pa.array(sorted({name for _, name in keys}), pa.string())
        rows = self._rows
        named = (pc.is_in(rows[column], value_set=names) for column in ("name", "subject"))
        return [*_built(rows.filter(pc.or_(*named)))]

    def times_of(self, controller: str) -> Sequence[int]:
        """When a controller wrote as its rules have it, Unix ns, ascending."""
        rows = self._rows
        others = (*DIVERGENT, Verdict.FOREIGN)
        out = pa.array(sorted(verdict.value for verdict in others), pa.string())
        ours = pc.and_not(
            pc.equal(rows["controller"], controller), pc.is_in(rows["verdict"], value_set=out)
        )
        found: list[int] = rows["time_ns"].filter(ours).to_pylist()
        return sorted(found)

    @cached_property
    def _writes(self) -> tuple[list[str], list[str], list[str]]:
        """What was done to what, and whether it should have been, by row."""
        action, subject, verdict = (
            self._rows[name].to_pylist() for name in ("action", "subject", "verdict")
        )
        return action, subject, verdict

    @cached_property
    def _by_object(self) -> tuple[list[int], dict[str, tuple[int, int]]]:
        """The places of rows, those of an object beside each other, and where its own begin."""
        rows = self._rows
        keys = pc.binary_join_element_wise(rows["namespace"], rows["name"], _SLASH)
        encoded = keys.combine_chunks().dictionary_encode()
        order = pc.array_sort_indices(encoded.indices)  # stable: by time for each
        counts = encoded.indices.value_counts()
        size_of = dict(zip(*(part.to_pylist() for part in counts.flatten()), strict=True))
        places: dict[str, tuple[int, int]] = {}
        begin = 0
        for number, key in enumerate(encoded.dictionary.to_pylist()):
            places[key] = begin, size_of[number]
            begin += size_of[number]
        return order.to_pylist(), places


def _built(rows: pa.Table) -> Iterator[Judgement]:
    return map(_judgement, *(rows[name].to_pylist() for name in VERDICT_COLUMNS))


def _judgement(
    controller: str,
    kind: str,
    namespace: str,
    name: str,
    uid: str,
    action: str,
    verdict: str,
    time_ns: int,
    resource_version: str,
    subject: str,
    why: str,
    fields: list[dict[str, Any]] | None,
    lag_observations: int,
    lag_ns: int,
    reason: str | None,
) -> Judgement:
    return Judgement(
        controller,
        ObjectRef(kind, namespace, name, uid),
        action,
        _VERDICTS[verdict],
        time_ns,
        resource_version,
        subject,
        why,
        tuple(
            FieldDifference(f["path"], orjson.loads(f["expected"]), orjson.loads(f["observed"]))
            for f in fields or ()
        ),
        lag_observations,
        lag_ns,
        Reason(reason) if reason is not None else None,
    )
