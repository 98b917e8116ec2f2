"""Files that verbs write for their user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracekit.base.errors import UsageError
from tracekit.cli.targets import check_free, opened, text_opened


def test_a_link_is_there_also_where_it_leads_nowhere(tmp_path: Path) -> None:
    target = tmp_path / "out"
    check_free(target, force=False)
    target.symlink_to("victim")
    with pytest.raises(UsageError, match="exists: choose another name with --report, or add"):
        check_free(target, force=False, option="--report")
    check_free(target, force=True)


@pytest.mark.parametrize("make", [opened, text_opened])
def test_what_comes_after_the_check_is_not_written_through(make, tmp_path: Path) -> None:
    target, victim = tmp_path / "out", tmp_path / "victim"
    target.symlink_to(victim)
    with pytest.raises(FileExistsError):
        make(target, force=False)
    assert not victim.exists()
    with make(target, force=True):
        assert victim.exists()
