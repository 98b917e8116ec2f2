"""Words and numbers as findings print them: times, counts, lists of names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tracekit.base.escaping import for_shell
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339


def clock(at_ns: int) -> str:
    """A time in UTC to the second, with its date."""
    return (format_rfc3339(at_ns - at_ns % NS_PER_S) or "").replace("T", " ")


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`, `1,000 pods`."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def in_kubectl(namespace: str | None, name: str) -> str:
    """An object as a command of kubectl names it: `-n shop import`, each one word of a shell."""
    space = f"-n {for_shell(namespace)} " if namespace else ""
    return space + for_shell(name)


#: So many objects a command names. A choice: two lines of a terminal.
NAMED_MAX = 5


def several_in_kubectl(namespace: str | None, names: Sequence[str]) -> str:
    """As `in_kubectl`, of several objects: the first `NAMED_MAX` of them."""
    return " ".join(
        (in_kubectl(namespace, names[0]), *(for_shell(name) for name in names[1:NAMED_MAX]))
    )


def of_job_in_kubectl(namespace: str, job: str) -> str:
    """The pods of a Job as a command of kubectl selects them."""
    return f"-n {for_shell(namespace)} -l job-name={for_shell(job)}"


def log_of(namespace: str | None, pod: str, container: str, *, before: bool = False) -> str:
    """The command that prints a container's log, or that of its run before."""
    previous = " --previous" if before else ""
    return f"kubectl logs {in_kubectl(namespace, pod)} -c {for_shell(container)}{previous}"


def off(finalizer: str, finalizers: Sequence[str] = ()) -> str:
    """What `kubectl patch KIND NAME` needs to take one finalizer off, and no other.

    `finalizers`: those of the object, in their order. The API server refuses the patch where
    another stands in that place by then.
    """
    path = f"/metadata/finalizers/{finalizers.index(finalizer) if finalizer in finalizers else 0}"
    patch = [
        {"op": "test", "path": path, "value": finalizer},
        {"op": "remove", "path": path},
    ]
    return f"--type=json -p {for_shell(json.dumps(patch))}"


#: Of a message of the API so much is printed. A choice: six lines of a terminal.
_MESSAGE_CHARS = 400
_MESSAGE_END = 150


def shortened(message: str) -> str:
    """A message, without its middle where it is long: the cause stands at the end of most."""
    if len(message) <= _MESSAGE_CHARS:
        return message
    return f"{message[: _MESSAGE_CHARS - _MESSAGE_END]} … {message[-_MESSAGE_END:]}"


def named(names: Sequence[str], most: int = 3) -> str:
    """Some names, and how many more there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def agreed(verb: str, names: Sequence[str]) -> str:
    """A verb as it stands after some names: `was` after one, `were` after several."""
    return verb if len(names) == 1 else _SEVERAL[verb]


def agreeing(verb: str, names: Sequence[str]) -> str:
    """Some names with a verb that agrees with them: `a was`, `a, b were`."""
    return f"{named(names)} {agreed(verb, names)}"


#: Not within a name, as of an image.
_ONE = re.compile(
    r"^(?:has|was|is|does|stays|wants|waits|makes|starts)\b"
    r"|(?<=, and )(?:was|is|has|waits)\b|\b(?:the Job|it) was\b|\bit does\b"
    r"|\b(?:allowed|ended|took|of) it\b"
    r"|(?<![\w/.:@-])(?:its|it|the Job(?! controller))(?![\w/.@-])"
)
_SEVERAL = {
    "has": "have", "was": "were", "is": "are", "does": "do", "stays": "stay",
    "wants": "want", "waits": "wait", "makes": "make", "starts": "start",
    "it does": "they do",
    "its": "their", "it": "they", "the Job": "the Jobs",
    "the Job was": "the Jobs were", "it was": "they were",
    "allowed it": "allowed them", "ended it": "ended them", "took it": "took them",
    "of it": "of them",
}  # fmt: skip


def of_several(claim: str) -> str:
    """What is said of one object, said of several: `has lost its pods`, `have lost their pods`."""
    return _ONE.sub(lambda found: _SEVERAL[found[0]], claim)
