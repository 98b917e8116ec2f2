"""Keyed, equality-preserving hashes in place of values that may be secret.

A value becomes `redacted-` and some digits of an HMAC: equal values stay equal (a Job's template
and its pods still match, joins still join), unequal ones stay unequal, and without the key nobody
can try guesses against the hash. Names, labels, images, resources and everything that a controller
decides by stay as they are, so a replay gives the same verdicts; `strict` (`redact_strict.py`)
keeps of those only what a replay needs.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets as randomness
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tracekit.base.errors import UsageError
from tracekit.base.plain_files import NoPlainFileError, read_bounded
from tracekit.record.redaction.redact_strict import kept_strictly
from tracekit.record.redaction.secrets import DIGITS, PREFIX, is_stand_in, scrubbed
from tracekit.trace.format.model import STATE_TYPES, TraceHeader

FIELDS = ("env", "args", "annotations", "volumes", "messages")
STRICT = "strict"
_ALL = "all"
_KEY_BYTES_MIN = 16
#: A choice: a thousand times what is advised.
_KEY_BYTES_MAX = 1 << 16
#: Values shorter than this are not looked for in texts: they are in every word.
_QUOTED_CHARS_MIN = 8
_REMEMBERED = 1 << 16

#: Annotations that the controllers decide by, with the values that they write. Any other annotation
#: is somebody's own, of whatever domain: users choose names under kubernetes.io, too.
_MACHINE_ANNOTATIONS = {
    name: re.compile(pattern)
    for name, pattern in {
        "batch.kubernetes.io/job-tracking": r"",
        "batch.kubernetes.io/job-completion-index": r"\d{1,10}",
        "batch.kubernetes.io/job-index-failure-count": r"\d{1,10}",
        "batch.kubernetes.io/job-index-ignored-failure-count": r"\d{1,10}",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": r"[0-9T:.Z+-]{20,35}",
        "cronjob.kubernetes.io/instantiate": r"manual",
    }.items()
}
#: Left by admission plugins on pods, beside what the controller posted: the name decides.
_ADMISSION_ANNOTATIONS = frozenset({"kubernetes.io/limit-ranger", "kubernetes.io/psp"})
#: What these say is made of names and counts, and a replay compares it.
_CONTROLLERS = frozenset({"job-controller", "cronjob-controller", "ttl-after-finished-controller"})
#: Of an entry of an API server's log, what says which request it was and how it ended.
_CALL_FIELDS = (
    *("kind", "apiVersion", "auditID", "stage", "verb", "objectRef", "responseStatus"),
    *("requestReceivedTimestamp", "stageTimestamp", "requestObject", "responseObject"),
)
_STREAM_OF_KIND = {"Event": "events", "Job": "jobs", "CronJob": "cronjobs"}
#: Of the one lease that is recorded.
_OWN_SELECTOR = "metadata.name="
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
#: How a recorder's own notes and gaps begin; what follows quotes a server or a library.
_OWN = (
    r"[A-Z][A-Za-z]{2,20}(?=:)",
    r"410 Gone",
    r"not connected at the end",
    r"the server cannot be read past this point",
    r"the server went back to revision \d+",
    r"(?:list|watch) is forbidden",
    r"the server has no [a-z]+ in [a-z0-9./]+",
    r"the Kubernetes version is unknown",
    r"the feature gates are unknown",
    r"the server's certificate is not checked",
    r"the (?:pod|container|recording) [a-z ]+",
    r"more than \d+ logs were waiting",
    r"the stream [a-z ]+",
    r"the input [a-z ]+",
)
_OWN_WORDS = re.compile("|".join(_OWN))


class Redactor:
    """Replaces the chosen kinds of values in objects and texts; keeps everything else."""

    def __init__(self, key: bytes, fields: frozenset[str]) -> None:
        self._key = key
        self.is_strict = STRICT in fields
        self.fields = frozenset(FIELDS) | {STRICT} if self.is_strict else fields
        self._cache: dict[str, str] = {}
        #: Hashed values by their beginning, to find them where a text quotes them.
        self._quotable: dict[str, set[str]] = {}
        self._quotable_count = 0

    #### Values ####

    def hashed(self, value: str) -> str:
        """Give the stand-in of a value; a stand-in stays what it is."""
        if not value or is_stand_in(value):
            return value
        known = self._cache.get(value)
        if known is None:
            if len(self._cache) > _REMEMBERED:
                self._cache.clear()
            digest = hmac.new(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256)
            known = PREFIX + digest.hexdigest()[:DIGITS]
            self._cache[value] = known
        return known

    def secret(self, value: str) -> str:
        """Give the stand-in, and replace the value wherever a text quotes it from now on."""
        if len(value) >= _QUOTED_CHARS_MIN and not is_stand_in(value):
            if self._quotable_count > _REMEMBERED:
                self._quotable.clear()
                self._quotable_count = 0
            same_start = self._quotable.setdefault(value[:_QUOTED_CHARS_MIN], set())
            if value not in same_start:
                same_start.add(value)
                self._quotable_count += 1
        return self.hashed(value)

    def text(self, text: str) -> str:
        """Give a text that is kept, without the secrets in it: of known shapes, or known values."""
        if self._quotable:
            text = self._without_quotes(text)
        return scrubbed(text, self.hashed)

    def _without_quotes(self, text: str) -> str:
        parts: list[str] = []
        start = at = 0
        while at <= len(text) - _QUOTED_CHARS_MIN:
            candidates = self._quotable.get(text[at : at + _QUOTED_CHARS_MIN])
            # As a tuple, at once: the other streams' threads put values in meanwhile.
            found = [v for v in tuple(candidates) if text.startswith(v, at)] if candidates else []
            if found:
                value = max(found, key=len)
                parts += [text[start:at], self.hashed(value)]
                start = at = at + len(value)
            else:
                at += 1
        return "".join((*parts, text[start:])) if parts else text

    def words(self, text: str) -> str:
        """Give the reason of a note or gap: how it begins, and a hash of whom it quotes."""
        own = _OWN_WORDS.match(text)
        rest = text[own.end() :] if own else text
        if own is None:
            return self.hashed(text)
        return own[0] + (f": {self.hashed(rest.lstrip(' :'))}" if rest else "")

    #### Objects ####

    def __call__(self, stream: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the object with its values replaced; the original is not changed."""
        result = dict(body)
        _replace(result, "metadata", self._metadata)
        _replace(result, "spec", self._spec)
        if stream == "logs":
            self._log(result)
        elif "messages" in self.fields:
            if stream == "events":
                self._event(result)
            elif stream not in {"jobs", "cronjobs"}:
                _replace(result, "status", self._status)
        result = self._scrub(result)
        return kept_strictly(stream, result, self.hashed) if self.is_strict else result

    def row(self, stream: str, kind: str, body: Any) -> Any:
        """Give what a row of a type holds: an object, or what a server or the recorder said."""
        if not isinstance(body, dict):
            return self._scrub(body)
        if kind in STATE_TYPES:
            return self(stream, body)
        if kind == "ERROR":
            return self.status_object(body)
        if kind == "NOTE":
            return {name: self._said(one) for name, one in body.items()}
        return self._asked(self._scrub(body))

    def who(self, name: str | None) -> str | None:
        """Give the name of an account: the cluster's own as it is, others hashed."""
        return name if name is None or name.startswith("system:") else self.hashed(name)

    def status_object(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Give the Status of an ERROR frame, without what it says in words."""
        found = {"kind": "Status", "metadata": {}}
        for name in ("code", "reason", "status"):
            if isinstance(body.get(name), (int, str)):
                found[name] = body[name]
        message = body.get("message")
        if isinstance(message, str):
            found["message"] = self.hashed(message)
        return found

    def call(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Give an entry of an API server's log: the objects in it redacted, its words hashed."""
        result = dict(entry)
        for name in ("requestObject", "responseObject"):
            if name in result:
                result[name] = self._called(result[name])
        uri = result.get("requestURI")
        if isinstance(uri, str) and "?" in uri:
            path, _, query = uri.partition("?")
            result["requestURI"] = f"{path}?{self.hashed(query)}"
        if "messages" in self.fields:
            _replace(result, "responseStatus", self._response_status)
            _replace(result, "annotations", self._values)
        if self.is_strict:
            result = {name: result[name] for name in _CALL_FIELDS if name in result}
        scrubbed_entry: dict[str, Any] = self._scrub(result)
        return scrubbed_entry

    def _called(self, body: Any) -> Any:
        """Give what was sent or answered: an object, a part of one, a Status, a JSON patch."""
        if isinstance(body, list):
            return [self._operation(one) for one in body]
        if not isinstance(body, dict):
            return self._hashed_texts(body)
        if body.get("kind") == "Status" and "messages" in self.fields:
            return self.status_object(body)
        return dict(self(_STREAM_OF_KIND.get(str(body.get("kind")), ""), body))

    def _operation(self, operation: Any) -> Any:
        """Give one of a JSON patch: it has no shape by which to tell a variable from a name."""
        if not isinstance(operation, dict):
            return self._hashed_texts(operation)
        return {
            name: one
            if name == "op" or (name in {"path", "from"} and not self.is_strict)
            else self._hashed_texts(one)
            for name, one in operation.items()
        }

    def _hashed_texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.secret(value)
        if isinstance(value, list):
            return [self._hashed_texts(one) for one in value]
        if isinstance(value, dict):
            return {
                self.hashed(name) if self.is_strict else name: self._hashed_texts(one)
                for name, one in value.items()
            }
        return value

    def _response_status(self, status: dict[str, Any]) -> None:
        self._text_of(status, "message")
        status.pop("details", None)  # its causes quote what was refused

    def header(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Give the sessions or streams of a trace's header without what servers said."""
        found: dict[str, Any] = self._asked(self._scrub(dict(document)))
        if "messages" in self.fields:
            for name in ("reason", "notes", "unseen"):
                if name in found:
                    found[name] = self._said(found[name])
        return found

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        """Give what was asked for; a selector of labels has what `strict` hashes."""
        selector = body.get("selector")
        if self.is_strict and isinstance(selector, str) and not selector.startswith(_OWN_SELECTOR):
            return {**body, "selector": self.hashed(selector)}
        return body

    def _said(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._said(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._said(one) for one in value]
        return self.words(value) if isinstance(value, str) else value

    def _metadata(self, metadata: dict[str, Any]) -> None:
        if "annotations" in self.fields:
            _replace(metadata, "annotations", self._annotations)
        managed = metadata.get("managedFields")
        if isinstance(managed, list):
            # Who wrote, and when, stays. What: the names of annotations and variables.
            metadata["managedFields"] = [
                {**entry, "fieldsV1": {}}
                if isinstance(entry, dict) and "fieldsV1" in entry
                else entry
                for entry in managed
            ]

    def _annotations(self, annotations: dict[str, Any]) -> None:
        for name, value in list(annotations.items()):
            expected = _MACHINE_ANNOTATIONS.get(name)
            text = value if isinstance(value, str) else ""
            if expected is not None and expected.fullmatch(text):
                continue
            annotations[name] = self.secret(text)
            if self.is_strict and expected is None and name not in _ADMISSION_ANNOTATIONS:
                annotations[self.hashed(name)] = annotations.pop(name)

    def _spec(self, spec: dict[str, Any]) -> None:
        """Redact a pod spec, or what holds one (template, jobTemplate), at any depth."""
        for holder in ("jobTemplate", "template"):
            if holder in spec:
                _replace(spec, holder, self._template)
        for name in ("initContainers", "containers", "ephemeralContainers"):
            _each(spec, name, self._container)
        _each(spec, "volumes", self._volume)

    def _template(self, template: dict[str, Any]) -> None:
        _replace(template, "metadata", self._metadata)
        _replace(template, "spec", self._spec)

    def _container(self, container: dict[str, Any]) -> None:
        if "env" in self.fields:
            _each(container, "env", self._value)
        if "args" in self.fields:
            self._list(container, "command")
            self._list(container, "args")
            for name in _PROBES:
                _replace(container, name, self._handler)
            _replace(container, "lifecycle", self._lifecycle)

    def _handler(self, handler: dict[str, Any]) -> None:
        _replace(handler, "exec", lambda action: self._list(action, "command"))
        _replace(handler, "httpGet", self._http_get)
        _replace(handler, "tcpSocket", lambda action: self._text_of(action, "host"))
        _replace(handler, "grpc", lambda action: self._text_of(action, "service"))

    def _http_get(self, action: dict[str, Any]) -> None:
        self._text_of(action, "host")
        self._text_of(action, "path")
        _each(action, "httpHeaders", self._value)

    def _lifecycle(self, lifecycle: dict[str, Any]) -> None:
        _replace(lifecycle, "postStart", self._handler)
        _replace(lifecycle, "preStop", self._handler)

    def _volume(self, volume: dict[str, Any]) -> None:
        # A claim that is made with the pod has metadata of its own.
        _replace(
            volume, "ephemeral", lambda one: _replace(one, "volumeClaimTemplate", self._template)
        )
        if "volumes" not in self.fields:
            return
        _replace(volume, "csi", lambda csi: _replace(csi, "volumeAttributes", self._values))
        _replace(volume, "flexVolume", lambda flex: _replace(flex, "options", self._values))
        _replace(volume, "gitRepo", lambda git: self._text_of(git, "repository"))

    def _status(self, status: dict[str, Any]) -> None:
        """Hash what kubelets, schedulers and containers say in words."""
        self._text_of(status, "message")
        _each(status, "conditions", lambda one: self._text_of(one, "message"))
        for name in _STATUSES:
            _each(status, name, self._container_status)

    def _container_status(self, status: dict[str, Any]) -> None:
        for name in ("state", "lastState"):
            _replace(status, name, self._states)

    def _states(self, states: dict[str, Any]) -> None:
        for name in ("waiting", "running", "terminated"):
            _replace(states, name, lambda state: self._text_of(state, "message"))

    def _event(self, event: dict[str, Any]) -> None:
        source = event.get("source")
        component = source.get("component") if isinstance(source, dict) else None
        component = component or event.get("reportingComponent") or event.get("reportingController")
        for name in ("message", "note"):
            text = event.get(name)
            if not isinstance(text, str):
                continue
            if component not in _CONTROLLERS:
                event[name] = self.hashed(text)
            elif str(event.get("reason")).startswith("Failed"):
                # The controller's words, and then those of the API server, which may quote a pod.
                head, colon, tail = text.partition(": ")
                event[name] = head + colon + self.text(tail)

    def _log(self, log: dict[str, Any]) -> None:
        """Take known values and known shapes out of what a container said."""
        if isinstance(log.get("text"), str):
            log["text"] = self.text(log["text"])
        if "messages" in self.fields:
            if isinstance(log.get("gap"), str):
                log["gap"] = self.words(log["gap"])
            _replace(log, "terminated", lambda state: self._text_of(state, "message"))

    #### Leaves ####

    def _value(self, entry: dict[str, Any]) -> None:
        if isinstance(entry.get("value"), str):
            entry["value"] = self.secret(entry["value"])

    def _values(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if isinstance(value, str):
                values[name] = self.secret(value)

    def _list(self, holder: dict[str, Any], name: str) -> None:
        texts = holder.get(name)
        if isinstance(texts, list):
            holder[name] = [self._argument(one) if isinstance(one, str) else one for one in texts]

    def _argument(self, text: str) -> str:
        if text.startswith("-") and "=" in text:
            self.secret(text.partition("=")[2])
        return self.hashed(text)

    def _text_of(self, holder: dict[str, Any], name: str) -> None:
        if isinstance(holder.get(name), str):
            holder[name] = self.secret(holder[name])

    def _scrub(self, value: Any) -> Any:
        """Take secrets of known shapes out of all that is left, names of fields too."""
        if isinstance(value, str):
            return scrubbed(value, self.hashed)
        if isinstance(value, dict):
            return {scrubbed(name, self.hashed): self._scrub(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._scrub(one) for one in value]
        return value


def _replace(parent: dict[str, Any], name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a copy of a child mapping in place of the child."""
    child = parent.get(name)
    if isinstance(child, dict):
        child = dict(child)
        change(child)
        parent[name] = child


def _each(parent: dict[str, Any], name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a copy of each mapping in a list of them."""
    children = parent.get(name)
    if isinstance(children, list):
        copies = [dict(child) if isinstance(child, dict) else child for child in children]
        for child in copies:
            if isinstance(child, dict):
                change(child)
        parent[name] = copies


#### Keys and fields ####


def parse_fields(text: str) -> frozenset[str]:
    """Read `env,args,annotations`, `all` or `strict`.

    Raises:
        UsageError: a word that is none of them.
    """
    fields = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = sorted(fields - {*FIELDS, STRICT, _ALL})
    if unknown or not fields:
        raise UsageError(
            f'"{", ".join(unknown) or text}" cannot be redacted; choose from {", ".join(FIELDS)}, '
            f"or {_ALL} or {STRICT}."
        )
    return frozenset(FIELDS) | (fields - {_ALL}) if _ALL in fields else fields


def redacted_fields(header: TraceHeader) -> frozenset[str]:
    """What is hashed in all rows of a trace, by what its writers say."""
    fields = frozenset[str]()
    for number, session in enumerate(header.sessions):
        said = session.get("redacted")
        theirs = frozenset(map(str, said)) if isinstance(said, list | tuple) else frozenset[str]()
        # A copy by `tracekit redact` hashed whatever was there before.
        is_first = number == 0 or session.get("source") == "redact"
        fields = theirs if is_first else fields & theirs
    return fields


def read_key(path: Path | None) -> bytes:
    """Read the key of a file, or make one for this run that is never stored."""
    if path is None:
        return randomness.token_bytes(32)
    try:
        key = read_bounded(path, bytes_max=_KEY_BYTES_MAX).strip()
    except NoPlainFileError as error:
        raise UsageError(f"The key file {path} {error}; no key has.") from error
    except OSError as error:
        raise UsageError(
            f"The key file {path} cannot be read ({error.strerror or error}); make one with "
            f"`head -c 32 /dev/urandom | base64 > {path}`."
        ) from error
    if len(key) < _KEY_BYTES_MIN:
        raise UsageError(
            f"The key in {path} is shorter than {_KEY_BYTES_MIN} bytes; make one with "
            f"`head -c 32 /dev/urandom | base64 > {path}`."
        )
    return key
