"""The right that a 403 says is missing."""

from __future__ import annotations

import pytest

from tracekit.base.kube.rights import missing_right

RUNNER = "system:serviceaccount:ci:runner"


def says(rest: str, user: str = RUNNER) -> str:
    return f'jobs.batch is forbidden: User "{user}" cannot {rest}'


@pytest.mark.parametrize(
    ("message", "commands"),
    [
        (says('create resource "jobs" in API group "batch" in the namespace "app"'), (
            "kubectl create role create-jobs-batch -n app --verb=create --resource=jobs.batch",
            "kubectl create rolebinding create-jobs-batch -n app --role=create-jobs-batch",
            "--serviceaccount=ci:runner",
            f"kubectl auth can-i create jobs.batch -n app --as={RUNNER}")),
        (says('patch resource "jobs/status" in API group "batch" in the namespace "app"', "lukas"), (
            "--verb=patch --resource=jobs.batch/status", "--user=lukas")),
        (says('list resource "pods" in API group "" at the cluster scope'), (
            "kubectl create clusterrole list-pods --verb=list --resource=pods",
            "kubectl create clusterrolebinding list-pods --clusterrole=list-pods",
            "kubectl auth can-i list pods --as=")),
        (says('create jobs.batch in the namespace "app"'), ("--resource=jobs.batch",)),
        (says('create resource "jobs" in API group "batch" in the namespace "app"',
              "system:anonymous"), ("without credentials", "can-i create jobs.batch -n app")),
        (says('create resource "jobs" in API group "batch" in the namespace "app"', "a b; ls"),
         ("--user='a b; ls'",)),
    ],
)  # fmt: skip
def test_the_commands_give_what_the_message_asks_for(
    message: str, commands: tuple[str, ...]
) -> None:
    right = missing_right(message)
    assert right is not None
    assert [part for part in commands if part not in right.todo] == [], right.todo


@pytest.mark.parametrize(
    "message",
    ['pods "x" is forbidden: exceeded quota: two', 'User "a" cannot be found in the namespace "b"'],
)
def test_of_another_refusal_no_right_is_missing(message: str) -> None:
    assert missing_right(message) is None
