"""How the steps of each verb grow with what a trace has much of: worlds made by the simulator.

Steps are lines of Python and calls that the interpreter counts, so a figure is the same on every
machine; what DuckDB and Arrow do inside is not counted.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from tests.support.operations import operations
from tracekit.cli.main import main as tracekit
from tracekit.trace.reading.reader import TraceReader

World = dict[str, Any]
#: A line of a watch log.
Line = dict[str, Any]
#: Who is asked about: a Job alone, the first of many, a CronJob.
ONE, FIRST, CRONJOB = "a/j", "a/j-0", "a/c"
_EVERY_MINUTE: World = {"name": "c", "namespace": "a", "pods": {"run": "5s"}}
_JOB: World = {"name": "j", "namespace": "a", "spec": {}, "pods": {"run": "5s"}, "count": 1}


def _cron(n: int, spec: World, **world: Any) -> World:
    spec = {"schedule": "* * * * *", **spec}
    return {"duration": f"{n}m", "cronJobs": [{**_EVERY_MINUTE, "spec": spec}], **world}


def _restarts(n: int) -> World:
    # Twice as many: each costs little beside the runs around it.
    down = [{"at": f"{at * 120 + 70}s", "down": "70s"} for at in range(n * 2)]
    return _cron(n * 4, {}, faults={"restarts": down})


def _jobs(n: int, spec: World, pods: World) -> World:
    job = {**_JOB, "count": n, "every": "2s", "spec": spec, "pods": pods}
    return {"duration": f"{n * 2 + 120}s", "jobs": [job]}


def _namespaces(n: int) -> World:
    first = {**_JOB, "at": "1s"}
    others = [{**_JOB, "namespace": f"n{at}", "at": f"{at * 2}s"} for at in range(1, n)]
    return {"duration": f"{n * 2 + 60}s", "jobs": [first, *others]}


def _pods(n: int) -> World:
    spec = {"completions": n, "parallelism": n}
    return {"duration": "5m", "jobs": [{**_JOB, "spec": spec, "pods": {"run": "20s"}}]}


def _revisions(n: int) -> World:
    patches = [
        {
            "at": f"{at * 3 + 5}s",
            "target": f"jobs/{ONE}",
            "patch": {"metadata": {"annotations": {"k": str(at)}}},
        }
        for at in range(n)
    ]
    seconds = n * 3 + 60
    job = {**_JOB, "pods": {"run": f"{seconds - 30}s"}}
    return {"duration": f"{seconds}s", "jobs": [job], "actions": patches}


def _nothing(n: int) -> World:
    return {"duration": f"{n * 10}m", "jobs": [_JOB]}


def _forbid(n: int) -> World:
    world = _cron(n, {"concurrencyPolicy": "Forbid"})
    world["cronJobs"][0]["pods"] = {"run": "150s"}
    return world


#### What a record has that no world brings about ####


def _with_gaps(lines: list[Line]) -> Iterator[Line]:
    """The watch of pods broken off and begun again whenever a Job is new."""
    pods: dict[str, Line] = {}
    for line in lines:
        kind, stream = line["type"], line["resource"]
        if (stream, kind) == ("jobs", "ADDED"):
            bound = {"resource": "pods", "recv": line["recv"]}
            version = {"resourceVersion": line["object"]["metadata"]["resourceVersion"]}
            yield {**bound, "type": "LIST_BEGIN", "object": version}
            for pod in pods.values():
                yield {**pod, **bound, "type": "LIST"}
            yield {**bound, "type": "LIST_END", "object": version}
        yield line
        if stream == "pods" and kind in ("LIST", "ADDED", "MODIFIED"):
            pods[line["object"]["metadata"]["uid"]] = line
        elif stream == "pods" and kind == "DELETED":
            pods.pop(line["object"]["metadata"]["uid"], None)


def _with_users(lines: list[Line]) -> Iterator[Line]:
    """Each Job made by somebody else."""
    for line in lines:
        if line["resource"] == "jobs" and "metadata" in line["object"]:
            for entry in line["object"]["metadata"].get("managedFields", ()):
                if entry["manager"] != "kube-controller-manager":
                    entry["manager"] = f"user-{line['object']['metadata']['name']}"
        yield line


def _with_divergences(lines: list[Line]) -> Iterator[Line]:
    """Of every third Job a pod too many counted: more, and none would be searched to the end."""
    for line in lines:
        if line["resource"] == "jobs" and line["type"] == "MODIFIED":
            status, name = line["object"]["status"], line["object"]["metadata"]["name"]
            if status.get("succeeded") and int(name.rpartition("-")[2]) % 3 == 0:
                status["succeeded"] += 1
        yield line


#: By what there is much of: how a record of such a world is changed.
CHANGED: dict[str, Callable[[list[Line]], Iterator[Line]]] = {
    "gaps": _with_gaps,
    "users": _with_users,
    "divergences": _with_divergences,
}
_SHORT_LIVED = {"ttlSecondsAfterFinished": 5}
#: By what there is much of: the world with so many, and whom it is asked about.
DIMENSIONS: dict[str, tuple[Callable[[int], World], str]] = {
    "runs of a CronJob": (lambda n: _cron(n, {}), CRONJOB),
    "runs that Forbid skips": (_forbid, CRONJOB),
    "restarts": (_restarts, CRONJOB),
    "pods of a Job": (_pods, ONE),
    "Jobs": (lambda n: _jobs(n, {}, {"run": "5s"}), FIRST),
    "Jobs that fail": (lambda n: _jobs(n, {"backoffLimit": 0}, {"run": "5s", "exit": 1}), FIRST),
    "namespaces": (_namespaces, ONE),
    "revisions of a Job": (_revisions, ONE),
    "tens of minutes without a change": (_nothing, ONE),
    "gaps": (lambda n: _jobs(n, _SHORT_LIVED, {"run": "5s"}), FIRST),
    "users": (lambda n: _jobs(n, {}, {"run": "5s"}), FIRST),
    "divergences": (lambda n: _jobs(n, {}, {"run": "5s"}), FIRST),
}


def verbs(trace: Path, about: str, scratch: Path) -> dict[str, list[str]]:
    """What is asked of a trace, by the verb's name."""
    name = str(trace)
    return {
        "replay": ["replay", "--diff", "--processes", "1", name],
        "diagnose": ["diagnose", name],
        "explain": ["explain", "-v", name, about],
        "jobs": ["jobs", name],
        "sql": ["sql", name, "SELECT count(*) FROM cron_ticks"],
        "report": ["report", name, "-o", str(scratch / "report.html"), "--force"],
        "watch": ["watch", "--once", name],
        "compact": ["compact", name, "-o", f"{name}-compact-{next(_NUMBERS)}"],
        "whatif": ["whatif", name, "--kubernetes-version", "v1.37.1"],
        "import watch": ["import", "watch", _log_of(trace), "-o", f"{name}-again-{next(_NUMBERS)}"],
    }


#: Each trace that is made gets a name of its own.
_NUMBERS = count()


def _log_of(trace: Path) -> str:
    """The rows of a trace as a watch log beside it."""
    log = trace.with_suffix(".jsonl")
    if not log.exists():
        columns = ("seq", "stream", "type", "recv_ns", "raw")
        rows = TraceReader(trace).table(columns).sort_by("seq").to_pylist()
        log.write_bytes(b"".join(_line(row) for row in rows if row["raw"]))
    return str(log)


def _change(trace: Path, change: Callable[[list[Line]], Iterator[Line]]) -> None:
    """Put a changed record in the place of a trace."""
    log = Path(_log_of(trace))
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    log.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in change(lines)))
    shutil.rmtree(trace)
    _run(["import", "watch", str(log), "-o", str(trace), "--kubernetes-version", "v1.36.3"])


def _line(row: dict[str, Any]) -> bytes:
    whole = {"recv": row["recv_ns"], "resource": row["stream"], "type": row["type"]}
    return orjson.dumps({**whole, "object": orjson.Fragment(row["raw"])}) + b"\n"


def steps_of(dimension: str, size: int, scratch: Path) -> Iterator[tuple[str, list[int]]]:
    """Each verb with its steps where there are 1, 2 and 4 times as many."""
    made, about = DIMENSIONS[dimension]
    found: dict[str, list[int]] = {}
    for times in (1, 2, 4):
        trace = scratch / f"{dimension.replace(' ', '-')}-{size * times}"
        world = {"kubernetesVersion": "v1.36.3", "seed": 4, **made(size * times)}
        workload = scratch / "workload.json"
        workload.write_bytes(orjson.dumps(world))
        _run(["simulate", "--workload", str(workload), "-o", str(trace)])
        if dimension in CHANGED:
            _change(trace, CHANGED[dimension])
        os.environ["TRACEKIT_CACHE_DIR"] = str(scratch / "cache-before")
        _log_of(trace)  # reads the trace: what is kept of it then is not there for the verbs
        if times == 1:  # what is done once a process is done now
            for arguments in verbs(trace, about, scratch).values():
                _run(arguments)
        os.environ["TRACEKIT_CACHE_DIR"] = str(scratch / f"cache-{trace.name}")
        for verb, arguments in verbs(trace, about, scratch).items():
            found.setdefault(verb, []).append(operations(lambda a=arguments: _run(a)))  # type: ignore[misc]
    yield from found.items()


def bend_of(steps: list[int]) -> float:
    """What of the steps of the largest no straight line explains: 0 linear, 0.375 quadratic."""
    few, some, many = steps
    return ((many - some) - 2 * (some - few)) / many


def _run(arguments: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            tracekit(arguments)
        except SystemExit as ended:
            if ended.code not in (0, 1, None):
                raise RuntimeError(f"{arguments}: {err.getvalue()[-500:]}") from ended
