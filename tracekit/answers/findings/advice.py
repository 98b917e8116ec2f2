"""What to do about a finding, in words that can be pasted into a shell."""

from __future__ import annotations

from tracekit.answers.model import Finding
from tracekit.base.escaping import for_shell


def advice(finding: Finding) -> str:
    """What to do, with the first object's name in commands as one word of a shell."""
    target = finding.cases[0].target
    cause = finding.cause
    own = finding.cases[0].todo or finding.rule.todo
    todo = own if cause is None else f"see {cause.id}. {cause.todo}"
    return todo.replace("{object}", for_shell(f"{target.namespace}/{target.name}"))
