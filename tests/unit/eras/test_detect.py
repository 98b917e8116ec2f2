"""Version detection from what objects show."""

import pytest

from tracekit.base.kube.job_status import FIELDS, Shape
from tracekit.versions.detect import REASONS_SHOWN, STATUS_FIELDS, Fact, detect, facts_of
from tracekit.versions.era import NEWEST
from tracekit.versions.version_markers import Sign


def facts(*signs):
    return [Fact(sign, f"at {n}") for n, sign in enumerate(signs)]


def signs_of(kind, raw, *, new=True, written=True):
    raw = {"metadata": {"namespace": "ns", "name": "x", **raw.pop("metadata", {})}, **raw}
    found = facts_of(kind, raw, created_in_record=new, written_in_record=written)
    return {fact.sign for fact in found}


def test_every_sign_has_a_rule_and_default_bounds_are_never_wider_than_hard_ones():
    # Two with equal rules would be one member.
    assert len({sign.rule.phrase for sign in Sign}) == len(Sign.__members__)
    for rule in (sign.rule for sign in Sign):
        assert (rule.hard.first is None) == (rule.default.first is None)
        assert (rule.hard.last is None) == (rule.default.last is None)
        assert (rule.default.first or 99) >= (rule.hard.first or 0)
        assert (rule.default.last or 0) <= (rule.hard.last or 99)


def test_a_field_that_newer_releases_write_has_its_sign():
    """By its shape absence is no value, so that some release did not write it."""
    late = (Shape.COUNT_OR_NONE, Shape.INDEXES_OR_NONE, Shape.UIDS)
    assert {field for field, _ in STATUS_FIELDS} == {
        field.top for field in FIELDS if field.shape in late
    }


def test_without_facts_every_known_version_fits():
    found = detect([])
    assert found.range_text() == f"v1.11 - v{NEWEST.branch}"
    assert found.describe() == f"v1.11 - v{NEWEST.branch}, as nothing in the objects says more"


def test_bounds_intersect_and_the_ends_name_their_evidence():
    found = detect(
        facts(Sign.EVENT_SAW_COMPLETED_CONDITION, Sign.NULL_CREATION_TIMESTAMP, Sign.MANAGED_FIELDS)
    )
    assert found.range_text() == "v1.31 - v1.33"
    assert [f.sign for f in found.evidence] == [
        Sign.EVENT_SAW_COMPLETED_CONDITION,
        Sign.NULL_CREATION_TIMESTAMP,
    ]
    assert found.describe() == (
        "v1.31 - v1.33 because event SawCompletedJob says `condition:` (at 0); "
        "a template's creationTimestamp is written as null (at 1)"
    )
    assert str(found.best) == "v1.33"


def test_default_gates_narrow_the_range_and_the_answer_says_so():
    found = detect(facts(Sign.INDEX_LABEL, Sign.NO_TERMINATING))
    assert found.range_text() == "v1.28"
    assert found.assumes_default_gates
    assert found.describe().endswith("; default feature gates are assumed (v1.28 - v1.33 else)")


def test_a_gate_set_by_hand_falls_back_to_what_no_gate_can_move():
    """1.23.17 with tracking on and ready off by default: both hold without an assumption."""
    found = detect(facts(Sign.TERMINATING, Sign.NO_POD_REPLACEMENT_POLICY))
    assert found.range_text() == "v1.28 - v1.33"
    assert not found.assumes_default_gates
    assert found.contradictions == ()


def test_left_overs_of_an_older_version_lose_against_what_only_a_newer_one_does():
    found = detect(facts(Sign.OWNED_BY_V1BETA1, Sign.EVENT_SAW_COMPLETED_CONDITION))
    assert found.range_text() == f"v1.31 - v{NEWEST.branch}"
    assert [f.sign for f in found.contradictions] == [Sign.OWNED_BY_V1BETA1]
    assert "from before an upgrade" in found.describe()


def test_only_the_first_fact_of_a_sign_is_kept_and_only_a_few_are_told():
    found = detect(facts(*[Sign.TERMINATING] * 5))
    assert [f.where for f in found.evidence] == ["at 0"]
    many = detect(
        facts(
            Sign.SUCCESS_POLICY,
            Sign.EVENT_SAW_COMPLETED_CONDITION,
            Sign.COMPLETIONS_REACHED,
            Sign.SUCCESS_CRITERIA_MET,
            Sign.FAILURE_TARGET_OF_ANY_ENDING,
        )
    )
    assert len(many.evidence) == REASONS_SHOWN + 1
    assert "and 1 more such signs" in many.describe()


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        ("Job", {"metadata": {"selfLink": "/apis/x"}}, Sign.SELF_LINK),
        ("Pod", {}, Sign.NO_SELF_LINK),
        ("Job", {"metadata": {"managedFields": [{"manager": "m"}]}}, Sign.MANAGED_FIELDS),
        (
            "Job",
            {"metadata": {"managedFields": [{"subresource": "status"}]}},
            Sign.MANAGED_FIELDS_SUBRESOURCE,
        ),
        ("Namespace", {}, Sign.NO_NAMESPACE_NAME_LABEL),
        (
            "Namespace",
            {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}},
            Sign.NAMESPACE_NAME_LABEL,
        ),
        (
            "Job",
            {"spec": {"template": {"metadata": {"creationTimestamp": None}}}},
            Sign.NULL_CREATION_TIMESTAMP,
        ),
        (
            "CronJob",
            {"spec": {"jobTemplate": {"metadata": {"labels": {"a": "b"}}}}},
            Sign.NO_NULL_CREATION_TIMESTAMP,
        ),
        ("CronJob", {"apiVersion": "batch/v1beta1"}, Sign.CRON_JOB_SERVED_AS_V1BETA1),
        ("CronJob", {"spec": {"timeZone": "Europe/Rome"}}, Sign.TIME_ZONE),
        ("CronJob", {"status": {"lastSuccessfulTime": "x"}}, Sign.LAST_SUCCESSFUL_TIME),
        ("Job", {}, Sign.NO_COMPLETION_MODE),
        ("Job", {"spec": {"completionMode": "NonIndexed"}}, Sign.COMPLETION_MODE),
        (
            "Job",
            {"metadata": {"annotations": {"batch.kubernetes.io/job-tracking": ""}}},
            Sign.TRACKING_ANNOTATION,
        ),
        (
            "Job",
            {"status": {"uncountedTerminatedPods": {}}},
            Sign.TRACKED_WITHOUT_ANNOTATION,
        ),
        (
            "Job",
            {"spec": {"template": {"metadata": {"labels": {"controller-uid": "u"}}}}},
            Sign.NO_PREFIXED_LABELS,
        ),
        ("Job", {"status": {"active": 1}}, Sign.NO_READY),
        ("Job", {"status": {"active": 1, "ready": 0}}, Sign.READY),
        ("Job", {"status": {"active": 1, "ready": 0}}, Sign.UNTRACKED),
        ("Job", {"status": {"terminating": 0}}, Sign.TERMINATING),
        (
            "Job",
            {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
            Sign.COMPLETE_WITHOUT_REASON,
        ),
        (
            "Job",
            {
                "status": {
                    "conditions": [
                        {"type": "Complete", "status": "True", "reason": "CompletionsReached"}
                    ]
                }
            },
            Sign.COMPLETIONS_REACHED,
        ),
        (
            "Job",
            {
                "status": {
                    "conditions": [
                        {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}
                    ]
                }
            },
            Sign.FAILURE_TARGET_OF_ANY_ENDING,
        ),
        (
            "Job",
            {"status": {"conditions": [{"type": "Failed", "status": "True"}]}},
            Sign.FAILED_WITHOUT_FAILURE_TARGET,
        ),
        (
            "Pod",
            {"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}},
            Sign.TRACKING_FINALIZER,
        ),
        (
            "Pod",
            {"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "0"}}},
            Sign.NO_INDEX_LABEL,
        ),
        (
            "Pod",
            {"metadata": {"labels": {"batch.kubernetes.io/job-completion-index": "0"}}},
            Sign.INDEX_LABEL,
        ),
        ("Pod", {"metadata": {"generation": 1}}, Sign.POD_GENERATION),
        ("Pod", {"spec": {"preemptionPolicy": "Never"}}, Sign.PREEMPTION_POLICY),
    ],
)
def test_an_object_shows_its_sign(kind, raw, expected):
    assert expected in signs_of(kind, raw)


def cron_child(name, api_version, annotations=None):
    return {
        "metadata": {
            "name": name,
            "annotations": annotations or {},
            "ownerReferences": [
                {"kind": "CronJob", "name": "c", "apiVersion": api_version, "controller": True}
            ],
        }
    }


@pytest.mark.parametrize(
    ("manager", "tells"), [("kubectl", False), ("kube-controller-manager", True)]
)
def test_a_job_that_a_user_made_under_a_cron_job_tells_nothing_of_its_controller(manager, tells):
    """As `kubectl create job --from` does; its status is the Job controller's all the same."""
    raw = cron_child("c-24394200", "batch/v1")
    raw["metadata"]["managedFields"] = [
        {"manager": manager},
        {"manager": "kube-controller-manager", "subresource": "status"},
    ]
    assert (Sign.NO_SCHEDULED_ANNOTATION in signs_of("Job", raw)) is tells


def test_a_cron_jobs_job_tells_its_controller_by_its_name_and_owner():
    old = signs_of("Job", cron_child("c-1463652000", "batch/v1beta1"))
    assert {Sign.NAME_IN_SECONDS, Sign.OWNED_BY_V1BETA1, Sign.NO_SCHEDULED_ANNOTATION} <= old
    annotations = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2016-05-19T10:00:00Z"}
    new = signs_of("Job", cron_child("c-24394200", "batch/v1", annotations))
    assert {Sign.NAME_IN_MINUTES, Sign.OWNED_BY_V1, Sign.SCHEDULED_ANNOTATION} <= new


def test_a_job_that_a_user_made_from_a_cron_job_tells_nothing_of_the_kind():
    found = signs_of("Job", cron_child("by-hand", "batch/v1"))
    assert not found & {Sign.NAME_IN_SECONDS, Sign.NAME_IN_MINUTES, Sign.OWNED_BY_V1}


@pytest.mark.parametrize(
    ("component", "reason", "message", "expected"),
    [
        ("job-controller", "Completed", "Job completed", Sign.EVENT_COMPLETED),
        ("job-controller", "Suspended", "Job suspended", Sign.EVENT_SUSPENDED),
        ("job-controller", "TooManyActivePods", "…", Sign.EVENT_TOO_MANY_ACTIVE),
        ("cronjob-controller", "JobAlreadyActive", "…", Sign.EVENT_JOB_ALREADY_ACTIVE),
        (
            "cronjob-controller",
            "SawCompletedJob",
            "Saw completed job: a",
            Sign.EVENT_SAW_COMPLETED_PLAIN,
        ),
        (
            "cronjob-controller",
            "SawCompletedJob",
            "Saw completed job: a, status: Complete",
            Sign.EVENT_SAW_COMPLETED_STATUS,
        ),
        (
            "cronjob-controller",
            "SawCompletedJob",
            "Saw completed job: a, condition: Complete",
            Sign.EVENT_SAW_COMPLETED_CONDITION,
        ),
    ],
)
def test_an_event_of_the_controllers_shows_its_sign(component, reason, message, expected):
    raw = {"source": {"component": component}, "reason": reason, "message": message}
    assert signs_of("Event", raw) == {expected}


def test_an_event_of_anyone_else_shows_nothing():
    raw = {"source": {"component": "kubelet"}, "reason": "Completed", "message": ""}
    assert signs_of("Event", raw) == set()


def test_absence_on_an_object_from_before_the_record_shows_nothing():
    for kind, raw in (("Job", {"status": {"active": 1}}), ("Pod", {}), ("Namespace", {})):
        found = signs_of(kind, raw, new=False, written=False)
        assert not {sign for sign in found if sign.name.startswith("NO_")} - {Sign.NO_SELF_LINK}


def test_a_status_that_another_controller_writes_shows_nothing():
    status = {"active": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    assert Sign.NO_READY in signs_of("Job", {"status": dict(status)})
    foreign = signs_of("Job", {"spec": {"managedBy": "example.com/x"}, "status": dict(status)})
    assert not foreign & {Sign.NO_READY, Sign.COMPLETE_WITHOUT_REASON}


def test_a_suspended_job_shows_whether_its_start_is_cleared():
    suspended = [{"type": "Suspended", "status": "True"}]
    kept = signs_of("Job", {"status": {"conditions": suspended, "startTime": "x"}})
    assert Sign.SUSPENDED_WITH_START in kept
    cleared = signs_of("Job", {"status": {"conditions": suspended, "succeeded": 1}})
    assert Sign.SUSPENDED_WITHOUT_START in cleared
    born = signs_of("Job", {"status": {"conditions": suspended}})
    assert not born & {Sign.SUSPENDED_WITH_START, Sign.SUSPENDED_WITHOUT_START}


@pytest.mark.parametrize("kind", ["Job", "Pod", "CronJob", "Event", "Namespace", "Lease"])
def test_malformed_objects_raise_nothing(kind):
    for raw in (
        {"metadata": {"finalizers": 3}, "status": {"conditions": 3}},
        {},
        {"metadata": None},
        {"metadata": [], "spec": "x", "status": 3},
        {
            "metadata": {"labels": [], "managedFields": "x", "ownerReferences": 1},
            "status": {"conditions": [1, None]},
        },
    ):
        list(facts_of(kind, raw, created_in_record=True, written_in_record=True))
