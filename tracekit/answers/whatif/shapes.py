"""Jobs of one shape: the same wish, and the same difference between two sets of rules.

What makes the difference is looked for once for all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from tracekit.answers.whatif.steps import Difference
from tracekit.base.kube.views import JobView

#: Fields of a Job's spec that name the Job, and say nothing of what it is to do.
_NAMING: Final = ("selector", "manualSelector")

Shape = tuple[object, ...]
_NUMBER: Final = re.compile(r"\d+")


def wanted(job: JobView) -> str:
    """What a Job is to do, as a text that is equal for equal wishes: its spec but for names."""
    spec = {name: value for name, value in job.spec.raw.items() if name not in _NAMING}
    spec["template"] = {"spec": job.spec.template.get("spec", {})}
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))


def shape(job: JobView, differences: Iterable[Difference], *more: object) -> Shape:
    """The shape of a Job with these differences."""
    steps = tuple((d.severity, d.kind, d.text, d.fork) for d in differences)
    return (wanted(job), steps, *more)


def kinds(differences: Iterable[Difference]) -> Shape:
    """What Jobs have in common whose steps differ alike, but for numbers and how often."""
    return tuple(sorted({(d.kind, _NUMBER.sub("", d.text), d.fork) for d in differences}))
