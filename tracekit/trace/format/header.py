"""Reading and writing `trace.json`, the small header of a trace.

It is replaced whole by a rename, so a reader sees the old or the new one, never half of one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.migrate import migrate_header
from tracekit.trace.format.model import FORMAT_VERSION, HEADER_NAME, TraceHeader
from tracekit.trace.format.opening import new_file, read_inside
from tracekit.trace.format.seal import DamageError, check_document, sealed_document

_BYTES_MAX = 64 << 20
#: What recorders that are no tracekit leave in a folder.
_WATCH_LOGS = ("watch.jsonl.zst", "watch.jsonl.gz", "watch.jsonl")
#: So many entries of a folder are looked at for what to say of it.
_ENTRIES_MAX = 1_000


def read_header(trace: Path) -> TraceHeader:
    """The header of the trace, brought up to the newest format."""
    path = trace / HEADER_NAME
    require_text(trace)
    if not trace.is_dir():
        raise TraceFormatError(f"{trace} is not a trace: {_no_directory(trace)}")
    try:
        document = json.loads(read_inside(trace, HEADER_NAME, bytes_max=_BYTES_MAX))
    except FileNotFoundError:
        raise TraceFormatError(
            f"{trace} is not a trace: it has no {HEADER_NAME}; {_of_a_folder(trace)}"
        ) from None
    except RecursionError as error:
        raise TraceFormatError(
            f"{path} is nested too deep to be a trace's header; restore it from a copy of the trace"
        ) from error
    except (ValueError, OSError) as error:
        raise TraceFormatError(
            f"{path} cannot be read ({error}); restore it from a copy of the trace"
        ) from error
    return _parse(document, path)


def _no_directory(trace: Path) -> str:
    """Why what is named can be no trace, and what to name."""
    if not trace.exists():
        made = "a trace is made by `tracekit import` or `tracekit record`"
        single = re.match(r"([a-z][a-z0-9]+):/(?=[^/])", str(trace))
        if single is None:
            return f"there is no such directory; {made}"
        return f"there is no such directory; write a URL with two slashes, {single[1]}://…"
    if trace.name == HEADER_NAME:
        return f"it is a file of one; name the directory that it is in, {trace.parent}"
    if trace.is_file():
        return f"it is a file; {_import_it(trace)}"
    return "it is not a directory; a trace is made by `tracekit import` or `tracekit record`"


def _of_a_folder(folder: Path) -> str:
    """What to do with one that is no trace: it may be what somebody collected."""
    logs = next((folder / name for name in _WATCH_LOGS if (folder / name).is_file()), None)
    if logs is not None:
        return _import_it(logs)
    try:
        inside = [Path(entry) for entry in islice(os.scandir(folder), _ENTRIES_MAX)]
        traces = sorted(entry for entry in inside if (entry / HEADER_NAME).is_file())
    except OSError:  # it, or one in it, may not be listed
        inside, traces = [], []
    if traces:
        return f"name a trace that lies in it, for example {traces[0]}"
    if not inside:
        return "name the directory that `tracekit import` or `tracekit record` wrote"
    return f"if it is a bundle, a dump or logs, {_import_it(folder)}"


def _import_it(log: Path) -> str:
    words = ("tracekit", "import", str(log), "-o", "run")
    return f"make one of it with `{shlex.join(words)}`, then name run"


def _parse(document: Any, path: Path) -> TraceHeader:
    version = document.get("format_version") if isinstance(document, dict) else None
    if type(version) is not int or version < 1:
        raise TraceFormatError(f"{path} has no usable format_version; it is not a trace's header")
    if version > FORMAT_VERSION:
        raise TraceFormatError(
            f"{path.parent} was written by a newer tracekit (format {version}; this one reads up "
            f"to {FORMAT_VERSION}): upgrade with pip install -U kube-tracekit"
        )
    try:
        sealed = check_document(document)
    except DamageError as error:
        raise TraceFormatError(
            f"{path} is damaged ({error}); restore it from a copy of the trace"
        ) from error
    fields = migrate_header(document)
    sealed_from = fields.get("sealed_from")
    if sealed != (type(sealed_from) is int and sealed_from >= 0):
        # Two members say the same, so that one that is damaged does not make it an old header.
        raise TraceFormatError(
            f"{path} is damaged (it has lost its checksum); restore it from a copy of the trace"
        )
    gates = _mapping(fields.get("feature_gates"))
    sessions = fields.get("sessions")
    flags = fields.get("controller_flags")
    text = fields.get("kubernetes_version")
    tool = fields.get("tracekit_version")
    return TraceHeader(
        kubernetes_version=text if isinstance(text, str) else None,
        feature_gates={k: v for k, v in gates.items() if isinstance(v, bool)},
        controller_flags=tuple(f for f in flags if isinstance(f, str))
        if isinstance(flags, list)
        else (),
        scope=_scope(_mapping(fields.get("scope"))),
        sessions=tuple(s for s in sessions if isinstance(s, dict))
        if isinstance(sessions, list)
        else (),
        streams={k: v for k, v in _mapping(fields.get("streams")).items() if isinstance(v, dict)},
        sealed_from=sealed_from if sealed else None,
        format_version=FORMAT_VERSION,
        tracekit_version=tool if isinstance(tool, str) else None,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _scope(scope: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scope with its two own members as what they must be."""
    spaces, selector = scope.get("namespaces"), scope.get("selector")
    return {
        **scope,
        "namespaces": [s for s in spaces if isinstance(s, str)]
        if isinstance(spaces, list)
        else None,
        "selector": selector if isinstance(selector, str) else None,
    }


def header_document(header: TraceHeader) -> dict[str, Any]:
    """The header as it stands in `trace.json`."""
    return {
        "format_version": header.format_version,
        "tracekit_version": header.tracekit_version,
        "kubernetes_version": header.kubernetes_version,
        "feature_gates": dict(sorted(header.feature_gates.items())),
        "controller_flags": list(header.controller_flags),
        "scope": dict(header.scope),
        "sessions": [dict(session) for session in header.sessions],
        "streams": dict(header.streams),
        "sealed_from": header.sealed_from,
    }


def require_text(trace: Path) -> None:
    """Refuse a name that is no text, which neither Arrow nor DuckDB can be given."""
    try:
        os.path.realpath(trace).encode()
    except UnicodeEncodeError:
        raise TraceFormatError(f"the path of {trace} is not UTF-8: rename it") from None


def write_header(trace: Path, header: TraceHeader) -> None:
    """Replace the header of the trace."""
    require_text(trace)
    document = header_document(header)
    if header.sealed_from is not None:
        document = sealed_document(document)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    # A text may have half a surrogate pair, as the name of a file that is no UTF-8 has.
    replace_file(trace / HEADER_NAME, text.encode("utf-8", "backslashreplace"))


def replace_file(path: Path, content: bytes, *, durable_name: bool = True) -> None:
    """Put the content in place under `path`, at once, and durably.

    Without `durable_name` a power cut may bring back the content before this one, whole.
    """
    temporary = path.with_name(f".tmp-{path.name}")
    with new_file(temporary) as file:
        file.write(content)
        file.flush()
        sync_file(file.fileno())
    temporary.replace(path)
    if durable_name:
        sync_directory(path.parent)


def sync_file(descriptor: int) -> None:
    """Wait until the file's content is on the disk."""
    os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Make renames in a directory survive a power cut (where the system can)."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return  # not every system opens directories
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # nor does every file system sync them
    finally:
        os.close(descriptor)
