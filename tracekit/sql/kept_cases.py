"""What was found in a whole trace, kept on this machine beside its verdicts.

It follows from the rows, the rules and the code alone, as its verdicts do. Kinds of findings are
named by their ids, since all cases of one have the same texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from msgspec import Struct, defstruct

from tracekit.answers.findings.diagnosis import RULES, Diagnosed, JobNote
from tracekit.answers.model import Case, Rule
from tracekit.answers.pauses import Pause
from tracekit.judge.fact_cache import cached_fact
from tracekit.trace.reading.snapshot import Snapshot
from tracekit.versions.overrides import AskedRules

_RULES = {rule.id: rule for rule in RULES}
#: The fields of a case that are kinds of findings.
_NAMED = {"rule": str, "cause": str | None}
_KeptCase = defstruct(
    "_KeptCase", [(name, _NAMED.get(name, kind)) for name, kind in get_type_hints(Case).items()]
)


class _Kept(Struct, frozen=True):
    """All that is found, as it lies in a file."""

    cases: list[_KeptCase]  # type: ignore[valid-type]
    jobs: list[JobNote]
    pauses: list[Pause]
    not_judged: str | None


def kept_diagnosis(
    snapshot: Snapshot, rules: AskedRules, make: Callable[[], Diagnosed]
) -> Diagnosed:
    """What was found by these rules in all of a judged trace before; else it is made, and kept."""
    return _without_ids(
        cached_fact(snapshot, "cases", _Kept, lambda: _with_ids(make()), rules=rules)
    )


def _with_ids(found: Diagnosed) -> _Kept:
    cases = [_KeptCase(**{**_fields(case), **_ids(case)}) for case in found.cases]
    return _Kept(cases, found.jobs, [*found.pauses], found.not_judged)


def _ids(case: Case) -> dict[str, str | None]:
    return {"rule": case.rule.id, "cause": None if case.cause is None else case.cause.id}


def _without_ids(kept: _Kept) -> Diagnosed:
    cases = [Case(**{**_fields(case), **_rules(case)}) for case in kept.cases]
    return Diagnosed(cases, kept.jobs, kept.pauses, kept.not_judged)


def _rules(case: Any) -> dict[str, Rule | None]:
    return {"rule": _RULES[case.rule], "cause": None if case.cause is None else _RULES[case.cause]}


def _fields(case: Any) -> dict[str, Any]:
    return {name: getattr(case, name) for name in case.__struct_fields__}
