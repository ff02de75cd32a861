"""Encodes payloads as Perfetto's debug annotations (perfetto/trace/track_event/debug_annotation.proto)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from warplens.arrays import Int64Array
from warplens.exporters.protobuf import message, number, text, varint
from warplens.report.payloads.carried import Carried, carried
from warplens.report.payloads.text import text as as_text

if TYPE_CHECKING:
    from warplens.report import Report

# The names of all annotations, numbered from 1; the first five are written by native/reader/perfetto/encoder.cpp.
NAMES = ("color", "payload", "unfinished", "inherited", "clipped", "end payload", "payload cut")
_PAYLOAD, _END_PAYLOAD, _CUT = 2, 6, 7
_MOST = 1000


def encoded(report: Report, kind: str, ids: Int64Array) -> list[bytes]:
    """Encode the payloads of each event as debug annotations; nothing for those without."""
    payloads = carried(report, kind, ids, shape=_annotated)
    return [payloads.get(id, b"") for id in ids.tolist()] if payloads else []


def _annotated(event: Carried) -> bytes:
    notes = []
    for name, payloads in ((_PAYLOAD, event.begin), (_END_PAYLOAD, event.end)):
        if payloads:
            notes.append(message(4, number(1, name), _value(payloads[0] if len(payloads) == 1 else payloads)))
    if event.cut:
        notes.append(message(4, number(1, _CUT), number(2, 1)))
    return b"".join(notes)


def _value(value: Any) -> bytes:
    """Encode a payload as the value of a DebugAnnotation."""
    if isinstance(value, bool):
        return number(2, value)
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 64:
            return number(4 if value < 1 << 63 else 3, value)
        return text(6, str(value))
    if isinstance(value, float):
        return varint(5 << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, dict):
        return b"".join(message(11, text(10, str(key)), _value(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return b"".join(message(12, _value(item)) for item in value[:_MOST])
    return text(6, as_text(value))
