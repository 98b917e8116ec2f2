"""Other tools' records of a cluster: kshrk, kube-scheduler-simulator.

| kind | format | source |
|---|---|---|
| `kshrk` | ZIP of Zstandard entries: `metadata.json`, `records/…` (format versions 1 and 2); or JSON lines | phenixblue/k8shark, internal/archive |
| `sched-recorder` | JSON lines `{"time", "event", "resource"}` | kube-scheduler-simulator, simulator/recorder |
"""  # noqa: E501

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

import orjson
import zstandard

from tracekit.base.errors import TraceFormatError
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.base.numbers import whole_number
from tracekit.trace.importers.archives import BrokenArchiveError, archive_errors
from tracekit.trace.importers.documents import documents
from tracekit.trace.importers.frames import frame, listed, split_list, stream_of
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.sample import ZIP_MAGIC, Sample
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.values import check_values

Raw = dict[str, Any]

_AGE_MAGIC = b"age-encryption.org/"
_ENTRY_BYTES_MAX = 256 * 1024 * 1024
#: What all entries together may come to, as all are held at once: each is compressed by itself,
#: which makes JSON of servers five to forty times smaller.
_ARCHIVE_BYTES_MIN = 256 * 1024 * 1024
_ARCHIVE_TIMES = 100
_RECORD = re.compile(r"k8shark-capture/records/[0-9a-f]+/\d+\.json(\.zst)?")
_OK = 200
_SCHEDULER_TYPES = {"Add": "ADDED", "Update": "MODIFIED", "Delete": "DELETED"}


class KshrkLines:
    """Makes a watch log of a k8shark archive: polls are lists, watch events are events."""

    def __init__(self, result: ImportResult) -> None:
        self._result = result
        self.kubernetes_version: str | None = None
        self.guessed = 0

    def lines(self, source: LineSource) -> Iterator[bytes]:
        """The lines of the watch log for one archive."""
        if source.peek(len(_AGE_MAGIC)) == _AGE_MAGIC:
            raise TraceFormatError(f"{source.name} is encrypted: decrypt it first (kshrk decrypt)")
        if source.peek(4) == ZIP_MAGIC:
            records: Iterable[Raw] = self._archive(source)
        else:
            records = self._lines(source)
        ordered = sorted(
            ((parse_rfc3339(str(r.get("captured_at"))) or 0, i, r) for i, r in enumerate(records)),
            key=lambda item: item[:2],
        )
        yield from self._frames(ordered)

    def _lines(self, source: LineSource) -> Iterator[Raw]:
        for _, text in documents(source.lines(), source.name):
            record = _json(text)
            if isinstance(record, dict):
                yield record
            else:
                self._result.problems[f"lines of {source.name} that hold no record, left out"] += 1

    def _leave(self, what: str) -> None:
        self._result.problems[f"{what}, left out"] += 1

    def rest(self) -> Iterator[bytes]:
        """Nothing: each archive stands for itself."""
        return iter(())

    def _archive(self, source: LineSource) -> Iterator[Raw]:
        packed = b"".join(source.chunks())
        try:
            with archive_errors():
                archive = zipfile.ZipFile(io.BytesIO(packed))
        except BrokenArchiveError:
            raise TraceFormatError(
                f"{source.name} is a broken archive: it was cut off, or its capture was; copy it "
                "again"
            ) from None
        names = archive.namelist()
        unpacked = 0
        if "k8shark-capture/metadata.json" in names:
            about = _json(_entry(archive, "k8shark-capture/metadata.json", source.name))
            if isinstance(about, dict) and isinstance(about.get("kubernetes_version"), str):
                self.kubernetes_version = about["kubernetes_version"]
        for name in names:
            if not _RECORD.fullmatch(name):
                continue
            text = _entry(archive, name, source.name)
            unpacked += len(text)
            if unpacked > max(_ARCHIVE_BYTES_MIN, len(packed) * _ARCHIVE_TIMES):
                raise TraceFormatError(
                    f"{source.name} holds more than {_ARCHIVE_TIMES} times the bytes that it has: "
                    "it is no capture"
                )
            record = _json(text)
            if isinstance(record, dict):
                yield record
            else:
                self._leave("entries of an archive that hold no record")

    def _frames(self, records: Iterable[tuple[int, int, Raw]]) -> Iterator[bytes]:
        """Polls of the namespaces of one kind in one round are one list."""
        rounds: dict[str, dict[str, tuple[int, list[Raw], str | None]]] = {}
        for at_ns, _, record in records:
            body, path = record.get("response_body"), str(record.get("api_path"))
            if record.get("response_code") != _OK or not isinstance(body, dict):
                self._leave("records that hold no answer (200)")
                continue
            event = record.get("event_type")
            if event in ("ADDED", "MODIFIED", "DELETED"):
                stream = stream_of(body)
                if stream is not None:
                    self._result.shapes["watch event"] += 1
                    yield frame(stream, str(event), body, at_ns)
                else:
                    self._leave("watch events of other kinds")
                continue
            lists = split_list(body)
            if lists is None or "?" in path:
                self._leave("answers that are no list, or of a part of one")
                continue
            if not lists[0]:
                self._leave("lists of other kinds")
            self._result.shapes["poll"] += 1
            for stream, items in lists[0].items():
                now = rounds.setdefault(stream, {})
                if path in now:
                    yield from _round(stream, now)
                    now.clear()
                now[path] = (at_ns, items, lists[1])
        for stream, last in rounds.items():
            yield from _round(stream, last)


def _round(stream: str, polls: dict[str, tuple[int, list[Raw], str | None]]) -> Iterator[bytes]:
    items = [item for _, found, _ in polls.values() for item in found]
    revisions = [number for _, _, rv in polls.values() if (number := whole_number(rv)) is not None]
    at_ns = max(at for at, _, _ in polls.values())
    yield from listed(stream, items, str(min(revisions)) if revisions else None, at_ns)


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _entry(archive: zipfile.ZipFile, name: str, where: str) -> bytes:
    try:
        with archive_errors(), archive.open(name) as entry:
            stream: IO[bytes] | zstandard.ZstdDecompressionReader = entry
            if name.endswith(".zst"):
                stream = zstandard.ZstdDecompressor().stream_reader(entry)
            data = bytes(stream.read(_ENTRY_BYTES_MAX + 1))
    except (zstandard.ZstdError, BrokenArchiveError) as error:
        raise TraceFormatError(
            f"{where} is damaged: its entry {name} cannot be read ({error}); copy it again"
        ) from error
    if len(data) > _ENTRY_BYTES_MAX:
        raise TraceFormatError(
            f"{where} has an entry of more than {_ENTRY_BYTES_MAX >> 20} MiB: it is no capture"
        )
    check_values(data, where)
    return data


class SchedulerLines:
    """Makes a watch log of what kube-scheduler-simulator's sched-recorder wrote."""

    def __init__(self, result: ImportResult) -> None:
        self._result = result
        self._known: dict[tuple[str, str, str], Raw] = {}
        self.kubernetes_version: str | None = None
        self.guessed = 0

    def lines(self, source: LineSource) -> Iterator[bytes]:
        """The lines of the watch log for one file."""
        for _, text in documents(source.lines(), source.name):
            record = _json(text)
            obj = record.get("resource") if isinstance(record, dict) else None
            kind = _SCHEDULER_TYPES.get(str(record.get("event"))) if obj is not None else None
            if not isinstance(obj, dict) or kind is None:
                self._result.problems[f"lines of {source.name} that are no records"] += 1
                continue
            stream = stream_of(obj)
            if stream is None:
                continue
            self._result.shapes["record"] += 1
            yield frame(stream, *self._state(stream, kind, obj), _time(record))

    def rest(self) -> Iterator[bytes]:
        """Nothing: each file stands for itself."""
        return iter(())

    def _state(self, stream: str, kind: str, obj: Raw) -> tuple[str, Raw]:
        """A deletion has the name only: the last state known is what is gone."""
        meta = obj.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        key = (stream, str(meta.get("namespace")), str(meta.get("name")))
        if kind == "DELETED":
            return kind, self._known.pop(key, obj)
        listed_first = kind == "ADDED" and key not in self._known and not _is_new(obj)
        self._known[key] = obj
        return ("LIST" if listed_first else kind), obj


def _is_new(obj: Raw) -> bool:
    """Whether an informer's first sight of an object can be its creation: nothing happened yet."""
    status, spec = obj.get("status"), obj.get("spec")
    started = isinstance(status, dict) and bool(set(status) - {"phase", "qosClass"})
    return not started and not (isinstance(spec, dict) and spec.get("nodeName"))


def _time(record: Any) -> int | None:
    at = record.get("time") if isinstance(record, dict) else None
    return parse_rfc3339(at) if isinstance(at, str) else None


def is_kshrk(sample: Sample) -> bool:
    """Whether a file is a k8shark archive."""
    if sample.head.startswith(_AGE_MAGIC):
        return True
    if sample.head.startswith(ZIP_MAGIC):
        return b"k8shark-capture/" in sample.head
    return any("api_path" in r and "captured_at" in r for r in sample.values)


def is_scheduler(sample: Sample) -> bool:
    """Whether a file is of sched-recorder."""
    return any(
        isinstance(r.get("event"), str) and r["event"] in _SCHEDULER_TYPES and "resource" in r
        for r in sample.values
    )
