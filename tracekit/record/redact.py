"""Keyed, equality-preserving hashes in place of values that may be secret.

A value becomes `redacted-` and some digits of an HMAC: equal values stay equal (a job's template
and its pods still match, joins still join), unequal ones stay unequal, and without the key nobody
can try guesses against the hash. Only free text is touched: names, labels, images, resources and
everything that a controller decides by stay as they are, so a replay gives the same verdicts.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tracekit.errors import UsageError

PREFIX = "redacted-"
FIELDS = ("env", "args", "annotations")
_KEY_BYTES_MIN = 16
_DIGITS = 24

#: Annotations that controllers and the API server decide by, or that say where an object belongs.
#: Everything under these domains is machinery; the last-applied copy is the user's whole manifest.
_MACHINE_ANNOTATION = re.compile(r"(?:^|\.)(?:kubernetes\.io|k8s\.io)/")
_USER_COPIES = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("JSON web token", re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")),
    ("GitHub token", re.compile(r"\bgh[pousr]_[0-9A-Za-z]{36,}\b")),
    ("Slack token", re.compile(r"\bxox[abpors]-[0-9A-Za-z-]{10,}")),
    ("password in a URL", re.compile(r"\b[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]+@")),
    (
        "named like a secret",
        re.compile(
            r"(?i)(?:password|passwd|secret|api[_-]?key|access[_-]?key|token|credential)s?"
            r"[\"']?\s*[=:]\s*[\"']?(?!redacted-)[^\s\"',}]{6,}"
        ),
    ),
)
_SECRET_NAME = re.compile(r"(?i)password|passwd|secret|api_?key|access_?key|token|credential")


class Redactor:
    """Replaces the chosen kinds of values in Jobs, CronJobs and Pods; keeps everything else."""

    def __init__(self, key: bytes, fields: frozenset[str]) -> None:
        self._key = key
        self.fields = fields
        self._cache: dict[str, str] = {}

    def hashed(self, value: str) -> str:
        """Give the stand-in of a value; a stand-in stays what it is."""
        if not value or value.startswith(PREFIX):
            return value
        known = self._cache.get(value)
        if known is None:
            if len(self._cache) > 1 << 16:
                self._cache.clear()
            digest = hmac.new(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256)
            known = PREFIX + digest.hexdigest()[:_DIGITS]
            self._cache[value] = known
        return known

    def __call__(self, stream: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the object with its values replaced; the original is not changed."""
        del stream
        result = dict(body)
        if "annotations" in self.fields:
            _replace(result, "metadata", self._metadata)
        spec_of = {"env", "args"} & self.fields
        if spec_of or "annotations" in self.fields:
            _replace(result, "spec", self._spec)
        return result

    def _metadata(self, metadata: dict[str, Any]) -> None:
        _replace(metadata, "annotations", self._annotations)

    def _annotations(self, annotations: dict[str, Any]) -> None:
        for name, value in annotations.items():
            machine = _MACHINE_ANNOTATION.search(name) and name not in _USER_COPIES
            if not machine and isinstance(value, str):
                annotations[name] = self.hashed(value)

    def _spec(self, spec: dict[str, Any]) -> None:
        """Redact a pod spec, or what holds one (template, jobTemplate), at any depth."""
        for holder in ("jobTemplate", "template"):
            if holder in spec:
                _replace(spec, holder, self._template)
        for name in ("initContainers", "containers", "ephemeralContainers"):
            containers = spec.get(name)
            if isinstance(containers, list):
                spec[name] = [self._container(c) if isinstance(c, dict) else c for c in containers]

    def _template(self, template: dict[str, Any]) -> None:
        if "annotations" in self.fields:
            _replace(template, "metadata", self._metadata)
        _replace(template, "spec", self._spec)

    def _container(self, container: dict[str, Any]) -> dict[str, Any]:
        result = dict(container)
        if "env" in self.fields and isinstance(result.get("env"), list):
            result["env"] = [self._variable(v) if isinstance(v, dict) else v for v in result["env"]]
        if "args" in self.fields:
            self._words(result, "command")
            self._words(result, "args")
            for name in ("livenessProbe", "readinessProbe", "startupProbe"):
                _replace(result, name, self._handler)
            _replace(result, "lifecycle", self._lifecycle)
        return result

    def _words(self, holder: dict[str, Any], name: str) -> None:
        words = holder.get(name)
        if isinstance(words, list):
            holder[name] = [self.hashed(word) if isinstance(word, str) else word for word in words]

    def _handler(self, handler: dict[str, Any]) -> None:
        _replace(handler, "exec", lambda action: self._words(action, "command"))

    def _lifecycle(self, lifecycle: dict[str, Any]) -> None:
        _replace(lifecycle, "postStart", self._handler)
        _replace(lifecycle, "preStop", self._handler)

    def _variable(self, variable: dict[str, Any]) -> dict[str, Any]:
        if isinstance(variable.get("value"), str):
            return {**variable, "value": self.hashed(variable["value"])}
        return variable


def _replace(parent: dict[str, Any], name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a copy of a child mapping in place of the child."""
    child = parent.get(name)
    if isinstance(child, dict):
        child = dict(child)
        change(child)
        parent[name] = child


#### Keys and fields ####


def parse_fields(text: str) -> frozenset[str]:
    """Read `env,args,annotations`.

    Raises:
        UsageError: a word that is none of them.
    """
    fields = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = sorted(fields - set(FIELDS))
    if unknown or not fields:
        raise UsageError(
            f'"{", ".join(unknown) or text}" cannot be redacted; choose from {", ".join(FIELDS)}.'
        )
    return fields


def read_key(path: Path | None) -> bytes:
    """Read the key of a file, or make one for this run that is never stored."""
    if path is None:
        return secrets.token_bytes(32)
    try:
        key = path.read_bytes().strip()
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


#### Looking for what is left ####


def suspicions(body: Any) -> Iterator[tuple[str, str]]:
    """Yield (path, why) of everything in an object that still looks like a secret."""
    yield from _walk(body, "")


def _walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        name, text = value.get("name"), value.get("value")
        named = isinstance(name, str) and isinstance(text, str) and _SECRET_NAME.search(name)
        if named and text and not text.startswith(PREFIX):
            yield f"{path}[name={name}].value", f"the variable {name} is named like a secret"
        for key, child in value.items():
            if key != "managedFields":
                yield from _walk(child, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for child in value:
            yield from _walk(child, f"{path}[]")
    elif isinstance(value, str):
        for why, pattern in _PATTERNS:
            if pattern.search(value):
                yield path, f"looks like a {why}" if why[0] != "n" else f"a value {why}"
                break
