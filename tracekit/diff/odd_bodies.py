"""Pods that differ from all others of their template in what the API server added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracekit.compare.fields import FieldDifference
from tracekit.compare.pod_body import body_additions
from tracekit.kube.decode import as_map
from tracekit.replay.history import WriteKind
from tracekit.replay.search_state import Explanation

#: So many pods of one template tell which of them is the odd one.
_FEWEST_ALIKE = 3


def odd_bodies(syncs: Iterable[Explanation]) -> dict[int, list[FieldDifference]]:
    """The odd pods, by the index of the write that created them, with what is odd.

    One pod that stands alone among three and more is told; a change that stays is an
    administrator's.
    """
    by_template: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for sync in syncs:
        if sync.job is None:
            continue
        template = sync.job.view.spec.template
        spec = as_map(template.get("spec"))
        for write in sync.writes:
            if write.kind is WriteKind.POD_CREATE and write.pod is not None:
                added = body_additions(spec, write.pod.evidence.pod_spec())
                by_template.setdefault(id(template), []).append((write.index, added))
    odd: dict[int, list[FieldDifference]] = {}
    for pods in by_template.values():
        if len(pods) < _FEWEST_ALIKE:
            continue
        usual = pods[0][1] if pods[0][1] in (pods[1][1], pods[2][1]) else pods[1][1]
        different = [(index, added) for index, added in pods if added != usual]
        if len(different) == 1:
            index, added = different[0]
            odd[index] = [
                FieldDifference(path, usual.get(path), added.get(path))
                for path in sorted({*usual, *added})
                if usual.get(path) != added.get(path)
            ]
    return odd
