"""Lives for every pod that a run makes, also for those that the record never had.

A pod in a slot of the record gets the life that was seen there. Any other gets an extrapolated one,
by the first rule that finds any: the same index of the same Job (its last attempt), the same Job
(its last pod), the same CronJob, the same template. A life that was cut off goes on as that of the
first of these that was seen to last longer; how a pod stops that the record never stopped is
extrapolated in the same order. Each is noted under its rule's name; where no rule finds a life, or
nobody saw how it would have gone on, that is noted, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.whatif_inputs.pod_lifetimes import (
    SeenLife,
    fared_alike,
    goes_on_ns,
    lasted_longer,
    succeeded,
)
from tracekit.model.cluster.pod_life import PodLife, Slot

#: So many lives of a group are looked at for one that lasted longer, the last ones.
_LOOKED_AT: Final = 64
#: The rule where only one of both sides knows of indexes.
BY_ROW: Final = "same place in the row"
_Groups = Mapping[str, Mapping[Hashable, list[SeenLife]]]


class Given(Struct, frozen=True):
    """The life that a pod of a run was given, and by which rule."""

    rule: str  # seen, same index, same Job, same CronJob, same template, none
    cut_off_ns: int | None  # it was seen for so long only
    beyond: str = ""  # by which rule it goes on after that; empty: nobody saw how it would
    stops: str = "seen"  # by which rule it stops when it is deleted; none: as pods usually do
    goes_on_ns: int | None = None  # so much longer it surely goes on as it was; None: that is open
    disputed: bool = False  # pods like it were seen to succeed and to fail


@dataclass(slots=True)
class ExtrapolatedLifetimes:
    """`model.cluster.pod_life.PodLifetimes` out of a record."""

    seen: Mapping[tuple[str, int | None, int], SeenLife]
    #: The lives that were seen to their end, by each rule, and by whom they are for; the last last.
    _ended: _Groups
    #: Those that were stopped by a deletion.
    _stopped: _Groups
    _by_ordinal: Mapping[tuple[str, int], SeenLife]
    templates: Mapping[str, str]  # job uid -> a text that stands for its template
    given: dict[str, Given] = field(default_factory=dict)  # by the pod's uid

    @classmethod
    def of(
        cls, lifetimes: Iterable[SeenLife], templates: Mapping[str, str]
    ) -> ExtrapolatedLifetimes:
        """From the lives of a record."""
        every = list(lifetimes)
        return cls(
            {_place(life.slot): life for life in every},
            _by_rule((life for life in every if life.cut_off_ns is None), templates),
            _by_rule((life for life in every if life.stopped), templates),
            {(life.slot.job_uid, life.slot.ordinal): life for life in every},
            templates,
        )

    def life_of(self, slot: Slot, pod: Mapping[str, Any]) -> PodLife:
        """The life of a pod that was just created."""
        uid = pod["metadata"]["uid"]
        found = self.seen.get(_place(slot))
        if found is not None:
            return self._continued(uid, slot, found, "seen")
        found = self._by_ordinal.get((slot.job_uid, slot.ordinal))
        if found is not None and (
            slot.completion_index is None or found.slot.completion_index is None
        ):
            # Only one of both sides knows of indexes: the place in the row is all they share.
            return self._continued(uid, slot, found, BY_ROW)
        rule, other = self._first(self._ended, slot, lambda _: True)
        if other is None:
            self.given[uid] = Given(rule, 0)
            return replace(PodLife(), run_ns=None)
        given = Given(rule, None, disputed=self._disputed(rule, slot))
        return self._stopping(uid, slot, other.life, given, stopped=other.stopped)

    def _disputed(self, rule: str, slot: Slot) -> bool:
        """Whether the last pod failed although others before it had succeeded."""
        key = dict(_keys(slot, self.templates))[rule]
        group = self._ended[rule][key][-_LOOKED_AT:]
        return not succeeded(group[-1]) and any(succeeded(life) for life in group)

    def _continued(self, uid: str, slot: Slot, found: SeenLife, rule: str) -> PodLife:
        """A life that was seen, and how it goes on where it was cut off."""
        life = found.life
        given = Given(rule, found.cut_off_ns, goes_on_ns=goes_on_ns(found))
        if found.cut_off_ns is not None:
            beyond, other = self._first(self._ended, slot, lambda o: lasted_longer(o, found))
            if other is not None:
                given = replace(given, beyond=beyond)
                life = _going_on(found, other)
        return self._stopping(uid, slot, life, given, stopped=found.stopped)

    def _stopping(
        self, uid: str, slot: Slot, life: PodLife, given: Given, *, stopped: bool
    ) -> PodLife:
        """A life with the way in which its like stop when they are deleted."""
        if not stopped:
            rule, other = self._first(self._stopped, slot, lambda _: True)
            given = replace(given, stops=rule)
            if other is not None:
                life = replace(
                    life,
                    grace_ns=other.life.grace_ns,
                    gone_ns=other.life.gone_ns,
                    term_exit_code=other.life.term_exit_code,
                    silent=other.life.silent,
                )
        self.given[uid] = given
        return life

    def _first(
        self, groups: _Groups, slot: Slot, fits: Callable[[SeenLife], bool]
    ) -> tuple[str, SeenLife | None]:
        for rule, key in _keys(slot, self.templates):
            group = groups[rule].get(key, [])[-_LOOKED_AT:]
            if rule == _BY_TEMPLATE and not fared_alike(group):
                continue
            for life in reversed(group):
                if fits(life):
                    return rule, life
        return "none", None


def _going_on(found: SeenLife, other: SeenLife) -> PodLife:
    """A life that was cut off, with the rest of another one."""
    life, rest = found.life, other.life
    cut_off_ns = found.cut_off_ns or 0
    if life.start_ns is None:  # it was still waiting
        if life.bind_ns is None:
            life = replace(life, bind_ns=rest.bind_ns)
        life = replace(life, start_ns=rest.start_ns, ready_ns=rest.ready_ns)
        cut_off_ns = 0
    exits = (*life.exits, *(later for later in rest.exits if later[0] > cut_off_ns))
    return replace(
        life,
        ready_ns=life.ready_ns if life.ready_ns is not None else rest.ready_ns,
        run_ns=rest.run_ns,
        exit_code=rest.exit_code,
        exit_codes=rest.exit_codes,
        restarts_at_ns=tuple(at_ns for at_ns, _ in exits),
        restart_counts=tuple(count for _, count in exits),
    )


def _keys(slot: Slot, templates: Mapping[str, str]) -> Iterator[tuple[str, Hashable]]:
    """The rules by which the life of one pod tells of another's, best first: who shares it."""
    if slot.completion_index is not None:
        yield "same index", (slot.job_uid, slot.completion_index)
    yield "same Job", slot.job_uid
    if slot.cron_job:
        yield "same CronJob", (slot.namespace, slot.cron_job)
    template = templates.get(slot.job_uid)
    if template:
        yield _BY_TEMPLATE, template


def _by_rule(
    lifetimes: Iterable[SeenLife], templates: Mapping[str, str]
) -> dict[str, dict[Hashable, list[SeenLife]]]:
    """Lives in groups; the last attempt, or the last pod of a row, comes last."""
    found: dict[str, dict[Hashable, list[SeenLife]]] = {rule: {} for rule in _RULES}
    for life in lifetimes:
        for rule, key in _keys(life.slot, templates):
            found[rule].setdefault(key, []).append(life)
    for groups in found.values():
        for group in groups.values():
            group.reverse()
            group.sort(key=lambda life: (life.slot.attempt, life.slot.ordinal))
    return found


_BY_TEMPLATE: Final = "same template"
_RULES: Final = ("same index", "same Job", "same CronJob", _BY_TEMPLATE)


def _place(slot: Slot) -> tuple[str, int | None, int]:
    """Which pod of a Job one is: by index and attempt, else by its place in the row."""
    index = slot.completion_index
    return slot.job_uid, index, slot.attempt if index is not None else slot.ordinal


def template_text(template: Mapping[str, Any]) -> str:
    """A text by which equal templates are known: the spec of their pods."""
    return json.dumps(template.get("spec", {}), sort_keys=True, separators=(",", ":"))
