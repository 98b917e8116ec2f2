"""The mutants of an era: each gate and behavior flipped, each number and text another one.

A mutant is what the port would be if one row of the version table were wrong. It says nothing where
it leaves the rules of both controllers as they are: in most versions most rows are out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import fields, replace

from tracekit.versions.behaviors import Behavior
from tracekit.versions.constants import CHANGES, Constants
from tracekit.versions.cronjob import TEXTS, CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.gates import Gate
from tracekit.versions.job import JobRules


@dataclass(frozen=True, slots=True)
class Mutant:
    """One row turned over: the rules that follow, None where they are those of the era."""

    row: str
    job: JobRules | None
    cron_job: CronJobEra | None


def rows() -> list[str]:
    """Every row of the version table that can be turned over, by kind and name."""
    return [
        *(f"gate {gate.value}" for gate in Gate),
        *(f"behavior {behavior.name.lower()}" for behavior in Behavior),
        *(f"constant {name}" for name in _changed_constants()),
        *(f"text {name}" for name in dict.fromkeys(text.field for text in TEXTS)),
    ]


def _changed_constants() -> list[str]:
    changed = {name for _, values, _ in CHANGES for name in values}
    return [name for name in Constants.__struct_fields__ if name in changed]


def mutants(era: Era, row: str) -> Iterator[Mutant]:
    """The mutants of one row that change something in an era; several where a value had several."""
    kind, _, name = row.partition(" ")
    job, cron_job = JobRules.of(era), CronJobEra.of(era)
    if kind == "text":
        for value in _other_texts(name, getattr(cron_job, name)):
            yield Mutant(row, None, replace(cron_job, **{name: value}))
        return
    for changed in _changed(era, kind, name):
        new_job, new_cron_job = JobRules.of(changed), CronJobEra.of(changed)
        mutant = Mutant(
            row,
            new_job if new_job != job else None,
            new_cron_job if new_cron_job != cron_job else None,
        )
        if mutant.job is not None or mutant.cron_job is not None:
            yield mutant


def _changed(era: Era, kind: str, name: str) -> Iterator[Era]:
    if kind == "gate":
        yield replace(era, enabled_gates=era.enabled_gates ^ {Gate[name]})
    elif kind == "behavior":
        yield replace(era, held_behaviors=era.held_behaviors ^ {Behavior[name.upper()]})
    else:
        values = {getattr(Constants(), name), *(v[name] for _, v, _ in CHANGES if name in v)}
        for value in sorted(values - {getattr(era.constants, name)}, key=str):
            yield replace(era, constants=replace(era.constants, **{name: value}))


def _other_texts(name: str, now: object) -> list[object]:
    default = next(field.default for field in fields(CronJobEra) if field.name == name)
    values = [default, *(text.value for text in TEXTS if text.field == name)]
    return [value for value in dict.fromkeys(values) if value != now]
