"""The functions that PyPI nvtx's own tests call to check what a tool was told; written from those calls, for any implementation.

Equal bytes may travel in more than one legal form (a length in front of an array or not, predefined types or own schemas);
what is held here is what a tool can read: name, domain, category, colour, type and value.
"""

from __future__ import annotations

import struct
from typing import Any

from tests.upstream.events import Event, Events

EXTENDED = 0xDFBD0009 - (1 << 32)
FIRST_OWN = 1 << 24  # smaller schema ids are predefined types
DYNAMIC = 2
NONE, INT64, DOUBLE = 0, 2, 3
COLORS = {
    None: 0x0000FF,
    "blue": 0x0000FF,
    "green": 0x008000,
    "yellow": 0xFFFF00,
    "purple": 0x800080,
    "rapids": 0x7400FF,
    "cyan": 0x00FFFF,
    "red": 0xFF0000,
    "white": 0xFFFFFF,
    "darkgreen": 0x006400,
    "orange": 0xFFA500,
}
INTEGERS = {"i1": 11, "u1": 12, "i2": 13, "u2": 14, "i4": 15, "u4": 16, "i8": 17, "u8": 18}
PREDEFINED = {**INTEGERS, "f2": 42, "f4": 43, "f8": 44}
PLAIN = {
    "int64": (8, 17),
    "float64": (10, 44),
}  # of a counter: the C type (long long, double), or the sized type


def _domain(domain: str | None) -> str | None:
    return domain


def _check(
    event: Event,
    events: Events,
    domain: str | None,
    message: str | None,
    color: Any,
    category: Any,
    payload: Any,
) -> None:
    assert event["domain"] == domain
    assert (event["message"] or None) == (message or None)
    assert event["color_type"] == 1
    assert event["color"] & 0xFFFFFF == (COLORS[color] if not isinstance(color, int) else color & 0xFFFFFF)
    number = event["category"]
    if isinstance(category, str):
        assert events.categories[domain, number] == category
    else:
        assert number == (category or 0)
    _check_payload(event, events, domain, payload)


def _check_payload(event: Event, events: Events, domain: str | None, payload: Any) -> None:
    kind = event["payload_type"]
    if payload is None:
        assert kind == NONE
    elif type(payload) is int:
        assert (kind, event["payload"]) == (INT64, payload)
    elif type(payload) is float:
        assert (kind, event["payload"]) == (DOUBLE, payload)
    else:
        _check_array(event, events, domain, payload)


def _check_array(event: Event, events: Events, domain: str | None, payload: Any) -> None:
    import numpy as np

    array = np.frombuffer(payload, np.uint8) if isinstance(payload, bytes) else np.asarray(payload)
    if array.nbytes == 0:
        # nothing to send: no payload at all, or an empty one
        assert event["payload_type"] == NONE or all(
            not data["data"].strip(b"\0") for data in event["payloads"]
        )
        return
    assert event["payload_type"] == EXTENDED
    (data,) = event["payloads"]
    expected, sent = array.tobytes(), data["data"]
    if data["schema"] < FIRST_OWN:
        assert isinstance(payload, bytes) or data["schema"] == PREDEFINED[array.dtype.str[1:]]
    else:
        schema = events.schemas[domain, data["schema"]]
        if schema["type"] == DYNAMIC:
            (count,) = struct.unpack_from("<Q", sent)
            assert count == (
                1 if sent[8:] == expected and count == 1 else array.size
            )  # bytes may be one element of their length
            sent = sent[8:]
        if array.dtype.names and schema["type"] != DYNAMIC:
            offsets = {name: array.dtype.fields[name][1] for name in array.dtype.names}  # type: ignore[index]
            assert {entry["name"]: entry["offset"] for entry in schema["entries"]} == offsets
    # bytes end with a NUL where they are sent as a string
    assert sent == expected or (isinstance(payload, bytes) and sent.rstrip(b"\0") == payload)


def verify_registration_events(
    events: Events, domain: str | None, message: str | None = None, category: Any = None, payload: Any = None
) -> None:
    """The domain and the category have been announced; messages and schemas are checked where they are used."""
    events.registered("domain")
    assert domain is None or domain in events.domains
    if isinstance(category, str):
        assert category in [name for (where, _), name in events.categories.items() if where == domain]


def verify_push(
    events: Events,
    domain: str | None,
    message: str | None,
    color: Any = None,
    category: Any = None,
    payload: Any = None,
) -> None:
    """The next call is a push of this."""
    _check(events.take("push"), events, domain, message, color, category, payload)


def verify_mark(
    events: Events,
    domain: str | None,
    message: str | None,
    color: Any = None,
    category: Any = None,
    payload: Any = None,
) -> None:
    """The next call is a mark of this."""
    _check(events.take("mark"), events, domain, message, color, category, payload)


def verify_start(
    events: Events,
    domain: str | None,
    message: str | None,
    color: Any = None,
    category: Any = None,
    payload: Any = None,
) -> None:
    """The next call starts a range of this."""
    _check(events.take("start"), events, domain, message, color, category, payload)


def verify_pop(events: Events, domain: str | None) -> None:
    """The next call is a pop in this domain."""
    assert events.take("pop")["domain"] == domain


def verify_end(events: Events, domain: str | None, range_id: Any) -> None:
    """The next call ends a range in this domain; a number, and the first of a pair, is the id that the tool gave."""
    event = events.take("end")
    assert event["domain"] == domain
    number = range_id[0] if isinstance(range_id, tuple) else range_id
    if isinstance(number, int):
        assert event["id"]
    assert event["id"] != 0


def verify_timestamp_get(events: Events, timestamp: int) -> None:
    """The next call asked the tool for this time."""
    assert events.take("timestamp")["value"] == timestamp


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def verify_counter_register(
    events: Events,
    domain: str | None,
    name: str,
    dtype: Any,
    *,
    description: Any = None,
    scope: Any = None,
    semantics: Any = None,
    time_domain: Any = None,
) -> int:
    """A counter like this is registered, now or by an earlier test; return its id."""
    events.registered("counter")
    found = [
        counter
        for (where, _), counter in events.counters.items()
        if where == domain
        and counter["name"] == name
        and _fits(events, domain, counter, dtype, description, scope, semantics, time_domain)
    ]
    assert found, (
        f"no such counter among {[c for (where, _), c in events.counters.items() if where == domain and c['name'] == name]}"
    )
    # Equal counters are one; but a session's fixtures make some again, so the last is the one in use.
    identity: int = found[-1]["id"]
    return identity


def _fits(
    events: Events,
    domain: str | None,
    counter: Event,
    dtype: Any,
    description: Any,
    scope: Any,
    semantics: Any,
    time_domain: Any,
) -> bool:
    if (counter["description"] or None) != (_text(description) or None):
        return False
    path = events.scopes.get((domain, counter["scope"]), {}).get("path")
    if scope and path != _text(scope):
        return False
    if not scope and path:
        return False
    times = [s["time_domain"] for s in counter["semantics"] if "time_domain" in s]
    wanted = getattr(time_domain, "value", None)
    if wanted is not None and times != [wanted] and not (times == [] and wanted == 1):
        return False
    rest = [s for s in counter["semantics"] if "time_domain" not in s]
    return _fits_semantics(rest, semantics) and _fits_type(events, domain, counter["schema"], dtype)


def _fits_semantics(said: list[Event], semantics: Any) -> bool:
    if semantics is None:
        return said == []
    if len(said) != 1:
        return False
    (one,) = said
    flags = semantics.value_type.value | semantics.interpolation.value
    return (
        one["flags"] & 0x7F0 == flags
        and one["unit"] == _text(semantics.unit)
        and (one["numerator"], one["denominator"])
        == (semantics.unit_scale_numerator, semantics.unit_scale_denominator)
        and (one["min"], one["max"]) == (semantics.min, semantics.max)
    )


def _fits_type(events: Events, domain: str | None, schema: int, dtype: Any) -> bool:
    name = (
        {int: "int64", float: "float64", "int": "int64", "float": "float64"}.get(dtype)
        if not _structured(dtype)
        else None
    )
    if name is None and not _structured(dtype):
        import numpy as np

        name = np.dtype(dtype).name
    if name is not None:
        return schema in PLAIN[name]
    entries = events.schemas.get((domain, schema), {}).get("entries", [])
    if len(entries) != len(dtype.names):
        return False
    for entry, field in zip(entries, dtype.names, strict=True):
        kind, offset = dtype.fields[field]
        if (entry["name"], entry["offset"], entry["type"]) != (field, offset, PREDEFINED[kind.str[1:]]):
            return False
        metadata = next((m for m in (kind.metadata or {}).values() if hasattr(m, "counter_semantics")), None)
        if metadata is not None and not _fits_semantics(entry["semantics"], metadata.counter_semantics):
            return False
    return True


def _structured(dtype: Any) -> bool:
    return getattr(dtype, "names", None) is not None


def _sample(events: Events, kind: str, domain: str | None, counter: int) -> Event:
    event = events.take(kind)
    assert (event["domain"], event["counter"]) == (domain, counter)
    return event


def verify_counter_sample_int64(events: Events, domain: str | None, counter: int, value: int) -> None:
    """The next call is this sample."""
    assert _sample(events, "sample_int64", domain, counter)["value"] == value


def verify_counter_sample_float64(events: Events, domain: str | None, counter: int, value: float) -> None:
    """The next call is this sample."""
    assert _sample(events, "sample_float64", domain, counter)["value"] == value


def verify_counter_sample(events: Events, domain: str | None, counter: int, value: bytes) -> None:
    """The next call is a sample of these bytes."""
    assert _sample(events, "sample", domain, counter)["data"] == value


def verify_counter_sample_no_value(events: Events, domain: str | None, counter: int, reason: int) -> None:
    """The next call says why there is no value."""
    assert _sample(events, "no_value", domain, counter)["reason"] == reason


def verify_counter_batch_submit(
    events: Events, domain: str | None, counter: int, values: bytes, timestamps: list[int]
) -> None:
    """The next call is this batch."""
    event = _sample(events, "batch", domain, counter)
    assert (event["data"], event["timestamps"]) == (values, timestamps)
