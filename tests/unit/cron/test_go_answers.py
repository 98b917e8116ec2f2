"""Every recorded answer of the Go libraries is ours too: times, accept or reject, error texts."""

from __future__ import annotations

from collections import Counter

import pytest
import tzdata

from tests.support.go_answers import rows
from tracekit.base.cron import (
    CronPanicError,
    CronSpecError,
    Generation,
    load_zone,
    next_activations_ns,
    parse,
)
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339

#: Morocco's rules changed in this edition of the tz database; the answers are older.
MOROCCO_CHANGED = "2026c"


def test_the_shared_answers_of_both_libraries_agree() -> None:
    compared = Counter()
    for row in rows("robfig.jsonl.zst"):
        if row.get("zone") == "Africa/Casablanca" and tzdata.IANA_VERSION >= MOROCCO_CHANGED:
            continue
        compared[row["lib"], "error" in row] += 1
        if "error" in row:
            with pytest.raises(CronSpecError) as caught:
                parse(row["spec"])
            assert str(caught.value) == row["error"], row
            continue
        from_ns = parse_rfc3339(row["from"])
        assert from_ns is not None
        expected = [parse_rfc3339(text) for text in row["next"] if text != "never"]
        got = next_activations_ns(
            row["spec"], from_ns=from_ns, count=8, zone=load_zone(row["zone"])
        )
        assert got == expected, row
        assert len(got) == 8 or row["next"][-1] == "never"
    assert sum(compared.values()) > 3_000
    assert all(count > 20 for count in compared.values())


def test_the_answers_of_the_library_inside_old_kubernetes_agree() -> None:
    generations = {generation.value: generation for generation in Generation}
    compared = Counter()
    for row in rows("robfig-own.jsonl.zst"):
        generation = generations[row["lib"]]
        try:
            found = next_activations_ns(
                row["spec"],
                from_ns=row["from_ns"],
                count=6,
                generation=generation,
                zone=load_zone(row["zone"]),
            )
        except CronPanicError as error:
            got = {"panic": str(error)}
        except CronSpecError as error:
            got = {"error": str(error)}
        else:
            seconds = [at_ns // NS_PER_S for at_ns in found]
            got = {"next": [*seconds, *([-1] if len(seconds) < 6 else [])]}
        kind = next(iter(got))
        assert got[kind] == row.get(kind), (row, got)
        compared[generation, kind] += 1
    assert compared[Generation.GEN1, "next"] > 800
    assert compared[Generation.GEN1, "error"] > 50
    assert compared[Generation.GEN3, "panic"] >= 3
