"""Communication between ranks: the table `collectives`, from PyTorch's records of NCCL calls."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int32Array
from warplens.importers.kineto.columns import where_known
from warplens.importers.kineto.layout import KINDS
from warplens.importers.rows import numbered
from warplens.storage.writer import RANGES_PER_PROCESS

if TYPE_CHECKING:
    from warplens.importers.kineto.ranges import KinetoRanges
    from warplens.importers.kineto.trace import KinetoTrace
    from warplens.importers.kineto.work import KinetoKernels

_OP, _KERNEL = KINDS.index("op"), KINDS.index("kernel")
_COLUMNS = (
    "collective",
    "group",
    "group_size",
    "group_sequence",
    "elements_in",
    "elements_out",
    "element_type",
    "ranks",
)
_NAMES = {
    "allgather": "all_gather",
    "allreduce": "all_reduce",
    "alltoall": "all_to_all",
    "reducescatter": "reduce_scatter",
    "sendrecv": "send_recv",
}
_NO_TRANSFER = frozenset(("init", "wait", "start", "end", "record"))  # words around a collective
_NCCL = re.compile(
    r"\b[nr]ccl(?:Dev)?Kernel\w*?(?:_(AllReduce|AllGather|ReduceScatter|Broadcast|SendRecv|Reduce|AllToAll))?(?:_|\\b)"
)
_SIZES = {
    **dict.fromkeys(("double", "long", "complexfloat", "longint", "int64", "uint64", "float64"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32", "uint32", "complexhalf"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16", "uint16"), 2),
    **dict.fromkeys(
        ("byte", "char", "bool", "qint8", "quint8", "int8", "uint8", "unsignedchar", "signedchar"), 1
    ),
    "complexdouble": 16,
}


@cache
def plain(name: str) -> str:
    """Return a collective's name in one spelling.

    `_allgather_base` and `all_gather_into_tensor` are `all_gather`.
    """
    text = name.removeprefix("nccl:").strip("_").lower()
    text = re.sub(r"_?(base|coalesced|into_tensor|tensor|single)\b", "", text)
    text = re.sub(r"_(base|coalesced|into_tensor|tensor|single)(?=_)", "", text).strip("_")
    return _NAMES.get(text.replace("_", ""), text)


@cache
def size_of(type_name: str) -> int | None:
    """Return the bytes of one element of a type of PyTorch, e.g. `BFloat16`.

    None if it is not known.
    """
    text = type_name.rpartition("::")[2].replace(" ", "").replace("_", "").lower()
    return 1 if text.startswith("float8") else _SIZES.get(text)


def write(trace: KinetoTrace, ranges: KinetoRanges, kernels: KinetoKernels, ops: Int32Array) -> None:
    """Write `collectives`: one for each communicating kernel, and each communicating operation without a kernel."""
    owner, row = trace.take("collective", "owner", "row")
    payloads = _Payloads(trace)
    kernel_places = np.full(len(kernels.row), -1, np.int64)
    kernel_places[kernels.row] = np.arange(len(kernels.row))
    of_kernel = {
        int(kernel_places[row[number]]): number for number in np.flatnonzero(owner == _KERNEL).tolist()
    }
    of_op = {int(ops[row[number]]): number for number in np.flatnonzero(owner == _OP).tolist()}
    surroundings = _Around(trace, ranges, of_op)
    inner = np.where(kernels.range < 0, -1, np.searchsorted(ranges.id, kernels.range))
    places = sorted({*np.flatnonzero(_communicates(trace, kernels)).tolist(), *of_kernel})
    around = [surroundings.find(place) for place in inner[places].tolist()] if places else []
    described: list[dict[str, Any]] = []
    names: list[str] = []
    for place, code, outer in zip(
        places, kernels.name[places].tolist() if places else [], around, strict=True
    ):
        described.append({**payloads.row(of_op.get(outer)), **payloads.row(of_kernel.get(place))} or _NOTHING)
        names.append(described[-1].get("name") or surroundings.name(outer) or _of_kernel(trace.texts[code]))
    started = set(around)
    alone = [
        place
        for place, number in of_op.items()
        if place not in started and payloads.row(number)["name"] not in _NO_TRANSFER
    ]
    described += [payloads.row(of_op[place]) for place in alone]
    names += [payloads.row(of_op[place])["name"] for place in alone]
    if not described:
        return
    of_gpu, of_host = np.array(places, np.int64), np.array(alone, np.int64)
    outer_places = np.array([*around, *alone], np.int64)
    process = np.concatenate([kernels.process[of_gpu], ranges.id[of_host] // RANGES_PER_PROCESS])
    start = np.concatenate([kernels.start[of_gpu], ranges.start[of_host]])
    end = np.concatenate([kernels.end[of_gpu], ranges.end[of_host]])
    order = np.lexsort((end, start, process))
    texts = order.tolist()
    trace.write(
        "collectives",
        {
            "id": numbered(process[order]),
            "process": process[order],
            "start": start[order],
            "end": end[order],
            "kernel": where_known(
                np.concatenate([kernels.id[of_gpu], np.full(len(alone), -1, np.int64)])[order]
            ),
            "range": where_known(np.append(ranges.id, -1)[outer_places][order]),  # -1: the last one
            "name": [names[number] for number in texts],
            **{column: [described[number].get(column) for number in texts] for column in _FROM_PAYLOADS},
        },
    )


_NOTHING: dict[str, Any] = {}
_FROM_PAYLOADS = (
    "group",
    "group_size",
    "sequence",
    "bytes_in",
    "bytes_out",
    "elements_in",
    "elements_out",
    "type",
    "peers",
)


class _Payloads:
    """Collective data of events."""

    def __init__(self, trace: KinetoTrace) -> None:
        self._texts = trace.texts
        self._columns = {
            name: column.tolist()
            for name, column in zip(_COLUMNS, trace.take("collective", *_COLUMNS), strict=True)
        }

    def row(self, number: int | None) -> dict[str, Any]:
        """Return what event `number` says, only what it does say; empty for None."""
        if number is None:
            return {}
        value = {name: column[number] for name, column in self._columns.items()}
        texts = {
            name: self._texts[value[name]] if value[name] >= 0 else None
            for name in ("collective", "group", "element_type", "ranks")
        }
        size = size_of(texts["element_type"] or "")
        counts = [
            None if value[name] < 0 else value[name]
            for name in ("elements_in", "elements_out", "group_sequence", "group_size")
        ]
        into, out, sequence, ranks = counts
        known_values = {
            "name": plain(texts["collective"] or ""),
            "group": texts["group"],
            "group_size": ranks,
            "sequence": sequence,
            "bytes_in": into * size if into is not None and size else None,
            "bytes_out": out * size if out is not None and size else None,
            "elements_in": into,
            "elements_out": out,
            "type": texts["element_type"],
            "peers": texts["ranks"],
        }
        return {name: one for name, one in known_values.items() if one is not None}


def _communicates(trace: KinetoTrace, kernels: KinetoKernels) -> npt.NDArray[np.bool_]:
    used, which = trace.texts.distinct(kernels.name)
    return np.array([*(bool(_NCCL.search(trace.texts[code])) for code in used.tolist()), False])[which]


class _Around:
    """The range that describes the communication of each kernel."""

    def __init__(self, trace: KinetoTrace, ranges: KinetoRanges, of_op: dict[int, int]) -> None:
        self._parent, self._name, self._of_op = ranges.parent, ranges.name, of_op
        used, _ = trace.texts.distinct(ranges.name)
        named = ((code, trace.texts[code]) for code in used.tolist())
        self._names = {code: plain(name) for code, name in named if name.startswith(("nccl:", "rccl:"))}

    def find(self, place: int) -> int:
        """Return the place of the operation around `place` with that data.

        Else of the innermost range with that name; -1: none.
        """
        called = -1
        while place >= 0 and place not in self._of_op:
            if called < 0 and int(self._name[place]) in self._names:
                called = place
            place = int(self._parent[place])
        return place if place >= 0 else called

    def name(self, place: int) -> str | None:
        """Return the collective that a range is named after."""
        return self._names.get(int(self._name[place])) if place >= 0 else None


@cache
def _of_kernel(name: str) -> str:
    match = _NCCL.search(name)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", match[1]).lower() if match and match[1] else "unknown"
