"""The audit policy that `manifests --audit-policy` prints: what it logs, what it costs."""

from __future__ import annotations

import io

import orjson
import pytest
import yaml
import zstandard

from tests.unit.trace.importers.audit_logs import shipped
from tracekit.cli.main import main
from tracekit.record.operation.audit_policy import (
    BYTES_PER_JOB,
    BYTES_PER_JOB_COMPRESSED,
    PODS_PER_JOB,
    audit_policy,
)


def logs(entry, policy):
    """Whether the policy logs this entry with its bodies, as the API server decides it."""
    ref = entry.get("objectRef") or {}
    resource = "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
    for rule in policy["rules"]:
        if "verbs" in rule and entry["verb"] not in rule["verbs"]:
            continue
        wanted = rule.get("resources")
        if wanted is None or any(
            group["group"] == ref.get("apiGroup", "")
            and resource in group["resources"]
            and ("resourceNames" not in group or ref.get("name") in group["resourceNames"])
            for group in wanted
        ):
            return rule["level"] == "RequestResponse"
    return False


def without_managed_fields(entry):
    for name in ("requestObject", "responseObject"):
        meta = (entry.get(name) or {}).get("metadata") or {}
        meta.pop("managedFields", None)
    return orjson.dumps(entry) + b"\n"


def test_it_logs_all_that_is_needed_at_the_cost_that_it_states():
    policy, jobs, pods = audit_policy(), set(), set()
    text = io.BytesIO()
    for line in shipped("v1.36.3-churn7"):
        entry = orjson.loads(line)
        resource = (entry.get("objectRef") or {}).get("resource")
        if not logs(entry, policy):
            assert resource not in ("jobs", "cronjobs", "pods")
            continue
        if resource in ("jobs", "cronjobs", "pods"):
            text.write(without_managed_fields(entry))
            uid = ((entry.get("responseObject") or {}).get("metadata") or {}).get("uid")
            if uid and entry["verb"] == "create":
                (jobs if resource == "jobs" else pods).add(uid)
    size, small = text.tell(), len(zstandard.compress(text.getvalue()))
    assert size / len(jobs) == pytest.approx(BYTES_PER_JOB, rel=0.05)
    assert small / len(jobs) == pytest.approx(BYTES_PER_JOB_COMPRESSED, rel=0.1)
    assert len(pods) / len(jobs) == pytest.approx(PODS_PER_JOB, rel=0.05)


def test_the_verb_prints_it_as_yaml_with_the_cost(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["manifests", "--audit-policy"])
    assert not stopped.value.code
    out = capsys.readouterr().out
    assert yaml.safe_load(out) == audit_policy()
    assert "KB of JSON for a Job" in out


def test_it_is_for_the_whole_cluster(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["manifests", "--audit-policy", "-A"])
    assert stopped.value.code == 2
    assert "leave out -n and -A" in capsys.readouterr().err
