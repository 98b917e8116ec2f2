"""A user without a home directory, as a container may run one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracekit.base.errors import UsageError
from tracekit.base.home import below_home
from tracekit.cli.config import config_file
from tracekit.trace.stores.cache_folder import cache_folder


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TRACEKIT_CACHE_DIR", "TRACEKIT_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("homeless")
def test_without_a_home_nothing_is_read_and_the_cache_is_asked_for() -> None:
    assert below_home(".config") is None
    assert config_file() is None
    with pytest.raises(UsageError, match="name a folder that it may write with TRACEKIT_CACHE_DIR"):
        cache_folder()


def test_a_cache_that_others_can_write_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRACEKIT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "tracekit"
    assert cache_folder() == folder  # which need not be there yet
    folder.mkdir(mode=0o700)
    assert cache_folder() == folder
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="others can write there"):
        cache_folder()
