"""Recorded answers of the Go libraries themselves (see `data/README.md`)."""

from __future__ import annotations

import json
from pathlib import Path

import zstandard

DATA = Path(__file__).parents[1] / "unit/cron/data"


def rows(name: str) -> list[dict]:
    text = zstandard.ZstdDecompressor().decompress(
        (DATA / name).read_bytes(), max_output_size=8_000_000
    )
    return [json.loads(line) for line in text.decode().splitlines()]
