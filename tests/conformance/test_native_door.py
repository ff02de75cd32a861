"""The one door to the native library: who may load it, that each call names a function that it has, and that a wrong one is an error."""

from __future__ import annotations

import ast
import contextlib
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warplens import native
from warplens.native.library import library

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "warplens"
DOOR = PACKAGE / "native"
ROW = np.arange(4, dtype=np.int64)
_PREFIXES = ("events_", "perfetto_reader_json_", "trace_take_")  # f-strings begin so


def _calls() -> list[tuple[str, ast.Call]]:
    """List the calls of the door in the package: where, and the call."""
    calls = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "native" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                inside = DOOR in path.parents and name in ("call", "make")
                if inside or name in ("native.call", "native.make"):
                    calls.append((f"{path.relative_to(PACKAGE)}:{node.lineno}", node))
    return calls


def _names(node: ast.expr) -> list[str]:
    """Return the functions that the first argument of a call may name."""
    if isinstance(node, ast.IfExp):
        return [*_names(node.body), *_names(node.orelse)]
    if isinstance(node, ast.JoinedStr):
        begin = node.values[0]
        assert isinstance(begin, ast.Constant), ast.unparse(node)
        assert begin.value in _PREFIXES, ast.unparse(node)
        return [name for name in library() if name.startswith(begin.value)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def test_only_the_door_loads_the_library() -> None:
    others = [
        path
        for path in PACKAGE.rglob("*.py")
        if DOOR not in path.parents and "warplens_reader" in path.read_text(encoding="utf-8")
    ]
    assert not others


def test_each_call_names_a_function_with_as_many_arguments() -> None:
    used, wrong = set(), []
    for where, node in _calls():
        names = _names(node.args[0])
        if ast.unparse(node.args[0]) == "name":  # the door's own
            continue
        used |= set(names)
        given = len(node.args) - 1
        is_open = any(isinstance(argument, ast.Starred) for argument in node.args)
        several = isinstance(node.args[0], ast.JoinedStr)
        for name in sorted(names):
            function = library().get(name)
            if function is None:
                wrong.append(f"{where}: there is no function {name}")
            elif not (is_open or several) and len(function.arguments) != given:
                wrong.append(f"{where}: {name} takes {len(function.arguments)} arguments, not {given}")
    assert not wrong
    assert not library().keys() - used, "nobody calls these: remove them"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((ROW, ROW, ROW), "takes 4 arguments, not 3"),
        ((ROW.astype(np.int32), ROW, ROW, ROW), "argument 1 .* an array of int64 is needed, not of int32"),
        ((ROW, ROW[::2], ROW, ROW), "argument 2 .* are not contiguous"),
        ((ROW, ROW, ROW.tolist(), ROW), "argument 3 .* needed, not list"),
        ((ROW, ROW, np.frombuffer(bytes(32), np.int64), ROW), "argument 3 .* is read-only"),
        ((ROW, 4, ROW, ROW), "argument 2 .* needed, not int"),
    ],
)
def test_a_wrong_argument_is_an_error(arguments: tuple[object, ...], what: str) -> None:
    with pytest.raises(TypeError, match=f"unite_intervals.*{what}|{what}"):
        native.call("unite_intervals", *arguments)


def test_arrays_that_do_not_fit_together_are_an_error() -> None:
    with pytest.raises(ValueError, match="unite_intervals: the arrays differ in length"):
        native.call("unite_intervals", ROW, ROW[:2], ROW.copy(), ROW.copy())


def test_a_handle_of_another_class_is_an_error() -> None:
    trace = native.make("trace_new")
    with pytest.raises(
        TypeError, match=r"argument 1 of nests_add: a native object .*Nests.* needed, not .*Trace"
    ):
        native.call("nests_add", trace, ROW, ROW, ROW, np.empty(4, np.int32), ROW.copy())
    trace.close()
    trace.close()
    with pytest.raises(ValueError, match="closed"):
        native.call("trace_rows", trace, 0)


def test_a_number_that_does_not_fit_is_an_error() -> None:
    trace = native.make("trace_new")
    with pytest.raises(OverflowError):
        native.call("trace_rows", trace, 1 << 32)
    with pytest.raises(OverflowError):
        native.call("trace_rows", trace, -1)
    with pytest.raises(ValueError, match="no such kind"):
        native.call("trace_rows", trace, 1 << 20)


def _codes(*codes: int | None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array([0], pa.uint32()), safe=False)


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"end": ROW}, "the column start is missing"),
        ({"start": ROW.astype(np.int32)}, "the column start is of another type"),
        ({"start": [1, None]}, "the column start has rows without a value"),
        ({"start": ROW, "name": ROW}, "the column name is of another type"),
        ({"start": [1, 2], "name": _codes(0, 1)}, "the column name has a code beyond its dictionary"),
        ({"start": [1, 2], "name": _codes(-1, None)}, "the column name has a code beyond its dictionary"),
    ],
)
def test_a_wrong_table_is_an_error(columns: dict[str, Any], what: str) -> None:
    builder = native.make("index_builder_new", 0)
    with pytest.raises(ValueError, match=f"index_builder_add: {what}"):
        native.call("index_builder_add", builder, 0, 0, 0, pa.RecordBatch.from_pydict(columns))
    with pytest.raises(
        TypeError, match="argument 5 of index_builder_add: a record batch is needed, not dict"
    ):
        native.call("index_builder_add", builder, 0, 0, 0, columns)


@pytest.mark.parametrize("layer", [0, None], ids=["used", "refused"])
def test_tables_are_let_go_after_the_call(layer: int | None) -> None:
    memory = bytearray(ROW)
    batch = pa.RecordBatch.from_arrays(
        [pa.Array.from_buffers(pa.int64(), 4, [None, pa.py_buffer(memory)])], ["start"]
    )
    with pytest.raises(BufferError):
        memory.clear()
    with contextlib.suppress(TypeError):
        native.call("index_builder_add", native.make("index_builder_new", 0), layer, 0, 0, batch)
    del batch
    gc.collect()
    memory.clear()


def test_columns_come_with_their_names_and_types() -> None:
    reader = native.make("perfetto_reader_new")
    native.call("perfetto_reader_feed", reader, b"\x0a\x02\x32\x00" * 3, 1 << 20, np.zeros(4, np.uint64))
    notes, others = (native.call("perfetto_reader_columns", reader, group) for group in (1, 5))
    with pytest.raises(ValueError, match="no such group"):
        native.call("perfetto_reader_columns", reader, 99)
    reader.close()
    assert [(field.name, str(field.type), field.nullable) for field in notes.schema] == [
        ("event", "uint32", False),
        ("name", "int32", False),
        ("kind", "uint8", False),
        ("value", "uint64", False),
    ]
    others.validate(full=True)
    assert others.column("field").to_pylist() == [6] * 3  # clock snapshots; the reader is closed
