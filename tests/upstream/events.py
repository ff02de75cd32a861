"""What the oracle (oracle.cpp) heard: the calls in their order, and everything registered so far in the process."""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any

Event = dict[str, Any]
_TEXTS = ("message", "name", "description", "path", "unit", "domain")
_REGISTRATIONS = ("domain", "string", "category", "schema", "enum", "scope", "counter")


def _plain(value: Any) -> Any:
    """Turn the hexadecimal texts and bytes of an event into str and bytes, at any depth."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    out: Event = {}
    for key, item in value.items():
        if key in _TEXTS and isinstance(item, str) and item != "unknown":
            out[key] = bytes.fromhex(item).decode("utf-8", "surrogateescape")
        elif key == "data":
            out[key] = bytes.fromhex(item)
        else:
            out[key] = _plain(item)
    return out


class Events:
    """The events of one test; what was registered before it stays known, because libraries register a thing once."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.read_event.restype = ctypes.c_size_t
        library.count_events.restype = ctypes.c_ulong
        self._buffer = ctypes.create_string_buffer(1 << 20)
        self.domains: set[str] = set()
        self.categories: dict[tuple[str | None, int], str] = {}
        self.schemas: dict[tuple[str | None, int], Event] = {}
        self.scopes: dict[tuple[str | None, int], Event] = {}
        self.counters: dict[tuple[str | None, int], Event] = {}
        self._waiting: list[Event] = []
        self._new: list[Event] = []

    def _read(self) -> Event | None:
        while True:
            length = self._library.read_event(self._buffer, ctypes.c_size_t(len(self._buffer)))
            if length == 0:
                return None
            if length < len(self._buffer):
                event: Event = _plain(json.loads(self._buffer.value))
                return event
            self._buffer = ctypes.create_string_buffer(length * 2)

    def _pump(self) -> None:
        while (event := self._read()) is not None:
            kind, key = event["event"], (event["domain"], event.get("id", 0))
            if kind == "domain":
                self.domains.add(event["domain"])
            elif kind == "category":
                self.categories[key] = event["name"]
            elif kind in ("schema", "scope", "counter"):
                getattr(self, f"{kind}s")[key] = event
            if kind in _REGISTRATIONS:
                self._new.append(event)
            else:
                self._waiting.append(event)

    def take(self, kind: str) -> Event:
        """Return the next call, which must be of this kind; AssertionError otherwise."""
        self._pump()
        assert self._waiting, f"nothing more was heard, expected {kind}"
        event = self._waiting.pop(0)
        assert event["event"] == kind, f"expected {kind}, heard {event}"
        return event

    def registered(self, kind: str) -> list[Event]:
        """What of this kind was registered since the last start()."""
        self._pump()
        return [event for event in self._new if event["event"] == kind]

    def start(self) -> None:
        """Forget the calls of the test before."""
        self._pump()
        self._waiting.clear()
        self._new.clear()

    def left(self) -> list[Event]:
        """Calls that no test asked for."""
        self._pump()
        return [event for event in self._waiting if event["event"] != "timestamp"]

    def totals(self) -> dict[str, int]:
        """How many events of each kind there have been in this process."""
        kinds = (
            "push",
            "start",
            "mark",
            "sample_int64",
            "sample_float64",
            "sample",
            "no_value",
            "batch",
            "domain",
            "counter",
        )
        return {kind: self._library.count_events(kind.encode()) for kind in kinds}


def listen() -> Events | None:
    """Return what the oracle hears, None where no tool is configured for this process."""
    path = os.environ.get("NVTX_INJECTION64_PATH")
    return None if path is None else Events(ctypes.CDLL(path))
