"""The kinds of source that an import knows: how each is recognised, and who reads it.

A kind is told by what a file begins with, never by its name: names lie, and standard input has
none. Kinds are asked in order; the first that says yes reads the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import orjson
from msgspec import Struct

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.limits import NESTING_MAX, TOO_DEEP, is_nested_deeper
from tracekit.trace.format.model import Call, Gap
from tracekit.trace.importers import strangers
from tracekit.trace.importers.audit.importer import AuditReader
from tracekit.trace.importers.audit.texts import is_csv
from tracekit.trace.importers.audit.wrappers import BYTE_MARKS, unwrap
from tracekit.trace.importers.envelopes import Frame
from tracekit.trace.importers.etcd.bbolt import is_bbolt
from tracekit.trace.importers.etcd.importer import (
    DeltaReader,
    EtcdReader,
    KineReader,
)
from tracekit.trace.importers.etcd.sqlite_file import SQLITE_MAGIC
from tracekit.trace.importers.human_text import printed_for_people
from tracekit.trace.importers.kcmlog import KcmLogReader, beside_record, is_kcm_log
from tracekit.trace.importers.kubectl import KubectlLines, has_streams, is_kubectl
from tracekit.trace.importers.kubectl_text import (
    HINTS,
    KUBECTL_TEXT,
    KubectlTextReader,
    is_kubectl_text,
)
from tracekit.trace.importers.observation import Observation
from tracekit.trace.importers.recorders import (
    KshrkLines,
    SchedulerLines,
    is_kshrk,
    is_scheduler,
)
from tracekit.trace.importers.refusals import refusal_in
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.sample import DEEP_BYTES, SAMPLE_BYTES, Sample
from tracekit.trace.importers.source import BEGINS_BLANK, BLANK, EMPTY, LineSource, in_command
from tracekit.trace.importers.values import has_half_a_character
from tracekit.trace.importers.watch import read_line

#: Text in which none of these stands is of no kind.
_HINTS = re.compile(
    b"|".join((b"apiVersion", *BYTE_MARKS, b""))
    + rb"\"(?:eyJ|ewo|W3si|H4sI)|\"resource\"|etcdEvent|api_path|\"object\"|"
    rb"age-encryption|k8s\.event\.uid|involved_?[oO]bject|\"metadata\"|\"items\"|"
    rb"job_?controller(?:v2)?\.go|controllermanager\.go|\bevent\.go:|" + HINTS
)

#: What begins as JSON: a log line may begin with a bracket, too.
_BEGINS_JSON = re.compile(rb"\s*(?:\{\s*(?:[\"}]|\Z)|\[\s*(?:[\[{\"\]]|\Z))")

#: No API server writes that; what cuts a text between two escapes does.
_HALF = (
    "is JSON with half a character in a text (\\ud800 to \\udfff alone), which the program that "
    "wrote the file has cut: name what `kubectl get … -o json` itself prints"
)

Row = Observation | Call | Gap


class Reader(Protocol):
    """Reads files of one kind and hands out rows in order of time."""

    result: ImportResult

    @property
    def kubernetes_version(self) -> str | None:
        """The cluster's version, as far as the files tell."""

    def read(self, source: LineSource) -> None:
        """Take what a file holds."""

    def rows(self) -> Iterator[Row]:
        """All rows, once every file was read."""


class LineMaker(Protocol):
    """Makes the lines of a watch log out of files of one kind."""

    #: How many rows have a time that only the objects tell.
    guessed: int
    kubernetes_version: str | None

    def lines(self, source: LineSource) -> Iterator[bytes]:
        """The lines for one file."""

    def rest(self) -> Iterator[bytes]:
        """The lines that only all files together make."""


class Kind(Struct, frozen=True):
    """One kind of source."""

    name: str
    #: In the words of a help text: what such a file is.
    about: str
    recognises: Callable[[Sample], bool]
    #: Makes a reader, with a directory for temporary files; None: the watch importer reads it.
    reader: Callable[[Path, ImportResult], Reader] | None = None
    #: Makes a watch log of it; None: it is one.
    lines: Callable[[ImportResult], LineMaker] | None = None
    #: Of two sources that tell the same revision, the lower one's row is kept.
    rank: int = 5
    #: For the table in docs/rescue.md: a command, what is kept of such a file, what it cannot tell.
    example: str = ""
    kept: str = ""
    lacks: str = ""


def _is_watch(sample: Sample) -> bool:
    return any(isinstance(read_line(text), Frame) for text in sample.texts)


def _is_audit(sample: Sample) -> bool:
    if not sample.is_text:
        return False
    if sample.is_yaml:
        versions = sample.fields.get("apiVersion", set())
        if not versions and b"auditID" in sample.head:  # what `aws --output yaml` prints
            return True
        is_policy = sample.fields.get("kind") == {"Policy"}
        of_audit = any(map(_is_audit_version, versions)) and not is_policy
        return "protoPayload" in sample.fields or of_audit
    for text in sample.texts:
        try:
            if next(unwrap(text), None) is not None:
                return True
        except ValueError:
            continue
    return is_csv(sample.head)


def _is_audit_version(version: str) -> bool:
    return version.startswith("audit.k8s.io/")


#: The log of a controller manager is asked about first: its JSON lines name kinds and versions.
KINDS: tuple[Kind, ...] = (
    Kind(
        "kcm-log",
        "a kube-controller-manager's own log (klog, text or JSON), beside a record",
        is_kcm_log,
        KcmLogReader,
        rank=9,
        example="import RECORD --with kube-controller-manager.log",
        kept="each sync with begin and end, Events, refused calls, version, flags",
        lacks="states; alone it is no trace (`diagnose FILE` tells of its Events)",
    ),
    Kind(
        "watch",
        "list and watch results, one JSON object a line",
        _is_watch,
        rank=0,
        example="import watch.jsonl.gz",
        kept="every line, one that cannot be read as `UNPARSED`",
        lacks="what happened in gaps, before the first list, in streams without lines",
    ),
    Kind(
        "audit",
        "an API server's audit log: its own lines, or as GKE, EKS, AKS, OpenShift, Rancher keep it",
        _is_audit,
        AuditReader,
        rank=4,
        example="import audit.log",
        kept="each write as the state that it made, refused requests, who asked",
        lacks="what was there before the log; Leases and Events under most policies",
    ),
    Kind(
        "etcd",
        "a snapshot of etcd, or the db file of its data directory",
        lambda sample: is_bbolt(sample.head),
        EtcdReader,
        rank=2,
        example="import snapshot.db",
        kept="each revision since the last compaction, the last one before it",
        lacks="when, but for bounds by Leases; who; what was compacted",
    ),
    Kind(
        "kine",
        "the SQLite database of kine (k3s: server/db/state.db)",
        lambda sample: sample.head.startswith(SQLITE_MAGIC),
        KineReader,
        rank=2,
        example="import state.db",
        kept="the same of kine",
        lacks="the same",
    ),
    Kind(
        "etcd-delta",
        "a delta snapshot of etcd-backup-restore (Gardener, etcd-druid)",
        lambda sample: sample.head.lstrip()[:1] == b"[" and b'"etcdEvent"' in sample.head,
        DeltaReader,
        rank=1,
        example="import Incr-00000001-00002000-1795239000",
        kept="each revision of its span, with its time",
        lacks="who; what was before it without the full snapshot (`--with`)",
    ),
    Kind(
        "kshrk",
        "a k8shark archive (kshrk capture)",
        is_kshrk,
        lines=KshrkLines,
        rank=3,
        example="import capture.kshrk",
        kept="polls as looks, watch events as such",
        lacks="what happened between two polls",
    ),
    Kind(
        "sched-recorder",
        "a record of kube-scheduler-simulator's sched-recorder",
        is_scheduler,
        lines=SchedulerLines,
        rank=3,
        example="import record.jsonl",
        kept="each Add, Update and Delete",
        lacks="lists, so what was never there",
    ),
    Kind(
        "kubectl",
        "what kubectl prints: get -w, lists as JSON or YAML, cluster-info dump",
        is_kubectl,
        lines=KubectlLines,
        example="import must-gather.tar.gz",
        kept="objects and lists, each list as a look at its scope",
        lacks="what happened between looks; times without `ts`; manifests are refused",
    ),
    Kind(
        KUBECTL_TEXT,
        "what kubectl prints for people: tables of get, with -w too, and describe",
        is_kubectl_text,
        KubectlTextReader,
        rank=8,
        example="import describe.txt",
        kept="each object as often as it is shown, each Event, as what somebody was shown",
        lacks="states, so there are no verdicts; times but as ages; what a column or field folds",
    ),
)
BY_NAME = {kind.name: kind for kind in KINDS}


def recognise(source: LineSource, deep: re.Pattern[bytes] | None = None) -> Kind | None:
    """The kind of a file, None if it is of none.

    What the first 256 KiB do not tell the first 8 MiB may: a log begins with what it likes. `deep`
    says what must be in these for a second look, where there are many files.
    """
    sample = sample_of(source, SAMPLE_BYTES)
    found = _claimed(sample)
    if found is None and not sample.whole and sample.is_text:
        sample = sample_of(source, DEEP_BYTES)
        if deep is None or deep.search(sample.head):
            found = _claimed(sample)
    return found


def concerns(kind: Kind, source: LineSource) -> bool:
    """Whether a file of a kind may hold what a trace keeps, as far as its beginning tells."""
    return kind.lines is not KubectlLines or has_streams(
        sample_of(source, SAMPLE_BYTES), source.name
    )


def without_streams(source: LineSource) -> str:
    """What is said of a file of a folder that holds none of the objects that a trace keeps."""
    sample = sample_of(source, SAMPLE_BYTES)
    refusals = [refusal_in(value) for value in sample.values]
    if refusals and refusals[0] is not None and None not in refusals:
        return f"in which an API server answered in place of objects (Status: {refusals[0].shown})"
    return "with objects of other kinds only"


def _claimed(sample: Sample) -> Kind | None:
    if sample.is_text and not _HINTS.search(sample.head):
        return None
    return next((kind for kind in KINDS if kind.recognises(sample)), None)


def sample_of(source: LineSource, size: int) -> Sample:
    """What a source begins with."""
    head = source.peek(size + 1)
    return Sample(head[:size], whole=len(head) <= size)


def wrong_kind(
    source: LineSource, kind: Kind, problems: Mapping[str, int] | None = None
) -> TraceFormatError:
    """The error for a file that is not what the command line says it is, or not to be read as it.

    `problems`: what was left out while it was read.
    """
    found = recognise(source)
    if found is not None and found is not kind:
        return TraceFormatError(
            f"{source.name} is no {kind.name} source but {found.name} ({found.about}): import it "
            f"with `{_command(found, source.name)}`"
        )
    why = flaw(source, in_command(source.name))
    if why:
        return TraceFormatError(f"{source.name} {why}")
    if found is kind and problems:
        whys = "; ".join(list(problems)[:2])
        return TraceFormatError(
            f"{source.name} looks like a source of the kind {kind.name}, and nothing in it can be "
            f"read ({whys}): export it again in the form in which it was written"
        )
    return TraceFormatError(f"{source.name} is not {kind.about}: name such a file")


def _command(kind: Kind, name: str) -> str:
    """What imports a file of a kind; one in an archive has to be named by who unpacks it."""
    file = in_command(name)
    if kind.reader is KcmLogReader:
        return beside_record(file)
    return f"tracekit import {kind.name} {file} -o TRACE"


def flaw(source: LineSource, file: str = "FILE") -> str:
    """What keeps a file from being of any kind, "" if nothing plain does.

    `file`: its name as a command has it, where that is of this file alone.
    """
    sample = sample_of(source, SAMPLE_BYTES)
    if not sample.head:
        return EMPTY
    if not sample.head.strip():
        return BLANK if sample.whole else BEGINS_BLANK
    printed = printed_for_people(sample) or strangers.described(sample)
    if printed:
        return printed
    broken = _broken(sample)
    if broken:
        return broken
    if sample.is_text and not sample.whole:
        sample = sample_of(source, DEEP_BYTES)
        if _BEGINS_JSON.match(sample.head) and has_half_a_character(sample.head):
            return _HALF
    return strangers.below(sample, file) or strangers.table(sample)


def _broken(sample: Sample) -> str:
    """What is wrong with a whole file that begins as JSON and holds no document, "" if nothing."""
    if (
        not sample.whole
        or not sample.is_text
        or not _BEGINS_JSON.match(sample.head)
        or any(map(_is_json, (sample.head, *sample.texts)))
    ):
        return ""
    if is_nested_deeper(sample.head, NESTING_MAX):
        return f"is JSON, and {TOO_DEEP}: no object of Kubernetes is"
    if any(map(has_half_a_character, (sample.head, *sample.texts))):
        return _HALF
    return "has no whole JSON document: it is cut off or damaged, fetch it anew"


def _is_json(document: bytes) -> bool:
    try:
        orjson.loads(document)
    except ValueError:
        return False
    return True
