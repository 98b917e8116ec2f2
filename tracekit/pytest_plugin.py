"""A pytest plugin: assert in CI that a controller still does what its rules demand.

    def test_recorded_run(assert_no_divergence):
        assert_no_divergence("traces/nightly", version="v1.36.3")

The plugin is loaded by pytest itself (entry point `pytest11`) and imports the rest of tracekit only
when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from tracekit.api import Trace

#: Divergences written out in a failure; the rest is a number.
_SHOWN = 10


class AssertNoDivergence(Protocol):
    """What the fixture `assert_no_divergence` is."""

    def __call__(
        self,
        trace: str | Path,
        *,
        version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        namespace: str | None = None,
        job: str | None = None,
        controllers: Sequence[str] | None = None,
        min_actions: int = 1,
    ) -> None:
        """Fail the test if the rules of `version` do not explain what the trace shows.

        So does a part that is not in the trace, or has fewer than `min_actions` actions to judge.
        """


class GoldenTrace(Protocol):
    """What the fixture `golden_trace` is."""

    def __call__(self, name: str) -> Trace:
        """Open a trace of the folder that the ini option `tracekit_traces` names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option that says where golden traces are."""
    parser.addini(
        "tracekit_traces", "folder of golden traces, from the root directory", default="traces"
    )


@pytest.fixture(scope="session")
def assert_no_divergence() -> AssertNoDivergence:
    """Assert that the rules of a Kubernetes version explain all that a trace shows."""
    return check_no_divergence


@pytest.fixture(scope="session")
def golden_trace(pytestconfig: pytest.Config) -> GoldenTrace:
    """Open a golden trace by name; a missing one fails with the names that there are."""
    folder = pytestconfig.rootpath / pytestconfig.getini("tracekit_traces")

    def opened(name: str) -> Trace:
        import tracekit  # noqa: PLC0415 - only for tests that ask for it
        from tracekit.base.escaping import for_terminal  # noqa: PLC0415 - as above

        path = folder / name
        if not path.is_dir():
            known = ", ".join(sorted(p.parent.name for p in folder.glob("*/trace.json"))) or "none"
            text = f"there is no trace {path} (there are: {known})"
            pytest.fail(for_terminal(text), pytrace=False)
        return tracekit.open(path)

    return opened


def check_no_divergence(
    trace: str | Path,
    *,
    version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    namespace: str | None = None,
    job: str | None = None,
    controllers: Sequence[str] | None = None,
    min_actions: int = 1,
) -> None:
    """Fail with the divergences, their fields and their why."""
    __tracebackhide__ = True
    import tracekit  # noqa: PLC0415 - only for tests that ask for it
    from tracekit.base.errors import TracekitError  # noqa: PLC0415
    from tracekit.base.escaping import for_terminal  # noqa: PLC0415

    try:
        replay = tracekit.open(trace).replay(
            version,
            feature_gates=feature_gates,
            namespace=namespace,
            job=job,
            controllers=controllers,
            min_actions=min_actions,
        )
    except TracekitError as error:
        pytest.fail(for_terminal(f"{trace} gets no verdict: {error}", lines=True), pytrace=False)
    found = replay.divergences
    if not found and not replay.misfit:
        return
    lines = [f"{len(found)} divergences from the rules of {replay.kubernetes_version} in {trace}:"]
    if replay.misfit:
        lines.append(f"  the record contradicts the rules: {replay.misfit}")
    for judgement in found[:_SHOWN]:
        where = judgement.object
        lines.append(
            f"  {judgement.verdict.value} {judgement.action} of {where.kind} "
            f"{where.namespace}/{where.name} ({judgement.subject}): {judgement.why}"
        )
        lines += [
            f"    {f.path}: expected {f.expected!r}, observed {f.observed!r}"
            for f in judgement.fields
        ]
    if len(found) > _SHOWN:
        lines.append(f"  … and {len(found) - _SHOWN} more: tracekit replay --diff {trace}")
    pytest.fail(for_terminal("\n".join(lines), lines=True), pytrace=False)
