"""Entries of a Flight Recorder's dump as rows of `collectives` and of `nvtx_ranges`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.importers.kineto.collectives import plain, size_of
from warplens.importers.rows import numbered
from warplens.storage.writer import THREADS_PER_PROCESS

if TYPE_CHECKING:
    from warplens.storage.writer import PartWriter

_RANK = re.compile(r"(\d+)\D*$")


def rank_in(name: str) -> int:
    """Return the number at the end of a file's name, -1 without one."""
    match = _RANK.search(name)
    return int(match[1]) if match else -1


@dataclass(frozen=True)
class RecordedCollectives:
    """The entries of one rank, in order of time.

    `rows`: columns of `collectives`, and thread (number of the group) and unfinished; times in ns since `first`, which is ns since 1970.
    `groups`: their names. `end`: ns, the last time in the file.
    """

    rows: list[dict[str, Any]]
    groups: list[str]
    first: int
    end: int

    @classmethod
    def of(cls, dump: dict[str, Any]) -> RecordedCollectives:
        """Read a dump."""
        entries = sorted(dump["entries"], key=lambda entry: int(entry["time_created_ns"]))
        if not entries:
            return cls([], [], 0, 0)
        first = int(entries[0]["time_created_ns"])
        end = max(int(entry.get(name) or 0) for entry in entries for name in _TIMES) - first + 1
        notes_completion = any(entry["state"] == "completed" for entry in entries)
        groups = sorted({_group(entry) for entry in entries})
        members = {name: _members(config.get("ranks", "")) for name, config in dump["pg_config"].items()}
        until: dict[str, int] = {}  # by group: the begin of the entry behind
        rows = []
        for entry in reversed(entries):
            group, start = _group(entry), int(entry["time_created_ns"]) - first
            behind = until.get(group, end)
            until[group] = start
            done = _completed(entry, first)
            row = _described(entry, members.get(str(entry["process_group"][0]), []))
            row |= {"group": group, "thread": groups.index(group), "start": start}
            row["end"] = max(start, done if done is not None else end if notes_completion else behind)
            row["unfinished"] = notes_completion and done is None
            rows.append(row)
        return cls(rows[::-1], groups, first, end)

    def write(self, part: PartWriter) -> None:
        """Write both tables."""
        key = np.full(len(self.rows), part.key(0), np.int64)
        ids = numbered(key)
        start, end = (np.array([row[edge] for row in self.rows], np.int64) for edge in ("start", "end"))
        never = np.zeros(len(key), bool)
        texts = [f"{row['name']} {row['sequence']}" for row in self.rows]
        part.write(
            "nvtx_ranges",
            {
                "id": ids,
                "process": key,
                "thread": key * THREADS_PER_PROCESS
                + np.array([row["thread"] for row in self.rows], np.int64),
                "start": start,
                "end": end,
                "message": pa.array(texts).dictionary_encode(),
                "payload_int": [row["sequence"] for row in self.rows],
                "style": pa.array(["StartEnd"] * len(key)).dictionary_encode(),
                "depth": native.lanes(start, end),
                "unfinished": np.array([row["unfinished"] for row in self.rows], bool),
                "inherited": never,
                "clipped": never,
            },
        )
        part.write(
            "collectives",
            [
                {**row, "id": own, "range": own, "process": part.key(0)}
                for row, own in zip(self.rows, ids.tolist(), strict=True)
            ],
        )


_TIMES = ("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns")


def _group(entry: dict[str, Any]) -> str:
    """Return the number of a group, and the words that describe it."""
    name, words = (str(text) for text in entry["process_group"])
    return name if words in ("", name, "undefined") else f"{name} ({words})"


def _members(text: str) -> list[int]:
    """Return the ranks of `[0, 1, 3]`."""
    return [int(number) for number in re.findall(r"\d+", str(text))]


def _completed(entry: dict[str, Any], first: int) -> int | None:
    """Return when an entry was completed, ns; None if it was not."""
    if entry["state"] != "completed":
        return None
    if (took := entry.get("duration_ms")) is not None:
        return int(entry["time_created_ns"]) - first + round(float(took) * 1e6)
    return int(entry.get("time_discovered_completed_ns") or entry["time_created_ns"]) - first


def _described(entry: dict[str, Any], members: list[int]) -> dict[str, Any]:
    kinds = [str(kind) for kind in entry.get("input_dtypes") or entry.get("output_dtypes") or []]
    given, got = (sum(prod(one) for one in entry.get(f"{way}_sizes") or []) for way in ("input", "output"))
    width = size_of(kinds[0]) if len(set(kinds)) == 1 else None
    sequence = entry["p2p_seq_id"] if entry.get("is_p2p") else entry["collective_seq_id"]
    return {
        "name": plain(str(entry["profiling_name"]).rpartition(":")[2]),
        "group_size": len(members) or None,
        "sequence": int(sequence),
        "elements_in": int(given),
        "elements_out": int(got),
        "bytes_in": None if width is None else int(given) * width,
        "bytes_out": None if width is None else int(got) * width,
        "type": kinds[0] if kinds else None,
        "peers": str(members) if members else None,
    }
