"""Perfetto's own format: a track per Job and per pod, arrows from cause to effect.

Namespaces are processes in the viewer's sense, Jobs are tracks inside them, the pods of a Job are
tracks below it. Controller writes and Events are instants on the Job's track.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

from tracekit.report.export.happenings import Happenings, Job, Mark, Span

#: One writer, hence one sequence of packets.
_SEQUENCE = 1


def write_perfetto(found: Happenings, out: BinaryIO) -> None:
    """Write a trace that https://ui.perfetto.dev and trace_processor open."""
    out.write(_Writer().run(found))


class _Writer:
    def __init__(self) -> None:
        self.builder = TraceProtoBuilder()
        self.next_track = 1
        self.events: list[tuple[int, int, TracePacket]] = []

    def run(self, found: Happenings) -> bytes:
        root = self._track(f"{found.title} (Kubernetes {found.version or 'of unknown version'})")
        for gap in found.gaps:
            self._span(self._track(gap.name, root), gap, "gap")
        spaces: dict[str, int] = {}
        for job in found.jobs:
            if job.namespace not in spaces:
                spaces[job.namespace] = self._track(f"namespace {job.namespace}", root)
            self._job(job, spaces[job.namespace])
        crons: dict[tuple[str, str], int] = {}
        for namespace, cronjob, mark in found.ticks:
            if (namespace, cronjob) not in crons:
                parent = spaces.setdefault(namespace, 0) or self._track(
                    f"namespace {namespace}", root
                )
                spaces[namespace] = parent
                crons[namespace, cronjob] = self._track(f"CronJob {cronjob}", parent)
            self._mark(crons[namespace, cronjob], mark)
        # A viewer pairs begins and ends by their order: ends come first at the same time, but not
        # those of spans that begin at that very time.
        for _, _, packet in sorted(self.events, key=lambda event: event[:2]):
            self.builder.add_packet().CopyFrom(packet)
        serialized: bytes = self.builder.serialize()
        return serialized

    def _track(self, name: str, parent: int | None = None) -> int:
        uuid = self.next_track
        self.next_track += 1
        descriptor: TrackDescriptor = self.builder.add_packet().track_descriptor
        descriptor.uuid = uuid
        descriptor.name = name
        if parent is not None:
            descriptor.parent_uuid = parent
        return uuid

    def _job(self, job: Job, parent: int) -> None:
        track = self._track(f"Job {job.name}", parent)
        self._span(track, job.life, "job", name=f"{job.name} ({job.life.attributes['outcome']})")
        marks = self._track("writes and Events", track)
        for mark in job.marks:
            self._mark(marks, mark)
        for pod in job.pods:
            pod_track = self._track(f"pod {pod.name}", track)
            self._span(pod_track, pod.life, "pod")
            phases = self._track("phases", pod_track)
            for span in pod.phases:
                self._span(phases, span, "phase")

    def _span(self, track: int, span: Span, category: str, *, name: str | None = None) -> None:
        begin = self._packet(track, span.from_ns, TrackEvent.TYPE_SLICE_BEGIN)
        event = begin.track_event
        event.name = name or span.name
        event.categories.append(category)
        event.flow_ids.extend(span.causes)
        event.terminating_flow_ids.extend(span.caused_by)
        _annotate(event, span.attributes)
        until_ns = max(span.until_ns, span.from_ns + 1)
        end = self._packet(track, until_ns, TrackEvent.TYPE_SLICE_END)
        self.events.append((span.from_ns, 1, begin))
        self.events.append((until_ns, 0, end))

    def _mark(self, track: int, mark: Mark) -> None:
        packet = self._packet(track, mark.at_ns, TrackEvent.TYPE_INSTANT)
        event = packet.track_event
        event.name = f"{mark.name} {mark.attributes.get('object', '')}".strip()
        event.categories.append(mark.kind)
        event.flow_ids.extend(mark.causes)
        event.terminating_flow_ids.extend(mark.caused_by)
        _annotate(event, mark.attributes)
        self.events.append((mark.at_ns, 2, packet))

    @staticmethod
    def _packet(track: int, at_ns: int, kind: int) -> TracePacket:
        packet = TracePacket()
        packet.timestamp = max(0, at_ns)
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet


def _annotate(event: TrackEvent, attributes: Mapping[str, Any]) -> None:
    for name, value in _flat(attributes):
        annotation = event.debug_annotations.add()
        annotation.name = name
        if isinstance(value, bool):
            annotation.bool_value = value
        elif isinstance(value, int):
            annotation.int_value = value
        elif isinstance(value, float):
            annotation.double_value = value
        else:
            annotation.string_value = str(value)


def _flat(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((name, value) for name, value in attributes.items() if value is not None)
