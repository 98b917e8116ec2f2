"""What to do about a finding, in words that can be pasted into a shell."""

from __future__ import annotations

from tracekit.answers.model import Case, Finding
from tracekit.base.escaping import for_shell

#: Kinds whose name a command takes for NAME.
_NAMED = ("Job", "CronJob", "Pod")


def advice(finding: Finding) -> str:
    """What to do, with the first object's name in commands as one word of a shell."""
    return advice_of(finding.cases[0])


def advice_of(case: Case) -> str:
    """What to do about one object, with its own name in commands."""
    target, cause = case.target, case.cause
    own = case.todo or (case.rule.todo if cause is None else "")
    todo = own
    if target.kind in _NAMED and own:
        kind = target.kind.lower()
        space = f" -n {for_shell(target.namespace)}" if target.namespace else ""
        named = f"{kind}{space} {for_shell(target.name)}"
        todo = todo.replace(f" {kind} NAME", f" {named}").replace(
            "job --from=cronjob/NAME",
            f"job{space} {for_shell(target.name + '-by-hand')} "
            f"--from={for_shell('cronjob/' + target.name)}",
        )
    if cause is not None:
        todo = f"see {cause.id}. {todo or cause.todo}"
    return todo.replace("{object}", for_shell(f"{target.namespace}/{target.name}"))
