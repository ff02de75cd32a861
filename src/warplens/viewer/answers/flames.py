"""Flame graphs of stacks (threads, tasks), nested ranges, Python calls and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.errors import MissingData, UsageError
from warplens.report.selection import Selection, overlap
from warplens.viewer import limits
from warplens.viewer.answers.plain import cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warplens.report.report import Report
    from warplens.viewer.answers.loaded_report import Opened

KINDS = ("samples", "wall", "tasks", "nvtx", "kernels", "python")
_TABLES = {"nvtx": ("nvtx_ranges", "message"), "python": ("python_calls", "name")}
_MOST = 8_000_000  # ranges whose nesting is looked at


def flame(opened: Opened, kind: str, selection: Selection) -> dict[str, Any]:
    """Return `Flame` of a kind.

    Raises UsageError for one that there is not, MissingData if the report has nothing of it.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown flame graph {kind!r}; choose from {', '.join(KINDS)}")
    with opened.asking() as report:
        made = {"samples": _samples, "wall": _wall, "tasks": _tasks, "kernels": _kernels}.get(kind)
        root = made(opened, report, selection) if made else _nested(report, selection, *_TABLES[kind])
    return {"kind": kind, "unit": "ns", "root": root}


def _samples(opened: Opened, report: Report, selection: Selection) -> dict[str, Any]:
    from warplens.analysis.cpu.samples import kind_of, sampled

    rows = sampled(report, selection, kind=kind_of(report))
    if not rows.num_rows:
        raise MissingData(f"does not contain CPU samples of running threads{selection.place(report)}.")
    return _stacks(opened, "samples", rows)


def _wall(opened: Opened, report: Report, selection: Selection) -> dict[str, Any]:
    """Threads that ran or waited, without those that only waited at one place."""
    from warplens.analysis.cpu.samples import kind_of, sampled, without_idle

    rows = sampled(report, selection, kind=kind_of(report, wall=True), wall=True)
    if not rows.num_rows:
        raise MissingData(f"does not contain samples of Python{selection.place(report)}.")
    return _stacks(opened, "wall", without_idle(report, rows)[0])


def _tasks(opened: Opened, report: Report, selection: Selection) -> dict[str, Any]:
    """All tasks of asyncio, those that waited, too: each below the one that awaits it."""
    from warplens.analysis.cpu.samples import kind_of, sampled

    rows = sampled(report, selection, kind=kind_of(report, "tasks"), wall=True)
    if not rows.num_rows:
        raise MissingData(f"does not contain samples of asyncio tasks{selection.place(report)}.")
    return _stacks(opened, "tasks", rows)


def _stacks(opened: Opened, name: str, rows: pa.Table) -> dict[str, Any]:
    from warplens.analysis.cpu.stacks import Weights, top_down

    frames = opened.frames
    tree = top_down(frames, "function", Weights.of(frames, rows))
    examples = [frames.frame(position) for position in tree.example.tolist()]
    places = [
        f"{one.file}:{one.first_line or one.line or 1}" if one.kind == "python" and one.file else None
        for one in examples
    ]
    return _tree(
        name, tree.parent, tree.total, own=tree.own, names=[one.function for one in examples], places=places
    )


def _kernels(opened: Opened, report: Report, selection: Selection) -> dict[str, Any]:
    from warplens.analysis.gpu.kernel_classes import class_of

    if not report.tables["kernels"]:
        raise MissingData("does not contain CUDA kernel data.")
    window = selection.window(report)
    where = f"WHERE {overlap(*window)}" if window else ""
    rows = report.sql(
        f'SELECT name::VARCHAR AS name, sum("end" - "start")::BIGINT AS total FROM kernels {where} GROUP BY 1'
    ).to_pylist()
    if not rows:
        raise MissingData(f"does not contain CUDA kernel data{selection.place(report)}.")
    parents: list[int] = []
    totals: list[int] = []
    own: list[int] = []
    names: list[str] = []
    places: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: -row["total"]):
        class_ = class_of(row["name"])
        if class_ not in places:
            places[class_] = len(names)
            for column, value in ((parents, -1), (totals, 0), (own, 0)):
                column.append(value)
            names.append(class_)
        totals[places[class_]] += row["total"]
        for column, value in ((parents, places[class_]), (totals, row["total"]), (own, row["total"])):
            column.append(value)
        names.append(row["name"])
    return _tree("kernels", np.array(parents), np.array(totals), own=np.array(own), names=names)


def _nested(report: Report, selection: Selection, table: str, column: str) -> dict[str, Any]:
    """Sum ranges up by the names of those around them, level by level."""
    if not report.tables[table]:
        raise MissingData(
            f"does not contain {'NVTX data' if table == 'nvtx_ranges' else 'traced Python calls'}."
        )
    window = selection.window(report)
    where = f"WHERE {overlap(*window)}" if window else ""
    begin, end = window or (-(1 << 62), 1 << 62)
    rows = report.sql(
        f"""SELECT id, parent, {column} AS name, least("end", {end}) - greatest("start", {begin}) AS length FROM {table} {where}
            LIMIT {_MOST + 1}"""
    )
    if rows.num_rows > _MOST:
        raise MissingData(
            f"has more than {_MOST:,} rows in {table}{selection.place(report)}: select a shorter part of it."
        )
    if not rows.num_rows:
        raise MissingData(f"does not contain rows in {table}{selection.place(report)}.")
    names = rows.column("name").combine_chunks().cast(pa.string()).fill_null("").dictionary_encode()
    ids, above, length = (
        np.asarray(rows.column(name).fill_null(-1).to_numpy(), np.int64)
        for name in ("id", "parent", "length")
    )
    parent = _positions(ids, above)
    parents, labels, node = _paths(parent, np.asarray(names.indices.to_numpy(), np.int64))
    total = np.zeros(len(parents), np.int64)
    np.add.at(total, node, length)
    own = total.copy()
    np.subtract.at(own, parents[parents >= 0], total[parents >= 0])
    texts = names.dictionary.to_pylist()
    return _tree(
        table, parents, total, own=np.maximum(own, 0), names=[texts[label] for label in labels.tolist()]
    )


def _positions(ids: Int64Array, wanted: Int64Array) -> Int64Array:
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
    rows = order[place]
    return np.where(ids[rows] == wanted, rows, -1)


def _paths(parent: Int64Array, label: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the nodes of the tree of paths (the parent of each, and its label), and the node of each row."""
    node = np.full(len(parent), -1, np.int64)
    parents, labels = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    # Level by level from the roots: rows with the same parent node and the same label become one
    # node. Ten calls of f under the same main are one rectangle.
    rows, count = np.flatnonzero(parent < 0), 0
    width = int(label.max()) + 1
    children = np.argsort(parent, kind="stable")
    sorted_parents = parent[children]
    while len(rows) and count < len(parent) + 1:
        above = np.where(parent[rows] >= 0, node[parent[rows]], -1)
        keys, place = np.unique((above + 1) * width + label[rows], return_inverse=True)
        node[rows] = count + place
        parents.append(keys // width - 1)
        labels.append(keys % width)
        count += len(keys)
        first, last = (
            np.searchsorted(sorted_parents, rows),
            np.searchsorted(sorted_parents, rows, side="right"),
        )
        number = last - first
        offsets = np.repeat(first - np.append(0, np.cumsum(number)[:-1]), number) + np.arange(number.sum())
        rows = children[offsets]
    return (
        np.concatenate(parents),
        np.concatenate(labels),
        np.maximum(node, 0),
    )  # what is its own ancestor, in a broken report, is in none


def _tree(
    name: str,
    parents: Int64Array,
    totals: Int64Array,
    own: Int64Array,
    names: Sequence[str],
    places: Sequence[str | None] = (),
) -> dict[str, Any]:
    """Return the nodes as one tree: of very many the heaviest.

    A node is kept only with all above it. `places`: file and line of each.
    """
    order = np.argsort(-totals, kind="stable")[: limits.FLAME_NODES]
    root: dict[str, Any] = {"name": name, "value": int(totals[parents < 0].sum()), "self": 0, "children": []}
    made: dict[int, dict[str, Any]] = {-1: root}
    kept = set(order.tolist())
    for place in sorted(kept):  # parents come before their children
        above = made.get(int(parents[place]))
        if above is None:
            continue
        node: dict[str, Any] = {
            "name": cut(names[place]),
            "value": int(totals[place]),
            "self": int(own[place]),
            "children": [],
        }
        if places and (where := places[place]) is not None:
            node["place"] = cut(where)
        above["children"].append(node)
        made[place] = node
    for node in made.values():
        node["children"].sort(key=lambda child: -child["value"])
    return root
