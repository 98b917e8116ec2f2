"""Column values out of raw objects, well-formed and not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.watchlog import job, pod
from tracekit.trace.format.extract import extract, number_of
from tracekit.trace.format.model import STREAM_KINDS, RowType
from tracekit.trace.format.rows import MEMORY_SCHEMA, RowBuffer
from tracekit.trace.format.schema import NAMES

NS = 1_000_000_000
AT = 1795239762 * NS  # 2026-11-21T05:42:42Z


def columns(stream, obj, row_type=RowType.MODIFIED):
    row = {}
    extract(stream, row_type, obj, row)
    assert set(row) <= set(NAMES)
    return {name: value for name, value in row.items() if value is not None}


def test_job_status_keeps_absent_and_zero_apart():
    absent = columns("jobs", job())
    zero = columns("jobs", job(active=0, ready=0, uncountedTerminatedPods={}))
    assert "active" not in absent
    assert "uncounted_succeeded" not in absent
    assert zero["active"] == 0
    assert zero["ready"] == 0
    assert zero["uncounted_succeeded"] == zero["uncounted_failed"] == []


def test_job_columns():
    raw = job(
        succeeded=2,
        startTime="2026-11-21T05:42:42Z",
        completedIndexes="0-1",
        newField={"b": 1, "a": 2},
        uncountedTerminatedPods={"succeeded": ["u1"]},
        conditions=[{"type": "Suspended", "status": "True", "lastTransitionTime": None}],
    )
    raw["metadata"]["ownerReferences"] = [
        {"kind": "Other", "name": "first", "controller": False},
        {"kind": "CronJob", "name": "nightly", "uid": "u", "controller": True},
    ]
    got = columns("jobs", raw)
    assert got["job"] == "three"
    assert got["cronjob"] == "nightly"
    assert got["owner_kind"] == "CronJob"
    assert len(got["owners"]) == 2
    assert got["start_ns"] == got["created_ns"] == AT
    assert got["labels"] == '{"a":"1","b":"2"}'
    assert got["observed_status"] == '{"newField":{"a":2,"b":1}}'
    assert got["uncounted_succeeded"] == ["u1"]
    assert got["uncounted_failed"] == []
    assert got["conditions"] == [("Suspended", "True", None, None, None, None)]


def test_pod_columns():
    raw = pod()
    raw["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "7"}
    raw["status"] |= {
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T05:42:42Z"}
        ],
        "containerStatuses": [
            {"name": "main", "restartCount": 2, "state": {"running": {}}},
            {
                "name": "side",
                "restartCount": 3,
                "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-21T05:42:42Z"}},
            },
        ],
        "initContainerStatuses": [{"name": "init", "restartCount": 4, "state": {}}],
    }
    got = columns("pods", raw)
    assert got["job"] == "three"
    assert got["node_name"] == "node-1"
    assert got["spec"] == '{"containers":[{"name":"main"}]}'
    assert got["pod_ready"] is True
    assert got["pod_ready_since_ns"] == AT
    assert got["restarts"] == 9
    assert got["restarts_max"] == 3
    assert got["completion_index"] == 7
    assert [(c[0], c[1], c[3], c[4]) for c in got["containers"]] == [
        ("main", False, "running", None),
        ("side", False, "terminated", 0),
        ("init", True, None, None),
    ]


def test_pod_of_another_owner_belongs_to_no_job():
    raw = pod()
    raw["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet"
    assert "job" not in columns("pods", raw)


def test_core_event_and_its_successor_fill_the_same_columns():
    core = {
        "metadata": {"name": "e", "namespace": "ns", "resourceVersion": "9"},
        "involvedObject": {"kind": "Job", "name": "three", "resourceVersion": "8"},
        "reason": "SuccessfulCreate",
        "message": "Created pod",
        "source": {"component": "job-controller"},
        "firstTimestamp": "2026-11-21T05:42:42Z",
        "lastTimestamp": "2026-11-21T05:42:43Z",
        "count": 2,
        "type": "Normal",
        "eventTime": None,
    }
    new = {
        "metadata": core["metadata"],
        "regarding": core["involvedObject"],
        "reason": "SuccessfulCreate",
        "note": "Created pod",
        "reportingController": "job-controller",
        "eventTime": "2026-11-21T05:42:42.000000Z",
        "series": {"count": 2, "lastObservedTime": "2026-11-21T05:42:43.000000Z"},
        "type": "Normal",
        "deprecatedCount": 1,
    }
    got = columns("events", core)
    assert got == columns("events", new)
    assert (got["job"], got["count"], got["first_ns"], got["last_ns"]) == ("three", 2, AT, AT + NS)
    assert got["involved_rv"] == 8
    assert got["component"] == "job-controller"


@pytest.mark.parametrize(
    "text", ["", "-1", "1.0", "\uff19", "x", None, 7, "9" * 30, "9223372036854775808"]
)
def test_a_revision_that_is_not_a_plain_number_is_null(text):
    assert number_of(text) is None


def test_control_rows():
    assert columns("jobs", {"resourceVersion": "5"}, RowType.LIST_BEGIN) == {"rv": 5}
    assert columns("jobs", {"error": "gone"}, RowType.NOTE) == {"message": "gone"}
    status = {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}
    assert columns("jobs", status, RowType.ERROR) == {"reason": "Expired", "message": "too old"}
    bookmark = {"metadata": {"resourceVersion": "7", "name": "n"}}
    assert columns("jobs", bookmark, RowType.BOOKMARK) == {"rv": 7}


def test_items_of_a_list_get_the_kind_of_their_stream():
    raw = job()
    del raw["kind"], raw["apiVersion"]
    assert columns("jobs", raw)["kind"] == "Job"
    assert "kind" not in columns("widgets", raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "kind",
                    "state",
                    "terminated",
                    "type",
                    "controller",
                    "restartCount",
                    "time",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FIELDS = ["metadata", "spec", "status", "involvedObject", "series", "source", "resourceVersion"]
SUBFIELDS = [
    "ownerReferences", "managedFields", "labels", "annotations", "finalizers", "resourceVersion",
    "conditions", "containerStatuses", "initContainerStatuses", "active", "nodeName", "startTime",
    "uncountedTerminatedPods", "name", "namespace", "generation", "renewTime", "creationTimestamp",
]  # fmt: skip
OBJECT = st.dictionaries(
    st.sampled_from(FIELDS),
    JSON | st.dictionaries(st.sampled_from(SUBFIELDS), JSON, max_size=6),
    max_size=5,
)


@given(st.lists(st.tuples(st.sampled_from([*STREAM_KINDS, "widgets"]), OBJECT), max_size=4))
def test_any_object_becomes_a_row_that_arrow_takes(objects):
    buffer = RowBuffer()
    for seq, (stream, obj) in enumerate(objects):
        row = {"seq": seq, "stream": stream, "type": "ADDED"}
        extract(stream, RowType.ADDED, obj, row)
        buffer.append(row, 0)
    table = buffer.take()
    assert table.num_rows == len(objects)
    assert table.schema == MEMORY_SCHEMA
