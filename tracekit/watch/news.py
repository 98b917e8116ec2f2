"""What a live judge has to say: one divergence or one finding, once."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tracekit.answers.findings.divergences import claim_of, rule_of
from tracekit.answers.model import Case, Target
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.verdict import Judgement


class News(Struct, frozen=True):
    """One thing that is told, once."""

    id: str  # of the kind of finding, for example TK126
    severity: str  # error, warning or info
    kind: str
    namespace: str
    name: str
    text: str  # one sentence, without the object
    why: str
    at_ns: int  # when it happened, Unix ns
    reported_ns: int  # up to when the record was known when it was told
    uid: str = ""  # of the object, where it is known

    @property
    def subject(self) -> str:
        """The object, in words."""
        return str(Target(self.kind, self.namespace, self.name))

    @property
    def line(self) -> str:
        """All of it on one line."""
        at = format_rfc3339(self.at_ns)
        return f"{at} {self.severity.upper()} {self.id} {self.subject}: {self.text} ({self.why})"

    def document(self) -> dict[str, Any]:
        """All of it as JSON has it; within one schema version keys are only added."""
        return {
            "schema_version": 1,
            "id": self.id,
            "severity": self.severity,
            "object": {"kind": self.kind, "namespace": self.namespace, "name": self.name},
            "text": self.text,
            "why": self.why,
            "time": format_rfc3339(self.at_ns),
            "time_ns": self.at_ns,
            "delay_s": round((self.reported_ns - self.at_ns) / 1e9, 3),
        }


def of_divergence(judgement: Judgement, reported_ns: int) -> News:
    """A divergence as news."""
    where, rule = judgement.object, rule_of(judgement)
    claim = claim_of(judgement)
    paths = ", ".join(dict.fromkeys(field.path for field in judgement.fields))
    text = f"{claim} ({paths})" if paths else claim
    return News(
        rule.id, rule.severity.value, where.kind, where.namespace, where.name, text,
        f"{judgement.subject}, resourceVersion {judgement.resource_version}: {judgement.why}",
        judgement.time_ns, reported_ns, where.uid,
    )  # fmt: skip


def of_case(case: Case, reported_ns: int) -> News:
    """A finding about one object as news."""
    target = case.target
    return News(
        case.rule.id, case.badness.value, target.kind, target.namespace, target.name, case.claim,
        case.detail, case.from_ns, reported_ns, target.uid,
    )  # fmt: skip
