"""What to do about a finding, in words that can be pasted into a shell."""

from __future__ import annotations

from tracekit.answers.model import Finding
from tracekit.base.escaping import for_shell

#: Kinds whose name a command takes for NAME.
_NAMED = ("Job", "CronJob", "Pod")


def advice(finding: Finding) -> str:
    """What to do, with the first object's name in commands as one word of a shell."""
    target = finding.cases[0].target
    cause = finding.cause
    own = finding.cases[0].todo or finding.rule.todo
    todo = own if cause is None else f"see {cause.id}. {finding.cases[0].todo or cause.todo}"
    if target.kind in _NAMED and cause is None:
        kind = target.kind.lower()
        space = f" -n {for_shell(target.namespace)}" if target.namespace else ""
        named = f"{kind}{space} {for_shell(target.name)}"
        todo = todo.replace(f" {kind} NAME", f" {named}").replace(
            "job --from=cronjob/NAME",
            f"job{space} {for_shell(target.name + '-by-hand')} "
            f"--from={for_shell('cronjob/' + target.name)}",
        )
    return todo.replace("{object}", for_shell(f"{target.namespace}/{target.name}"))
