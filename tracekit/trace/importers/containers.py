"""Lines that a container runtime took apart when it kept them: logs of CRI, json-file of Docker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: The log of a container as CRI keeps it: P is a part of a line, F the last of it.
_CRI = re.compile(rb"^\d{4}-\S+T\S+ (stdout|stderr) ([PF])(?::\S+)? (.*)$", re.DOTALL)
_DOCKER = b'{"log":"'
_DOCKER_END = b'","stream":'


def joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, those put together that a container runtime took apart (at 16 KiB)."""
    parts: dict[bytes, list[bytes]] = {}
    docker: list[bytes] = []
    for line in lines:
        if line.startswith(_DOCKER):
            begin, end, rest = line.rpartition(_DOCKER_END)
            if end and not begin.endswith(b"\\n"):
                docker.append(begin if not docker else begin.removeprefix(_DOCKER))
                continue
            if docker:
                docker.append(begin.removeprefix(_DOCKER) + end + rest)
                yield b"".join(docker)
                docker = []
                continue
        elif (found := _CRI.match(line)) is not None:
            stream, part, text = found.groups()
            if part == b"P":  # of a copy with Windows' line ends it has one, too
                parts.setdefault(stream, [line[: found.start(3)]]).append(text.removesuffix(b"\r"))
                continue
            if stream in parts:
                yield b"".join((*parts.pop(stream), text))
                continue
        yield line
    for held in (docker, *parts.values()):
        if held:
            yield b"".join(held)
