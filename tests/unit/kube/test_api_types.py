"""What is not of its type counts as absent, wherever in an object it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.traces import TRACES, json_lines
from tracekit.base.kube.api_types import as_type, schema
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import job_from_raw, pod_from_raw

VALUES: list[Any] = [None, True, 0, -0.0, 2**63, 1e300, "", "x", [], [0], [None], {}, {"a": 0}]
TYPES = {"batch.JobSpec": "jobs", "batch.CronJobSpec": "cronjobs", "core.PodSpec": "pods"}


def specs(kind: str) -> Iterator[Any]:
    for row in json_lines(TRACES / "v1.36.3-all" / "watch.jsonl.zst"):
        if row["resource"] == TYPES[kind] and "spec" in row["object"]:
            yield row["object"]["spec"]


@pytest.mark.parametrize("kind", TYPES)
def test_what_a_server_made_is_kept_as_it_is(kind: str) -> None:
    seen = list(specs(kind))
    assert len(seen) > 10
    assert all(as_type(kind, spec) is spec for spec in seen)


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"template": {"metadata": 0, "spec": {}}}, {"template": {"spec": {}}}),
        ({"selector": {"matchLabels": -0.0}}, {"selector": {}}),
        ({"selector": {"matchLabels": {"a": 1, "b": "c"}}}, {"selector": {"matchLabels": {"b": "c"}}}),
        ({"template": {"spec": {"containers": [0, {"name": "a", "args": "x"}]}}},
         {"template": {"spec": {"containers": [{"name": "a"}]}}}),
        ({"backoffLimit": 2**63, "parallelism": True, "completions": 1.5}, {}),
        ({"a new field": [0], "suspend": False}, {"a new field": [0], "suspend": False}),
        ({"template": {"metadata": {"creationTimestamp": None}}},
         {"template": {"metadata": {"creationTimestamp": None}}}),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_absent(spec: Any, kept: Any) -> None:
    assert as_type("batch.JobSpec", spec) == kept


def wrong(kind: str, depth: int = 0) -> st.SearchStrategy[Any]:
    """Anything in the place of any field of a type, however deep."""
    anything = st.sampled_from(VALUES)
    fields = schema().get(kind)
    if not fields or depth > 5:
        return anything

    def field(shape: str, name: str) -> st.SearchStrategy[Any]:
        inner = st.deferred(lambda: wrong(name, depth + 1))
        if shape == "list":
            inner = st.lists(inner, max_size=2)
        elif shape == "map":
            inner = st.dictionaries(st.sampled_from(["a", "job-name"]), inner, max_size=2)
        return inner | anything

    return st.fixed_dictionaries(
        {}, optional={f.name: field(f.shape, f.kind) for f in fields.values() if f.name}
    )


@given(st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_views_are_made_of_anything(data: st.DataObject) -> None:
    for kind, view in (
        ("batch.Job", job_from_raw), ("core.Pod", pod_from_raw), ("batch.CronJob", CronJobView.from_raw)
    ):  # fmt: skip
        raw = data.draw(wrong(kind))
        view(raw if isinstance(raw, dict) else {})
        kept = as_type(kind, raw if isinstance(raw, dict) else {})
        assert as_type(kind, kept) is kept
