"""What differs between two revisions, and who owns it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.base.kube.field_changes import (
    FieldChange,
    changes,
    managers,
    owners,
    set_fields,
    shown,
    writers,
)


def entry(manager: str, time: str, fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    own = {"subresource": subresource} if subresource else {}
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields, **own}


def job(spec: dict[str, Any], *entries: dict[str, Any], rv: str = "1") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": rv, "managedFields": list(entries)}, "spec": spec}


def test_only_what_differs_is_told_by_the_names_of_list_items() -> None:
    before = {"spec": {"schedule": "a", "containers": [{"name": "x", "image": "1"}, {"name": "y"}]}}
    after = {"spec": {"schedule": "b", "containers": [{"name": "y"}, {"name": "x", "image": "2"}]}}
    assert changes(before, after) == [
        FieldChange(".spec.containers[name=x].image", "1", "2"),
        FieldChange(".spec.schedule", "a", "b"),
    ]


def test_an_item_that_came_is_told_whole_and_a_list_without_names_as_one() -> None:
    before = {"a": [{"name": "x"}], "args": ["1", "2"]}
    after = {"a": [{"name": "x"}, {"name": "y", "value": "1"}], "args": ["1", "3"]}
    assert changes(before, after) == [
        FieldChange(".a[name=y]", None, {"name": "y", "value": "1"}),
        FieldChange(".args", ["1", "2"], ["1", "3"]),
    ]


def test_what_the_server_writes_at_every_change_is_no_change() -> None:
    assert not changes(job({"a": 1}, rv="1"), job({"a": 1}, entry("x", "t", {}), rv="2"))


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=8))  # fmt: skip
def test_the_same_has_no_change_and_another_has_one(value: Any) -> None:
    assert not changes({"a": value}, {"a": value})
    if value is not None and value not in ({}, []):
        assert changes({"b": 1}, {"b": 1, "a": value}) or _is_hollow(value)


def _is_hollow(value: Any) -> bool:
    """Whether there is nothing in it but nulls, which the API means as absent."""
    if isinstance(value, dict):
        return all(_is_hollow(inner) for inner in value.values())
    return value is None


def test_deeper_than_any_object_is_an_error() -> None:
    value: Any = 1
    for _ in range(100):
        value = {"a": value}
    with pytest.raises(RecursionError):
        changes({}, {"a": value})


def test_who_wrote_is_whose_entry_is_new_or_newer_or_owns_more() -> None:
    spec = {"f:spec": {"f:schedule": {}}}
    before = job({"schedule": "a"}, entry("create", "1", spec), entry("kcm", "1", {}, "status"))
    newer = job({"schedule": "b"}, entry("create", "2", spec), entry("kcm", "1", {}, "status"))
    taken = job(
        {"schedule": "b"},
        entry("create", "1", {}),
        entry("edit", "1", spec),
        entry("kcm", "1", {}, "status"),
    )
    assert [m.name for m in writers(before, newer)] == ["create"]
    assert [m.name for m in writers(before, taken)] == ["edit"]


def test_within_a_second_the_sole_owner_of_what_changed_wrote_it() -> None:
    spec = {"f:spec": {"f:schedule": {}}}
    after = job({"schedule": "b"}, entry("edit", "1", spec), entry("kcm", "1", {"f:status": {}}))
    fields = changes(job({"schedule": "a"}), after)
    assert [m.name for m in owners(fields, after)] == ["edit"]
    both = job({"schedule": "b"}, entry("edit", "1", spec), entry("apply", "1", spec))
    assert not owners(changes(job({"schedule": "a"}), both), both)
    assert not owners(changes(job({"schedule": "a"}), job({})), job({}))  # it went: who knows


def test_the_fields_of_an_entry_have_their_values_now() -> None:
    fields = {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"a/b"': {}}},
        "f:spec": {"f:containers": {'k:{"name":"x"}': {".": {}, "f:image": {}}}},
    }
    document = {
        "metadata": {"managedFields": [entry("edit", "1", fields)], "finalizers": ["a/b"]},
        "spec": {"containers": [{"name": "y", "image": "1"}, {"name": "x", "image": "2"}]},
    }
    assert set_fields(managers(document)[0], document) == [
        FieldChange('.metadata.finalizers["a/b"]', None, "a/b"),
        FieldChange(".spec.containers[name=x].image", None, "2"),
    ]


def test_what_is_no_entry_is_left_out() -> None:
    assert not managers({"metadata": {"managedFields": [1, None, "x"]}})
    assert managers({"metadata": {"managedFields": [{"fieldsV1": 3}]}})[0].fields == {}


def test_a_long_value_is_cut() -> None:
    assert shown("x" * 500, 20) == '"' + "x" * 18 + "…"
    assert shown(None, 20) == "-"
    assert shown({"b": 1, "a": [True]}, 20) == '{"a":[true],"b":1}'
