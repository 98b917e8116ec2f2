"""A footer that was found in order is not gone through again; one that was not, is."""

from __future__ import annotations

import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracekit.trace.format.seal import DamageError
from tracekit.trace.reading import known_limits
from tracekit.trace.reading.known_limits import check_once

FOOTER = b"a footer"


class Asked:
    """Stands for the check: counts how often it is asked, and may find damage."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        self.damaged = False
        monkeypatch.setattr(known_limits, "check_chunks", self)

    def __call__(self, *_: object) -> None:
        self.times += 1
        if self.damaged:
            raise DamageError("it is damaged")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


@pytest.fixture
def metadata(tmp_path: Path) -> pq.FileMetaData:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    return pq.read_metadata(tmp_path / "a.parquet")


def test_what_was_in_order_is_known(cache: Path, asked: Asked, metadata: pq.FileMetaData) -> None:
    for footer, size, times in ((FOOTER, 9, 1), (FOOTER, 9, 1), (FOOTER, 8, 2), (b"another", 9, 3)):
        check_once(metadata, footer, size)
        assert asked.times == times
    kept = [path.stat() for path in (cache / "footers").iterdir()]
    assert [(about.st_size, stat.S_IMODE(about.st_mode)) for about in kept] == [(0, 0o600)] * 3


def test_damage_is_found_each_time(cache: Path, asked: Asked, metadata: pq.FileMetaData) -> None:
    asked.damaged = True
    for times in (1, 2):
        with pytest.raises(DamageError):
            check_once(metadata, FOOTER, 9)
        assert asked.times == times
    assert not cache.exists()


def test_without_a_place_to_write_each_is_looked_at(
    cache: Path, asked: Asked, metadata: pq.FileMetaData
) -> None:
    cache.write_text("a file")
    check_once(metadata, FOOTER, 9)
    check_once(metadata, FOOTER, 9)
    assert asked.times == 2
