"""Lives for every pod that a run makes, also for those that the record never had.

A pod in a slot of the record gets the life that was seen there. Any other gets an extrapolated one,
by the first rule that finds any: the same index of the same Job (its last attempt), the same Job
(its last pod), the same CronJob, the same template. Each is noted under its rule's name; where no
rule finds a life, or a run goes on after the moment at which a life was cut off, it is noted, too.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tracekit.cluster.pod_life import PodLife, Slot
from tracekit.worlds.lives import SeenLife


@dataclass(frozen=True, slots=True)
class Given:
    """The life that a pod of a run was given, and by which rule."""

    rule: str  # seen, same index, same Job, same CronJob, same template, none
    cut_off_ns: int | None  # nobody saw how it would have gone on after so long


@dataclass(slots=True)
class FilledLives:
    """`cluster.pod_life.Lives` out of a record."""

    seen: Mapping[tuple[str, int | None, int], SeenLife]
    #: Of the lives that were seen to their end the last one by each rule, and by whom it is for.
    _last: Mapping[str, Mapping[Hashable, SeenLife]]
    _by_ordinal: Mapping[tuple[str, int], SeenLife]
    templates: Mapping[str, str]  # job uid -> a text that stands for its template
    given: dict[str, Given] = field(default_factory=dict)  # by the pod's uid

    @classmethod
    def of(cls, lives: Iterable[SeenLife], templates: Mapping[str, str]) -> FilledLives:
        """From the lives of a record."""
        every = list(lives)
        return cls(
            {_place(life.slot): life for life in every},
            _last_by_rule((life for life in every if life.cut_off_ns is None), templates),
            {(life.slot.job_uid, life.slot.ordinal): life for life in every},
            templates,
        )

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        """The life of a pod that was just created."""
        uid = pod["metadata"]["uid"]
        found = self.seen.get(_place(slot))
        if found is not None:
            self.given[uid] = Given("seen", found.cut_off_ns)
            return found.life
        found = self._by_ordinal.get((slot.job_uid, slot.ordinal))
        if found is not None and (
            slot.completion_index is None or found.slot.completion_index is None
        ):
            # Only one of both sides knows of indexes: the place in the row is all they share.
            self.given[uid] = Given("same place in the row", found.cut_off_ns)
            return found.life
        rule, life = self._extrapolated(slot)
        self.given[uid] = Given(rule, None if life is not None else 0)
        return life if life is not None else replace(PodLife(), run_ns=None)

    def _extrapolated(self, slot: Slot) -> tuple[str, PodLife | None]:
        for rule, key in _keys(slot, self.templates):
            life = self._last[rule].get(key)
            if life is not None:
                return rule, life.life
        return "none", None


def _keys(slot: Slot, templates: Mapping[str, str]) -> Iterator[tuple[str, Hashable]]:
    """The rules by which the life of one pod tells of another's, best first: who shares it."""
    if slot.completion_index is not None:
        yield "same index", (slot.job_uid, slot.completion_index)
    yield "same Job", slot.job_uid
    if slot.cron_job:
        yield "same CronJob", (slot.namespace, slot.cron_job)
    template = templates.get(slot.job_uid)
    if template:
        yield "same template", template


def _last_by_rule(
    ended: Iterable[SeenLife], templates: Mapping[str, str]
) -> dict[str, dict[Hashable, SeenLife]]:
    """The last attempt, or the last pod of a row; of equal ones the first."""
    found: dict[str, dict[Hashable, SeenLife]] = {rule: {} for rule in _RULES}
    for life in ended:
        for rule, key in _keys(life.slot, templates):
            known = found[rule].setdefault(key, life)
            if (life.slot.attempt, life.slot.ordinal) > (known.slot.attempt, known.slot.ordinal):
                found[rule][key] = life
    return found


_RULES: Final = ("same index", "same Job", "same CronJob", "same template")


def _place(slot: Slot) -> tuple[str, int | None, int]:
    """Which pod of a Job one is: by index and attempt, else by its place in the row."""
    index = slot.completion_index
    return slot.job_uid, index, slot.attempt if index is not None else slot.ordinal


def template_text(template: Mapping[str, Any]) -> str:
    """A text by which equal templates are known: the spec of their pods."""
    return json.dumps(template.get("spec", {}), sort_keys=True, separators=(",", ":"))
