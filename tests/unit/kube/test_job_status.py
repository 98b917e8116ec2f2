"""A field of a Job's status is declared once, and everything else follows."""

from __future__ import annotations

from typing import Any

from msgspec.structs import fields

from tracekit.base.kube import job_status
from tracekit.base.kube.api_types import schema
from tracekit.base.kube.job_status import FIELDS, Shape
from tracekit.base.kube.views import JobStatus, job_status_from_raw
from tracekit.check.compare.status import PLAIN, SETS, TIMES
from tracekit.model.cluster import statuses
from tracekit.trace.format.api_fields import JobStatus as Promised
from tracekit.trace.format.schema import COLUMNS

_SAMPLES: dict[Shape, Any] = {
    Shape.COUNT: 3,
    Shape.COUNT_OR_NONE: 2,
    Shape.TIME: 1_700_000_000 * 10**9,
    Shape.INDEXES: "0-4",
    Shape.INDEXES_OR_NONE: "7",
    Shape.UIDS: ("a", "b"),
}


def test_the_view_has_the_declared_fields_in_their_order() -> None:
    assert JobStatus.__struct_fields__ == (*job_status.NAMES, "tracks_uncounted", "conditions")
    assert all(getattr(JobStatus(), field.name) == field.shape.absent for field in FIELDS)


def test_what_the_api_server_writes_is_read_again_field_by_field() -> None:
    for field in FIELDS:
        uids = field.shape is Shape.UIDS
        status = JobStatus(**{field.name: _SAMPLES[field.shape]}, tracks_uncounted=uids)
        raw = statuses.job_status(status)
        assert set(raw) == {field.top}
        assert job_status_from_raw(raw) == status


def test_every_field_has_a_column_is_read_from_etcd_is_promised_and_is_compared() -> None:
    columns = {column.name for column in COLUMNS}
    etcd = {field.name for field in schema()["batch.JobStatus"].values()}
    compared = {name for name, _ in (*PLAIN, *SETS, *TIMES)}
    for field in FIELDS:
        assert field.name in columns
        assert field.name in compared
        assert field.top in etcd
    top = {field.top for field in FIELDS} | {"conditions"}
    assert {field.encode_name for field in fields(Promised)} == top == job_status.KNOWN
