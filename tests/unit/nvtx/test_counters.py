"""Counters: what a tool gets of their registration and samples."""

from __future__ import annotations

import importlib
import pickle
import struct
from typing import Any

import pytest

from tests.unit.nvtx.conftest import Record
from warplens import nvtx
from warplens.nvtx import (
    CounterInterpolation,
    CounterSemantics,
    CounterValueType,
    TimestampType,
    _absent,
    _binding,
)

pytestmark = pytest.mark.require("native")


@pytest.mark.require("gcc")
def test_numbers_arrive_as_their_kind_of_sample(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        domain = nvtx.get_domain("d")
        whole = domain.get_counter("whole", int, description="of things", scope="a/b")
        real = domain.get_counter("real", float, scope=nvtx.PredefinedScope.CURRENT_SW_PROCESS)
        whole.sample(-5); whole.sample(True); real.sample(0.5); real.sample(3)
        whole.sample_no_value(nvtx.CounterNoValueReason.UNCHANGED)
        assert domain.get_counter("whole", int, description="of things", scope="a/b") is whole
        assert domain.get_counter("whole", int) is not whole
        assert nvtx.get_domain("e").get_counter("real", float) is not real
    """
    events = record(code)
    scope, whole, real = (next(e for e in events if e["event"] == kind and e.get("name") in (None, name)) for kind, name in
                          (("scope", None), ("counter", "whole"), ("counter", "real")))  # fmt: skip
    assert (scope["path"], whole["scope"], real["scope"]) == ("a/b", scope["id"], 21)
    assert (whole["schema"], real["schema"], whole["description"], whole["domain"]) == (
        17,
        44,
        "of things",
        "d",
    )
    assert [semantics["time_domain"] for semantics in whole["semantics"]] == [
        TimestampType.TOOL_PROVIDED.value
    ]
    samples = [
        (e["event"], e["id"], e.get("value", e.get("reason")))
        for e in events
        if e["event"].startswith("sample")
    ]
    assert samples == [
        ("sample_int64", whole["id"], -5),
        ("sample_int64", whole["id"], 1),
        ("sample_float64", real["id"], 0.5),
        ("sample_float64", real["id"], 3),
        ("sample_no_value", whole["id"], 1),
    ]


@pytest.mark.require("gcc")
def test_semantics_are_registered(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        S = nvtx.CounterSemantics
        domain = nvtx.get_domain("d")
        for i, semantics in enumerate((S(unit="objects", min=0), S(max=1 << 63), S(unit=b"bytes", max=1024.0, unit_scale_denominator=1024),
                S(value_type=nvtx.CounterValueType.DELTA, interpolation=nvtx.CounterInterpolation.LINEAR, min=-5, max=5))):
            domain.get_counter(f"c{i}", int, semantics=semantics, time_domain=nvtx.TimestampType.CPU_TSC).sample(1)
    """
    counters = [event["semantics"] for event in record(code, "counter")]
    assert [semantics[1]["time_domain"] for semantics in counters] == [TimestampType.CPU_TSC.value] * 4
    point, absolute = CounterInterpolation.POINT.value, CounterValueType.ABSOLUTE.value
    linear, delta = CounterInterpolation.LINEAR.value, CounterValueType.DELTA.value
    said = [
        (s[0]["unit"], s[0]["flags"], s[0]["limit_type"], s[0]["min"], s[0]["max"], s[0]["denominator"])
        for s in counters
    ]
    assert said == [
        ("objects", absolute | point | 4, 2, 0, 0, 1),
        (None, absolute | point | 8, 2, 0, -(2**63), 1),
        ("bytes", absolute | point | 8, 3, 0, 1024.0, 1024),
        (None, delta | linear | 12, 1, -5, 5, 1),
    ]


@pytest.mark.require("gcc")
def test_a_scope_is_registered_once_per_domain(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        for domain in ("one", "two"):
            for number in range(30):
                for path in ("node/gpu0", "node/gpu1", None):
                    nvtx.get_domain(domain).get_counter(f"c{number}", int, scope=path).sample(number)
    """
    events = record(code)
    told = sorted((event["domain"], event["path"]) for event in events if event["event"] == "scope")
    assert told == [(domain, path) for domain in ("one", "two") for path in ("node/gpu0", "node/gpu1")]
    used = {(event["domain"], event["scope"]) for event in events if event["event"] == "counter"}
    assert len(used) == 6


@pytest.mark.require("numpy")
@pytest.mark.parametrize("empty", ["V0", "S0", []])
def test_a_counter_without_bytes_is_refused(empty: Any) -> None:
    with pytest.raises(TypeError, match="it has no bytes"):
        nvtx.get_domain().get_counter("empty", importlib.import_module("numpy").dtype(empty))


@pytest.mark.require("gcc")
def test_groups_need_no_numpy(record: Record) -> None:
    code = """
        import sys, warnings, warplens.nvtx as nvtx
        warnings.simplefilter("ignore")
        group = nvtx.get_domain().get_counter("g", {"a": int, "b": nvtx.uint32, "c": float})
        group.sample((1, 2, 0.5)); group.sample({"c": 1.5, "b": 4, "a": 3})
        group.batch_submit([(5, 6, 2.5), (7, 8, 3.5)], [10, 11])
        for wrong in ((1, 2), {"a": 1}, (1, -2, 3), "text", (1, None, 2)): group.sample(wrong)
        single = nvtx.get_domain().get_counter("s", nvtx.float32)
        single.sample(0.5)
        assert "numpy" not in sys.modules
    """
    events = record(code)
    (schema,) = [event for event in events if event["event"] == "schema"]
    assert (schema["flags"], schema["size"]) == (8, 24)
    assert [(e["name"], e["type"], e["flags"], e["offset"]) for e in schema["entries"]] == [
        ("a", 17, 4 << 12, 0), ("b", 16, 4 << 12, 8), ("c", 44, 4 << 12, 16)]  # fmt: skip
    layout = "<qI4xd"
    samples = [event["value"] for event in events if event["event"] == "sample"]
    assert [struct.unpack(layout, value) for value in samples[:2]] == [(1, 2, 0.5), (3, 4, 1.5)]
    assert samples[2] == struct.pack("<f", 0.5)
    (batch,) = [event for event in events if event["event"] == "batch"]
    assert [batch["value"][i * 24 : i * 24 + 24] for i in range(2)] == [
        struct.pack(layout, 5, 6, 2.5),
        struct.pack(layout, 7, 8, 3.5),
    ]
    assert batch["times"] == struct.pack("<qq", 10, 11)
    assert [event["reason"] for event in events if event["event"] == "sample_no_value"] == [2] * 5


@pytest.mark.slow
@pytest.mark.require("gcc", "numpy")
def test_numpy_dtypes_are_samples(record: Record) -> None:
    code = """
        import numpy as np, warplens.nvtx as nvtx
        objects = nvtx.numpy_dtype(int, counter_semantics=nvtx.CounterSemantics(unit="objects", min=0))
        when = nvtx.numpy_dtype(np.int64, entry_kind=nvtx.EntryKind.COUNTER_TIMESTAMP)
        dtype = np.dtype([("count", objects), ("when", when), ("share", "f4")])
        domain = nvtx.get_domain("d")
        counter = domain.get_counter("g", dtype)
        counter.sample((1, 2, 0.5)); counter.sample(np.array((3, 4, 1.5), dtype=dtype))
        counter.sample(np.array([(5, 6, 2)], dtype=dtype)[0])
        counter.batch_submit(np.array([(7, 8, 0), (9, 10, 0)], dtype=dtype), np.array([1, 2]))
        small = domain.get_counter("s", np.uint8)
        small.sample(np.uint8(200)); small.batch_submit([1, 2], (3, 4))
        pair = domain.get_counter("p", np.dtype((np.int16, 2)))
        pair.sample([1, 2])
        swapped = domain.get_counter("w", ">i4"); swapped.sample(1)
        assert type(domain.get_counter("i", np.int64)) is nvtx.Int64Counter
        assert type(domain.get_counter("f", "float")) is nvtx.Float64Counter
    """
    events = record(code)
    schema = next(event for event in events if event["event"] == "schema")
    assert [
        (e["name"], e["flags"], [s["unit"] for s in e.get("semantics", [])]) for e in schema["entries"]
    ] == [
        ("count", 4 << 12, ["objects"]),
        ("when", 2 << 10, []),
        ("share", 4 << 12, []),
    ]
    values = [event["value"] for event in events if event["event"] in ("sample", "batch")]
    one = "<qqf"
    assert values[:3] == [struct.pack(one, 1, 2, 0.5), struct.pack(one, 3, 4, 1.5), struct.pack(one, 5, 6, 2)]
    assert values[3] == struct.pack(one, 7, 8, 0) + struct.pack(one, 9, 10, 0)
    assert values[4:7] == [b"\xc8", b"\x01\x02", struct.pack("<hh", 1, 2)]


@pytest.mark.require("gcc")
def test_a_value_that_does_not_fit_warns_once_and_keeps_its_time(record: Record) -> None:
    code = """
        import warnings, warplens.nvtx as nvtx
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            counter = nvtx.get_domain().get_counter("c", int)
            for _ in range(2): counter.sample(2**63)
            counter.batch_submit([2**63], [1])
            counter.batch_submit((x for x in (1, 2)), (x for x in [(1)]))
        assert [w.category for w in caught] == [nvtx.NvtxWarning] * 3, [str(w.message) for w in caught]
    """
    events = record(code, "sample_no_value", "sample_int64", "batch")
    assert [(event["event"], event.get("reason")) for event in events] == [("sample_no_value", 2)] * 2


@pytest.mark.parametrize("module", [_binding, _absent], ids=["binding", "absent"])
def test_without_a_tool_counters_are_there_and_mistakes_show(module: Any) -> None:
    domain = module.Domain("silent counters")
    counter = domain.get_counter("c", int, semantics=CounterSemantics(unit="x"))
    assert domain.get_counter("c", int, semantics=CounterSemantics(unit="x")) is counter
    assert domain.get_counter("c", int) is not counter
    assert (counter.name, counter.domain, counter.dtype, counter.description, counter.scope) == (
        "c",
        domain,
        int,
        None,
        None,
    )
    assert (counter.semantics, counter.time_domain) == (
        CounterSemantics(unit="x"),
        TimestampType.TOOL_PROVIDED,
    )
    counter.sample(1)
    counter.sample_no_value(nvtx.CounterNoValueReason.ZERO)
    counter.batch_submit([1], [2])
    assert isinstance(counter, module.Counter)
    assert domain.get_timestamp() == 0
    for wrong in ("no such dtype", object, {}, {"a": str}, {1: int}, None):
        with pytest.raises(TypeError):
            domain.get_counter("c", wrong)
    with pytest.raises(TypeError):
        module.Counter()


def test_the_binding_checks_samples_without_a_tool() -> None:
    domain: Any = nvtx.get_domain("checked counters")
    with pytest.raises(TypeError, match="needs an int, not float"):
        domain.get_counter("c", int).sample(1.5)
    with pytest.raises(TypeError, match="needs a float, not str"):
        domain.get_counter("f", float).sample("1.5")
    with pytest.raises(ValueError, match="same length, not 1 and 2"):
        domain.get_counter("c", int).batch_submit([1], [1, 2])
    for name in ("scope", "semantics", "time_domain"):
        with pytest.raises(TypeError, match=name):
            domain.get_counter("c", int, **{name: 1.5})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"min": 2, "max": 1}, ValueError),
        ({"min": -1, "max": 1 << 63}, ValueError),
        ({"max": 1 << 64}, ValueError),
        ({"min": 1, "max": 2.0}, ValueError),
        ({"min": "low"}, TypeError),
        ({"unit_scale_numerator": 0}, ValueError),
        ({"unit_scale_denominator": 1.5}, TypeError),
        ({"unit": 1}, TypeError),
        ({"value_type": 16}, TypeError),
        ({"interpolation": 256}, TypeError),
    ],
)
def test_semantics_that_contradict_themselves_are_refused(
    wrong: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        CounterSemantics(**wrong)


def test_semantics_are_values() -> None:
    semantics = CounterSemantics(unit="bytes", min=0)
    assert semantics == CounterSemantics(unit=b"bytes", min=0) == pickle.loads(pickle.dumps(semantics))
    assert hash(semantics) == hash(CounterSemantics(unit=b"bytes", min=0))
    assert semantics != CounterSemantics(unit="bytes")
    assert repr(semantics).startswith(
        "CounterSemantics(unit=b'bytes', value_type=<CounterValueType.ABSOLUTE: 16>"
    )
    with pytest.raises(AttributeError):
        semantics.unit = b"x"


@pytest.mark.require("numpy")
def test_numpy_dtypes_carry_what_they_mean() -> None:
    import numpy as np

    semantics = CounterSemantics(unit="x")
    dtype = nvtx.numpy_dtype(np.int64, counter_semantics=semantics, entry_kind=nvtx.EntryKind.MARK)
    assert dtype == np.int64
    assert dtype.metadata is not None
    (meant,) = dtype.metadata.values()
    assert (meant.counter_semantics, meant.entry_kind, meant.entry_type) == (
        semantics,
        nvtx.EntryKind.MARK,
        None,
    )
    assert nvtx.numpy_dtype("f4") == np.dtype("f4")
    with pytest.warns(nvtx.NvtxWarning, match="already"):
        assert nvtx.numpy_dtype(dtype, counter_semantics=semantics) is dtype
    for wrong in (
        {"entry_kind": nvtx.EntryKind.MARK},
        {"entry_type": nvtx.PayloadEntryType.COLOR_ARGB},
        {"entry_kind": 5},
        {"entry_type": 5},
    ):
        with pytest.raises(TypeError):
            nvtx.numpy_dtype(np.float32, **wrong)
