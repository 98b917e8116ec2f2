"""What to do about a finding, in words that can be pasted into a shell."""

from __future__ import annotations

import re
from typing import Final

from tracekit.answers.model import Case, Finding
from tracekit.answers.remedies import ANEW
from tracekit.answers.words import in_kubectl
from tracekit.base.escaping import for_shell
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339

#: Kinds whose name a command takes for NAME.
_NAMED = ("Job", "CronJob", "Pod")
#: A command of ours about the trace at hand.
_OF_TRACE: Final = re.compile(r"(`tracekit [a-z]+ )TRACE\b")


def advice(finding: Finding, trace: str | None = None) -> str:
    """What to do, with the first object's name in commands as one word of a shell.

    Args:
        finding: What it is about.
        trace: What the reader calls the trace: it stands in commands, too. None where several
            traces are asked at once; then they say TRACE.
    """
    return advice_of(finding.cases[0], trace)


def commands(finding: Finding, trace: str) -> list[list[str]]:
    """What to ask next, as the words of commands: about the first object, and about its time."""
    case = finding.cases[0]
    target = case.target
    found = []
    if target.kind in ("Job", "CronJob"):
        key = f"{target.namespace}/{target.name}"
        found.append(["tracekit", "explain", trace, key])
        if case.actor is not None:
            found.append(["tracekit", "who", trace, "--object", key])
    elif finding.from_ns:
        # Nothing of its own to be told of: what happened around it, to whole seconds.
        until_ns = finding.until_ns and -(-finding.until_ns // NS_PER_S) * NS_PER_S
        times = (finding.from_ns // NS_PER_S * NS_PER_S, until_ns)
        asked = zip(("--from", "--to"), map(format_rfc3339, times), strict=True)
        words = [word for option, at in asked if at is not None for word in (option, at)]
        found.append(["tracekit", "timeline", trace, *words])
    return found


def _pod_of(case: Case) -> str | None:
    """The first pod that shows it."""
    pods = case.evidence.get("pods") or [case.evidence.get("pod")]
    return None if pods[0] is None else str(pods[0])


def _anew(case: Case) -> str:
    """How a Job gets another template, by who makes its Jobs."""
    owner = f"CronJob {case.cronjob}" if case.cronjob else case.evidence.get("owner")
    if owner is None:
        return ANEW
    return (
        f"A running Job's template cannot be changed: change that of {owner}, which makes its "
        "Jobs, and delete this one."
    )


def advice_of(case: Case, trace: str | None = None) -> str:
    """What to do about one object, with its own name in commands; `trace` as `advice` has it."""
    target, cause = case.target, case.cause
    own = case.todo or (case.rule.todo if cause is None else "")
    todo = own
    if target.kind in _NAMED and own:
        kind = target.kind.lower()
        named = in_kubectl(target.namespace, target.name)
        by_hand = in_kubectl(target.namespace, f"{target.name}-by-hand")
        todo = todo.replace(f" {kind} NAME", f" {kind} {named}").replace(
            "job --from=cronjob/NAME",
            f"job {by_hand} --from={for_shell('cronjob/' + target.name)}",
        )
        pod = _pod_of(case)
        if target.kind == "Job" and pod is not None:
            todo = todo.replace(" pod NAME", f" pod {in_kubectl(target.namespace, pod)}")
    todo = todo.replace(ANEW, _anew(case))
    if cause is not None:
        todo = f"see {cause.id}. {todo or cause.todo}"
    todo = todo.replace("{namespace}", for_shell(target.namespace))
    todo = todo.replace("{object}", for_shell(f"{target.namespace}/{target.name}"))
    if trace is None:
        return todo
    return _OF_TRACE.sub(lambda found: found[1] + for_shell(trace), todo)
