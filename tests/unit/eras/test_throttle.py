"""What the controller manager's flags tell of its clients."""

from __future__ import annotations

import pytest

from tracekit.api.trace import Trace
from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.model.process.manager import ManagerFlags
from tracekit.versions.texts import parse_controller_flags
from tracekit.versions.throttle import DEFAULT_THROTTLE, Throttle, throttle_of


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), Throttle(20, 30)),
        (("--kube-api-qps=5", "--kube-api-burst=10"), Throttle(5, 10)),
        (("kube-controller-manager", "--kube-api-qps", "2.5", "--v=2"), Throttle(2.5, 30)),
        (("--kube-api-qps=many", "--kube-api-burst"), DEFAULT_THROTTLE),
        (("--kube-api-qps=nan", "kube-api-burst=7"), DEFAULT_THROTTLE),
        (("--kube_api_qps=1e2", "--kube_api_burst", "0x96"), Throttle(100, 150)),
        (("--kube-api-qps=0x1p3", "--kube-api-burst=0226"), Throttle(8, 150)),
        (("--kube-api-qps=0x10", "--kube-api-burst=1e3"), DEFAULT_THROTTLE),
        ((" --kube-api-qps=1", "--kube-api-burst= 7"), DEFAULT_THROTTLE),
        (ManagerFlags(100, 200, 3).written, Throttle(100, 200)),
    ],
)
def test_what_is_no_number_leaves_the_default(flags: tuple[str, ...], expected: Throttle) -> None:
    assert throttle_of(flags) == expected


def test_tokens_of_a_slow_client_take_their_time() -> None:
    assert Throttle(2, 3).wait_ns(20, NS_PER_S) == 10 * NS_PER_S
    assert Throttle(100, 200).wait_ns(20, NS_PER_S) == NS_PER_S
    assert Throttle(0, 0).wait_ns(20, NS_PER_S) == NS_PER_S, "nothing is throttled"


def test_flags_are_written_as_the_command_line_has_them() -> None:
    written = ManagerFlags(concurrent_cron_job_syncs=7, concurrent_ttl_syncs=2).written
    assert written == (
        "--concurrent-cron-job-syncs=7",
        "--concurrent-ttl-after-finished-syncs=2",
    )


def test_a_command_line_is_taken_as_it_is_pasted() -> None:
    words = ("/usr/bin/kube-controller-manager", "--kube-api-qps", "-1", "-v", "2", "--a='b c'")
    assert parse_controller_flags(words) == words
    assert parse_controller_flags("-v=2 --a='b c'") == ("-v=2", "--a=b c")
    assert parse_controller_flags("") == ()
    given = "--a=1 '' --kube_api_burst=0x96 --kube-api-qps 1e2"
    assert parse_controller_flags(given)[1:3] == ("", "--kube_api_burst=0x96")


@pytest.mark.parametrize(
    "words", [["nan"], ["--"], ["--a", "b", "c"], ["--kube-api-qps", "x"], ["--kube_api_burst=1.5"]]
)
def test_what_is_no_flag_is_refused_in_python_too(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"write (it|them) like --kube-api-qps=100"):
        Trace("nowhere", controller_flags=words)
