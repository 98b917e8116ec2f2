"""TK317: a CronJob none of whose Jobs the API server can take, by the rules for their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import CronJob, Facts, Job
from tracekit.answers.words import clock

#: Upstream: apimachinery's util/validation, IsDNS1123Label.
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_MAX: Final = 63
#: Minutes since 1970 as a Job's name ends with, `-29921866`: eight digits until the year 2160.
_SLOT: Final = "-00000000"

REFUSED_NAMES = Rule(
    "TK317", "Jobs that the API server must refuse", Severity.ERROR,
    "The jobTemplate is Indexed, and NAME-MINUTES-INDEX of its last index, the host name of a pod, "
    "is no DNS label (at most 63 characters, no dot): upstream's validation of a Job refuses it "
    "(422), though the CronJob itself was taken. Decided from the CronJob alone.",
    "A release without that check takes the Job and refuses its last pods; not told where a Job of "
    "the CronJob was seen.",
    "Create the CronJob under a shorter name without dots, and delete this one.", rank=5,
)  # fmt: skip
RULES = (REFUSED_NAMES,)


def refused_names(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Case | None:
    """The CronJob's case, where the validation of a Job's name must refuse each of its Jobs."""
    template = cron.last.spec.get("jobTemplate")
    spec = template.get("spec") if isinstance(template, dict) else None
    if (
        cron.last.gone
        or jobs
        or not isinstance(spec, dict)
        or spec.get("completionMode") != "Indexed"
    ):
        return None
    completions = spec.get("completions")
    if not isinstance(completions, int) or completions < 1:
        return None
    host = f"{cron.name}{_SLOT}-{completions - 1}"
    if len(host) <= _LABEL_MAX and _LABEL.fullmatch(host):
        return None
    why = f"has {len(host)} characters" if len(host) > _LABEL_MAX else "has a dot"
    return Case(
        REFUSED_NAMES, cron.target,
        f"starts nothing: its Jobs' names are not valid ({cron.name}-MINUTES-{completions - 1} "
        f"{why})",
        cron.first.at_ns, cron.last.at_ns,
        "host names of an Indexed Job's pods are DNS labels, 63 characters at most; as of "
        f"{clock(facts.as_of(cron.namespace, 'cronjobs'))}",
        evidence={"host": host, "characters": len(host)},
    )  # fmt: skip
