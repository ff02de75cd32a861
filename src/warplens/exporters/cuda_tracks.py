"""The rows that CUDA needs: API calls under their threads.

Under the process its GPUs, their contexts, streams, and copies by direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warplens.exporters.rows import NONE, ExportRow, ExportRows
from warplens.exporters.tracks import Tracks
from warplens.timeline.kinds import kind_of
from warplens.timeline.names import context_label, direction, gpu_label, stream_label

if TYPE_CHECKING:
    from warplens.report import Report

_ON_GPU = ("kernels", "graphs", "memcpys", "memsets", "cuda_events")
_BELOW = ("memsets", "graphs")  # kernels are on the row of the stream itself; graphs too if there are none
_OF_THREAD, _OF_PROCESS = ("cuda_api", "overhead"), ("syncs", "um_events", "collectives")


class CudaTracks(ExportRows):
    """The rows that CUDA needs."""

    @classmethod
    def of(cls, report: Report, tracks: Tracks) -> CudaTracks:
        """Return the rows of a report."""
        rows, counts = cls(report, tracks), report.tables
        for table in _OF_THREAD:
            if counts[table]:
                for record in report.sql(
                    f"SELECT DISTINCT process, thread FROM {table} ORDER BY ALL NULLS FIRST"
                ).to_pylist():
                    rows._of_thread(table, kind_of(table).name, record)
        for table in _OF_PROCESS:
            if counts[table]:
                name = kind_of(table).name
                for record in report.sql(f"SELECT DISTINCT process FROM {table} ORDER BY ALL").to_pylist():
                    row = ExportRow(name, name, rows._process(record["process"]), about=record)
                    rows._put((table, record["process"], NONE, NONE), row)
        if any(counts[table] for table in _ON_GPU):
            rows._gpus(report)
        rows._sort()
        return rows

    def _gpus(self, report: Report) -> None:
        selects = [
            f"SELECT DISTINCT process, device, context, stream, '{table}' AS what, {kind} AS kind FROM {table}"
            for table, kind in (
                ("memcpys", "kind"),
                *((table, "NULL") for table in _ON_GPU if table != "memcpys"),
            )
        ]
        used = report.sql(
            f"SELECT * FROM ({' UNION ALL '.join(selects)}) ORDER BY process, device, context, stream, what, kind"
        ).to_pylist()
        on: dict[tuple[int, int], int] = {
            (record["process"], record["context"]): record["device"]
            for record in [*report.table("contexts").to_pylist(), *used]
            if record["device"] is not None
        }
        devices = {(row["process"], row["device"]): row for row in report.table("devices").to_pylist()}
        contexts = {(row["process"], row["context"]): row for row in report.table("contexts").to_pylist()}
        streams = {
            (row["process"], row["context"], row["stream"]): row
            for row in report.table("streams").to_pylist()
        }
        busy = {
            (record["process"], record["context"], record["stream"])
            for record in used
            if record["what"] == "kernels"
        }
        for record in sorted(
            used,
            key=lambda record: (
                record["process"],
                on.get((record["process"], record["context"]), NONE),
                _order(record),
            ),
        ):
            process, context, stream = record["process"], record["context"], record["stream"]
            device = on.get((process, context), NONE)
            name = gpu_label(
                None if device == NONE else device, (devices.get((process, device)) or {}).get("name")
            )
            place = self._process(process)
            gpu = self._put(("device", process, device, NONE), ExportRow(name, name, place, gpu=True))
            named = context_label(context, contexts.get((process, context)))
            within = self._put(
                ("context", process, context, NONE),
                ExportRow(named, "", place, thread=None, above=gpu, place=context, gpu=True),
            )
            label = stream_label(stream, streams.get((process, context, stream)))
            several = sum(key[0] == process for key in on) > 1
            full = f"Context {context} {label}" if several else label
            about = {"process": process, "device": device, "context": context, "stream": stream}
            row = self._put(
                ("stream", process, context, stream),
                ExportRow(label, full, place, thread=None, above=within, place=stream, gpu=True, about=about),
            )
            what = record["what"]
            text = kind_of(what).name if what in _BELOW else None
            if what == "memcpys":
                what, text = f"memcpys {record['kind']}", f"{direction(record['kind'])} memcpy"
            if text is None or (what == "graphs" and (process, context, stream) not in busy):
                self._found[what, process, context, stream] = row
            else:
                self._put(
                    (what, process, context, stream),
                    ExportRow(
                        text,
                        f"{full} {text}",
                        place,
                        thread=None,
                        above=row,
                        place=len(self.rows),
                        gpu=True,
                        about=about,
                    ),
                )


def _order(record: dict[str, Any]) -> tuple[int, int, str, int]:
    """Put copies to the GPU before those back, as nsys does."""
    first = record["what"] == "memcpys" and record["kind"] == "Host-to-Device"
    return record["context"], record["stream"], record["what"], not first
