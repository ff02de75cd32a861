"""Trees of stacks: from above, from below and flat, against the same thing in plain Python over every sample's list of frames."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warplens.analysis.cpu.frames import NO_STACK, Frame, FrameTable
from warplens.analysis.cpu.stacks import StackTree, Weights, bottom_up, each_stack, flat, top_down
from warplens.errors import UsageError
from warplens.storage import schema

Sample = tuple[int, int | None, int, int]  # group, key of the frame, weight, count
Path = tuple[tuple[Any, ...], ...]


def frames_of(rows: list[dict[str, Any]]) -> FrameTable:
    return FrameTable(
        schema.build("frames", [{"process": 0, "depth": 0, "kind": "python", **row} for row in rows])
    )


def chain(*functions: str) -> FrameTable:
    """One stack, the outermost function first; keys count from 10."""
    return frames_of(
        [
            {"frame": 10 + n, "parent": 9 + n if n else None, "function": name}
            for n, name in enumerate(functions)
        ]
    )


def weights(frames: FrameTable, samples: list[Sample]) -> Weights:
    rows = schema.build(
        "samples", [{"stack": key, "weight": weight, "count": count} for _, key, weight, count in samples]
    )
    return Weights.of(frames, rows, np.array([group for group, *_ in samples], np.int64))


def named(frames: FrameTable, tree: StackTree, **limits: Any) -> list[tuple[int, str, int, int]]:
    """Level, function, own and total time in the order of reading."""
    return [
        (
            int(tree.level[node]),
            frames.frame(int(tree.example[node])).function,
            int(tree.own[node]),
            int(tree.total[node]),
        )
        for node in tree.order(**limits)
    ]


def test_a_function_that_calls_itself_counts_once_in_its_total() -> None:
    frames = chain("main", "fib", "fib", "fib")
    samples: list[Sample] = [(0, 13, 5, 1), (0, 12, 7, 2), (0, 10, 1, 1)]
    tree = top_down(frames, "function", weights(frames, samples))
    assert named(frames, tree) == [(0, "main", 1, 13), (1, "fib", 0, 12), (2, "fib", 7, 12), (3, "fib", 5, 5)]
    flattened = flat(tree)
    assert [frames.frame(place).function for place in flattened.example.tolist()] == ["fib", "main"]
    assert (flattened.own.tolist(), flattened.total.tolist()) == ([12, 1], [12, 13])
    assert (flattened.own_samples.tolist(), flattened.samples.tolist()) == ([3, 1], [3, 4])


def test_callers_below_the_frames_that_samples_ended_in() -> None:
    frames = chain("main", "fib", "fib", "sum")
    tree = bottom_up(frames, "function", weights(frames, [(0, 13, 5, 1), (0, 12, 7, 2), (0, 11, 1, 1)]))
    assert named(frames, tree) == [
        (0, "fib", 8, 8),
        (1, "fib", 0, 7),
        (2, "main", 0, 7),
        (1, "main", 0, 1),
        (0, "sum", 5, 5),
        (1, "fib", 0, 5),
        (2, "fib", 0, 5),
        (3, "main", 0, 5),
    ]
    assert named(frames, tree, depth=1) == [(0, "fib", 8, 8), (0, "sum", 5, 5)]
    assert named(frames, tree, least=7) == [(0, "fib", 8, 8), (1, "fib", 0, 7), (2, "main", 0, 7)]
    short = bottom_up(
        frames, "function", weights(frames, [(0, 13, 5, 1), (0, 12, 7, 2), (0, 11, 1, 1)]), least=7
    )
    assert named(frames, short, least=7) == named(frames, tree, least=7)
    assert len(short) < len(tree)
    assert named(frames, bottom_up(frames, "function", weights(frames, [(0, 13, 5, 1)]), depth=2)) == [
        (0, "sum", 5, 5),
        (1, "fib", 0, 5),
    ]


def test_lines_functions_and_modules() -> None:
    where = {"file": "/a.py", "first_line": 1}
    frames = frames_of(
        [
            {"frame": 1, "function": "f", "line": 2, **where},
            {"frame": 2, "function": "f", "line": 3, **where},
            {"frame": 3, "parent": 1, "function": "g", "line": 9, **where},
            {"frame": 4, "parent": 3, "function": "f", "line": 2, "file": "/b.py", "first_line": 1},
            {
                "frame": 5,
                "parent": 4,
                "function": "memcpy",
                "kind": "native",
                "module": "libc.so.6",
                "file": "m.S",
                "line": 3,
            },
            {
                "frame": 6,
                "parent": 5,
                "function": "memcpy",
                "kind": "native",
                "module": "libc.so.6",
                "file": "other.S",
                "line": 8,
            },
        ]
    )
    seen = weights(frames, [(0, 2, 1, 1), (0, 4, 10, 1), (0, 6, 100, 1)])
    assert named(frames, top_down(frames, "function", seen)) == [
        (0, "f", 1, 111),
        (1, "g", 0, 110),
        (2, "f", 10, 110),  # of another file
        (3, "memcpy", 0, 100),
        (4, "memcpy", 100, 100),
    ]
    assert len(flat(top_down(frames, "line", seen))) == 6
    assert len(flat(top_down(frames, "function", seen))) == 4
    assert [
        (level, own, total) for level, _, own, total in named(frames, top_down(frames, "module", seen))
    ] == [
        (0, 1, 111),  # a.py
        (1, 10, 110),  # b.py
        (2, 100, 100),  # libc
    ]
    with pytest.raises(UsageError, match="function, line, module"):
        frames.labels("colour")


def test_functions_of_python_alone() -> None:
    native = {"kind": "native", "module": "lib.so"}
    rows: list[dict[str, Any]] = [
        {"frame": 1, "function": "_start", **native},
        {"frame": 2, "parent": 1, "function": "main"},
        {"frame": 3, "parent": 2, "function": "eval", **native},
        {"frame": 4, "parent": 3, "function": "call", **native},
        {"frame": 5, "parent": 4, "function": "step"},
        {"frame": 6, "parent": 5, "function": "sqrt", **native},
        {"frame": 7, "parent": 1, "function": "idle", **native},
    ]
    table = schema.build("frames", [{"process": 0, "depth": 0, "kind": "python", **row} for row in rows])
    frames = FrameTable(table, only_python=True)
    tree = top_down(
        frames,
        "function",
        weights(frames, [(0, 6, 1, 1), (0, 5, 10, 1), (0, 4, 100, 1), (0, 7, 1000, 1), (0, None, 5, 1)]),
    )
    assert named(frames, tree) == [
        (0, "_start", 1000, 1000),
        (0, "main", 100, 111),
        (1, "step", 11, 11),
        (0, NO_STACK, 5, 5),
    ]
    assert [frame.function for frame in frames.path(int(frames.positions(pa.array([6]))[0]))] == [
        "main",
        "step",
    ]


def test_without_a_stack() -> None:
    frames = chain("main")
    assert [
        stack
        for stack, *_ in each_stack(
            frames, schema.build("samples", [{"stack": None, "weight": 3, "count": 1}])
        )
    ] == [(Frame("native", NO_STACK),)]
    tree = top_down(frames, "function", weights(frames, [(0, None, 3, 1), (0, 10, 4, 1), (0, 999, 1, 1)]))
    assert named(frames, tree) == [(0, "main", 4, 4), (0, NO_STACK, 4, 4)]


@pytest.mark.parametrize("by", ["function", "line", "module"])
def test_no_frames_and_no_samples(by: str) -> None:
    for frames in (frames_of([]), chain("main", "f")):
        tree = top_down(frames, by, weights(frames, []))
        assert (
            len(tree)
            == len(flat(tree))
            == len(bottom_up(frames, by, weights(frames, [])))
            == len(tree.order())
            == 0
        )


def test_frames_in_a_circle_do_no_harm() -> None:
    frames = frames_of([{"frame": n, "parent": 1 + n % 3, "function": "f", "module": "m"} for n in (1, 2, 3)])
    for by in ("function", "line", "module"):
        tree = top_down(frames, by, weights(frames, [(0, 2, 5, 1)]))
        assert [row[3] for row in named(frames, tree)] == [5]
    assert frames.path(0)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed: int) -> None:
    rng = random.Random(seed)
    frames, samples = _random(rng)
    paths = {row: frames.path(row) for row in range(len(frames))}
    seen = weights(frames, samples)
    names = {"function": _function, "line": _line, "module": _module}
    for by, label in names.items():
        stacks: list[tuple[int, Path, int]] = []
        for group, position, weight in zip(
            seen.group.tolist(), seen.stack.tolist(), seen.weight.tolist(), strict=True
        ):
            path = tuple(label(frame) for frame in paths[position])
            stacks.append((group, _squeezed(path) if by == "module" else path, weight))
        tree = top_down(frames, by, seen)
        below = bottom_up(frames, by, seen)
        assert _nodes(frames, tree, label) == _expected(
            [(group, path, weight) for group, path, weight in stacks]
        )
        upside = [(group, tuple(reversed(path)), weight) for group, path, weight in stacks]
        assert {key: total for key, (_, total) in _nodes(frames, below, label).items()} == {
            key: total for key, (_, total) in _expected(upside).items()
        }
        own: Counter[tuple[int, Any]] = Counter()
        total: Counter[tuple[int, Any]] = Counter()
        for group, path, weight in stacks:
            own[group, path[-1]] += weight
            for name in set(path):
                total[group, name] += weight
        flattened = flat(tree)
        for node in range(len(flattened)):
            key = (int(flattened.group[node]), label(frames.frame(int(flattened.example[node]))))
            assert (flattened.own[node], flattened.total[node]) == (own[key], total[key])
        assert len(flattened) == len(total)
        order = tree.order()
        assert len(order) == len(tree)
        for before, node in pairwise(order.tolist()):  # below its parent, or beside a heavier one
            assert tree.level[node] <= tree.level[before] + 1
            if tree.level[node] > tree.level[before]:
                assert tree.parent[node] == before
            elif tree.level[node] == tree.level[before] and tree.group[node] == tree.group[before]:
                assert tree.total[node] <= tree.total[before]


def _function(frame: Frame) -> tuple[Any, ...]:
    python = frame.kind == "python"
    return (
        frame.kind,
        frame.function,
        frame.module,
        frame.file if python else None,
        frame.first_line if python else None,
    )


def _line(frame: Frame) -> tuple[Any, ...]:
    return (*_function(frame), frame.file, frame.line)


def _module(frame: Frame) -> tuple[Any, ...]:
    return (frame.kind, frame.module, frame.file if frame.module is None else None)


def _squeezed(path: Path) -> Path:
    return tuple(name for name, before in zip(path, (None, *path), strict=False) if name != before)


def _expected(stacks: list[tuple[int, Path, int]]) -> dict[tuple[int, Path], tuple[int, int]]:
    own: Counter[tuple[int, Path]] = Counter()
    total: Counter[tuple[int, Path]] = Counter()
    for group, path, weight in stacks:
        own[group, path] += weight
        for length in range(1, len(path) + 1):
            total[group, path[:length]] += weight
    return {key: (own[key], total[key]) for key in total}


def _nodes(frames: FrameTable, tree: StackTree, label: Any) -> dict[tuple[int, Path], tuple[int, int]]:
    paths: list[Path] = []
    found = {}
    for node in range(len(tree)):
        above = paths[tree.parent[node]] if tree.parent[node] >= 0 else ()
        paths.append((*above, label(frames.frame(int(tree.example[node])))))
        assert (int(tree.group[node]), paths[-1]) not in found
        found[int(tree.group[node]), paths[-1]] = (int(tree.own[node]), int(tree.total[node]))
    return found


def _random(rng: random.Random) -> tuple[FrameTable, list[Sample]]:
    rows: list[dict[str, Any]] = []
    for number in range(rng.randrange(1, 120)):
        kind = rng.choice(("python", "python", "native"))
        row: dict[str, Any] = {
            "frame": 100 + 3 * number,
            "parent": rng.choice([None, *(row["frame"] for row in rows)]),
            "kind": kind,
        }
        row |= {"function": rng.choice("fgh"), "line": rng.choice((1, 2, None))}
        if kind == "python":
            row |= {"file": rng.choice(("/a.py", "/b.py")), "first_line": rng.choice((1, 2))}
        else:
            row |= {"module": rng.choice(("libc.so.6", "libm.so.6")), "file": rng.choice(("m.c", None))}
        rows.append(row)
    keys = [row["frame"] for row in rows]
    rng.shuffle(rows)
    samples: list[Sample] = [
        (rng.randrange(3), rng.choice([None, *keys]), rng.randrange(1, 100), 1) for _ in range(200)
    ]
    return frames_of(rows), samples


def mixed() -> FrameTable:
    """Two samples of one program, of which one was joined with the interpreter's own frames, and an OpenMP worker."""
    rows = [
        (1, None, "native", "_start", "python3"),
        (2, 1, "native", "Py_RunMain", "libpython3.so"),
        (3, 2, "python", "<module>", None),
        (4, 3, "native", "sum", "libpython3.so"),
        (5, 4, "python", "hot", None),
        (6, None, "python", "<module>", None),
        (7, 6, "python", "hot", None),
        (8, None, "native", "clone3", "libc.so.6"),
        (9, 8, "native", "gomp_thread_start", "libgomp.so.1"),
        (10, 9, "native", "spin", "libgomp.so.1"),
        (11, None, "native", "[kernel]", "[kernel]"),
    ]
    names = ("frame", "parent", "kind", "function", "module")
    return FrameTable(
        schema.build(
            "frames", [{"process": 0, "depth": 0, **dict(zip(names, row, strict=True))} for row in rows]
        )
    )


def test_a_program_of_python_has_one_root_however_its_stacks_were_taken() -> None:
    frames = mixed()
    tree = top_down(frames, "function", weights(frames, [(0, 5, 10, 1), (0, 7, 20, 1), (0, 10, 5, 1)]))
    assert named(frames, tree) == [
        (0, "<module>", 0, 30),
        (1, "hot", 20, 20),
        (1, "sum", 0, 10),
        (2, "hot", 10, 10),
        (0, "clone3", 0, 5),
        (1, "gomp_thread_start", 0, 5),
        (2, "spin", 5, 5),
    ]


def test_among_functions_of_python_a_worker_without_any_has_the_name_of_what_it_began_with() -> None:
    rows = mixed()._rows.slice(0, 11)
    frames = FrameTable(rows, only_python=True)
    tree = flat(
        top_down(
            frames, "function", weights(frames, [(0, 4, 10, 1), (0, 10, 5, 1), (0, 2, 3, 1), (0, 11, 1, 1)])
        )
    )
    assert named(frames, tree) == [
        (0, "<module>", 10, 10),
        (0, "gomp_thread_start", 5, 5),
        (0, "_start", 3, 3),
        (0, NO_STACK, 1, 1),
    ]


def test_wake_ups_of_the_kernel_calls_within_python_and_our_own_frames_count_for_their_callers() -> None:
    rows = [
        (1, None, "python", "<module>", None, "/a.py"),
        (2, 1, "native", "PyObject_Vectorcall", "libpython3.11.so.1.0", None),
        (3, 2, "native", "cfunction_vectorcall_O.cold", "python3.11", None),
        (4, 3, "native", "list_sort", "python3.11", None),
        (5, 1, "python", "pop", None, "/x/site-packages/warplens/nvtx/annotate.py"),
        (6, 5, "native", "write", "libwarplens_agent.so", None),
        (7, 6, "native", "futex", "libc.so.6", None),
        (8, 7, "kernel", "futex_wake", "[kernel]", None),
        (9, 8, "kernel", "wake_up_q", "[kernel]", None),
        (10, 9, "kernel", "try_to_wake_up", "[kernel]", None),
        (11, 10, "kernel", "enqueue_task_fair", "[kernel]", None),
        (12, None, "kernel", "schedule", "[kernel]", None),  # its caller is not known
        (13, 12, "kernel", "__schedule", "[kernel]", None),
        (14, None, "native", "PyObject_Vectorcall", "python3.11", None),  # below no frame of Python
        (15, 14, "native", "schedule", "app", None),  # a program's function of that name
    ]
    columns = ("frame", "parent", "kind", "function", "module", "file")
    table = schema.build(
        "frames", [{"process": 0, "depth": 0, **dict(zip(columns, row, strict=True))} for row in rows]
    )
    frames = FrameTable(table)
    seen = weights(frames, [(0, row[0], 1 << row[0], 1) for row in rows])
    assert named(frames, top_down(frames, "function", seen)) == [
        (0, "PyObject_Vectorcall", 1 << 14, 3 << 14),
        (1, "schedule", 1 << 15, 1 << 15),
        (0, "schedule", 1 << 12, 3 << 12),
        (1, "__schedule", 1 << 13, 1 << 13),
        (0, "<module>", 0b1101110, 0b111111111110),
        (1, "futex", 1 << 7, 0b111110000000),
        (2, "futex_wake", 0b111100000000, 0b111100000000),
        (1, "list_sort", 1 << 4, 1 << 4),
    ]
    only = FrameTable(table, only_python=True)
    assert only.frame(int(only.positions(pa.array([11]))[0])).function == "<module>"
