"""Writes facts about the recording: processes, threads, hosts, devices, metrics, the export itself."""

from __future__ import annotations

import shlex
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from warplens._version import __version__
from warplens.exporters.nsys.database import Writer
from warplens.exporters.nsys.layout import SCHEMA
from warplens.exporters.nsys.selects import number
from warplens.exporters.nsys.tables import rows
from warplens.model import nsys_labels as labels
from warplens.report.quoting import quoted

if TYPE_CHECKING:
    from warplens.report import Report

_FACTS = (
    ("CpuArchitecture", 3, "machine"),
    ("CpuDescription", 13, "cpu"),
    ("CpuCores", 1, "cpus"),
    ("OsDescription", 605, "os"),
)
_PRIORITY = 20
_GPU = {
    "name": "name",
    "busLocation": "bus",
    "computeMajor": "compute_major",
    "computeMinor": "compute_minor",
    "smCount": "multiprocessors",
    "totalMemory": "memory",
    "memoryBandwidth": "memory_bandwidth",
    "clockRate": "clock",
    "l2CacheSize": "l2_size",
}


def export(writer: Writer, interval: int) -> None:
    """Write the file's producer. `interval`: weight of a sample (ns)."""
    version = ".".join(map(str, SCHEMA))
    told = {
        "EXPORT_PRODUCT_NAME": "warplens",
        "EXPORT_PRODUCT_VERSION": __version__,
        "EXPORT_SCHEMA_VERSION": version,
        **{
            f"EXPORT_SCHEMA_VERSION_{name}": str(part)
            for name, part in zip(("MAJOR", "MINOR", "MICRO"), SCHEMA, strict=True)
        },
        "EXPORT_PARAM_EXPORT_TYPE": "SQLite",
        "EXPORT_PARAM_LAZY": "true",
        **({labels.SAMPLE_INTERVAL: str(interval)} if interval else {}),
    }
    writer.rows_of("META_DATA_EXPORT", [{"name": name, "value": value} for name, value in told.items()])


def capture(writer: Writer, report: Report) -> None:
    """Write the command, the session's begin, and the hosts."""
    first = report.manifests[0]
    words = first.command
    told = {"PROCESS_0:COMMAND": words[0]} if words else {}
    told |= {f"PROCESS_0:ARGUMENT_{place}": word for place, word in enumerate(words[1:])}
    writer.rows_of("META_DATA_CAPTURE", [{"name": name, "value": value} for name, value in told.items()])
    began = report.origin + first.realtime_offset
    when = datetime.fromtimestamp(began / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    writer.rows_of(
        "TARGET_INFO_SESSION_START_TIME",
        [{"utcEpochNs": began, "utcTime": when, "localTime": when, "systemClockNs": report.origin}],
    )
    machines = {
        row["host"]: row["machine"]
        for row in _all(report, "SELECT DISTINCT host, (hw << 56) | (vm << 48) AS machine FROM q")
    }
    events = []
    for row in report.table("targets").to_pylist():
        about = {"globalVid": machines.get(row["host"], 1 << 48), "devStateName": row["host"]}
        facts = [("Hostname", 619, row["host"]), ("SoftwareReleaseVersion", 618, row["kernel"])]
        facts += [(name, key, row[column]) for name, key, column in _FACTS]
        events += [
            {**about, "name": name, "nameEnum": key, "value": str(value)}
            for name, key, value in facts
            if value
        ]
    writer.rows_of("TARGET_INFO_SYSTEM_ENV", events)
    span = {"duration": report.end - report.origin, "startTime": report.origin, "stopTime": report.end}
    writer.rows_of("ANALYSIS_DETAILS", [{"globalVid": next(iter(machines.values()), 1 << 48), **span}])


def processes(writer: Writer, report: Report) -> None:
    """Write processes, threads and ranks.

    A diagnostic event names the launched process, as in nsys.
    """
    seen: dict[int, dict[str, Any]] = {}
    for row in _all(
        report, 'SELECT gpid, id, executable, command, "primary", rank, began FROM q ORDER BY process'
    ):
        seen.setdefault(row["gpid"], row)
    writer.rows_of(
        "PROCESSES",
        [{"globalPid": key, "pid": row["id"], "name": row["executable"]} for key, row in seen.items()],
    )
    writer.rows_of(
        "MPI_RANKS",
        [
            {"globalTid": key | row["id"], "rank": row["rank"]}
            for key, row in seen.items()
            if row["rank"] is not None
        ],
    )
    launched, command = "Process was launched by the profiler", shlex.join(report.manifests[0].command)
    writer.rows_of(
        "DIAGNOSTIC_EVENT",
        [
            {
                "timestamp": row["began"] - report.origin,
                "timestampType": 1,
                "source": 2,
                "severity": 1,
                "text": launched,
                "globalPid": key,
            }
            for key, row in seen.items()
            if row["primary"] and row["command"] == command
        ],
    )
    threads = {
        row["gtid"]: row["name"]
        for row in _all(report, "SELECT gtid, name FROM g WHERE name IS NOT NULL ORDER BY thread DESC")
    }
    writer.rows_of(
        "ThreadNames",
        [
            {"nameId": writer.string(name), "priority": _PRIORITY, "globalTid": key}
            for key, name in sorted(threads.items())
        ],
    )


def devices(writer: Writer, report: Report) -> None:
    """Write GPUs, contexts and streams, and what they were called."""
    known = _all(
        report, "SELECT DISTINCT uuid, min(gpu) AS gpu FROM gpu_metrics WHERE uuid IS NOT NULL GROUP BY uuid"
    )
    cards: dict[str, int] = {row["uuid"]: row["gpu"] for row in known} if report.tables["gpu_metrics"] else {}
    taken = set(cards.values())
    gpus: dict[int, dict[str, Any]] = {}
    mine = []
    for row in _all(
        report, "SELECT d.*, id, hw, vm FROM devices d JOIN q USING (process) ORDER BY d.process, device"
    ):
        key = row["uuid"] or f"{row['vm']} {row['bus'] or row['device']} {row['name']}"
        if key not in cards:
            cards[key] = next(place for place in range(len(taken) + 1) if place not in taken)
            taken.add(cards[key])
        card = cards[key]
        uuid = row["uuid"].removeprefix("GPU-") if row["uuid"] else None
        about = {
            "vmId": (row["hw"] << 56) | (row["vm"] << 48),
            "id": card,
            "uuid": uuid,
            "cuDevice": row["device"],
        }
        gpus.setdefault(card, {**about, **{name: row[column] for name, column in _GPU.items()}})
        mine.append(
            {
                "gpuId": card,
                "cudaId": row["device"],
                "pid": row["id"],
                "uuid": uuid,
                "numMultiprocessors": row["multiprocessors"],
            }
        )
    writer.rows_of("TARGET_INFO_GPU", list(gpus.values()))
    writer.rows_of("TARGET_INFO_CUDA_DEVICE", mine)
    place = 'hw AS "hwId", vm AS "vmId", id AS "processId"'
    context = f'{place}, device AS "deviceId", context AS "contextId"'
    _copied(
        writer,
        report,
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        text=f'SELECT coalesce(null_stream, 0) AS "nullStreamId", {context} FROM contexts t JOIN q USING (process)',
    )
    _copied(
        writer,
        report,
        "TARGET_INFO_NVTX_CUDA_CONTEXT",
        text=f"SELECT t.name AS name, {context} FROM contexts t JOIN q USING (process) WHERE t.name IS NOT NULL",
    )
    kind = number("kind", labels.STREAM_KINDS)
    _copied(
        writer,
        report,
        "TARGET_INFO_CUDA_STREAM",
        text=f'SELECT stream AS "streamId", {place}, context AS "contextId", coalesce(priority, 0) AS priority, {kind} AS flag '
        "FROM streams t JOIN q USING (process) WHERE priority IS NOT NULL OR kind IS NOT NULL",
    )
    _copied(
        writer,
        report,
        "TARGET_INFO_NVTX_CUDA_STREAM",
        text=f'SELECT t.name AS name, {place}, coalesce(c.device, 0) AS "deviceId", t.context AS "contextId", stream AS "streamId" '
        "FROM streams t JOIN q USING (process) LEFT JOIN contexts c ON c.process = t.process AND c.context = t.context "
        "WHERE t.name IS NOT NULL",
    )
    named = "FROM nvtx_objects t JOIN q USING (process) WHERE kind = 'cuda_device' AND t.name IS NOT NULL"
    device = f'SELECT DISTINCT t.name AS name, hw AS "hwId", vm AS "vmId", identifier AS "deviceId" {named}'
    _copied(writer, report, "TARGET_INFO_NVTX_CUDA_DEVICE", text=device)


def metrics(writer: Writer, report: Report) -> None:
    """Write the values of the GPUs' counters; their kind encodes host and GPU."""
    if not report.tables["gpu_metrics"]:
        return
    units = {unit: word for word, unit in reversed(labels.METRIC_UNITS.items())}
    hosts = {row["host"]: place for place, row in enumerate(_all(report, "SELECT host FROM h ORDER BY n"))}
    named = report.sql("SELECT DISTINCT host, gpu, metric, unit FROM gpu_metrics ORDER BY ALL").to_pylist()
    numbers = {
        pair: place
        for place, pair in enumerate(sorted({(row["metric"], row["unit"] or "") for row in named}), 1)
    }
    kinds = {
        (row["host"], row["gpu"]): (hosts.setdefault(row["host"], len(hosts)) << 8) | (row["gpu"] & 0xFF)
        for row in named
    }
    writer.rows_of(
        "TARGET_INFO_GPU_METRICS",
        [
            {
                "typeId": kinds[row["host"], row["gpu"]],
                "sourceId": 0,
                "typeName": "GPU Metrics",
                "metricId": numbers[row["metric"], row["unit"] or ""],
                "metricName": f"{row['metric']} [{units[row['unit']]}]"
                if row["unit"] in units
                else row["metric"],
            }
            for row in named
        ],
    )
    told = [
        {
            "host": row["host"],
            "gpu": row["gpu"],
            "metric": row["metric"],
            "unit": row["unit"],
            "kind": kinds[row["host"], row["gpu"]],
            "id": numbers[row["metric"], row["unit"] or ""],
        }
        for row in named
    ]
    values = ", ".join(
        f"({quoted(row['host'])}, {row['gpu']}, {quoted(row['metric'])}, {quoted(row['unit'])}, {row['kind']}, {row['id']})"
        for row in told
    )
    text = f"""SELECT t.start - $origin AS timestamp, k.kind AS "typeId", k.id AS "metricId", t.value AS value FROM gpu_metrics t
    JOIN (VALUES {values}) k(host, gpu, metric, unit, kind, id) ON k.host = t.host AND k.gpu = t.gpu AND k.metric = t.metric
    AND k.unit IS NOT DISTINCT FROM t.unit"""
    for batch in rows(report, text):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        writer.write("GPU_METRICS", {**columns, "rawTimestamp": columns["timestamp"]})


def _copied(writer: Writer, report: Report, table: str, text: str) -> None:
    for batch in rows(report, text):
        writer.write(table, dict(zip(batch.schema.names, batch.columns, strict=True)))


def _all(report: Report, text: str) -> list[dict[str, Any]]:
    all_rows: list[dict[str, Any]] = []
    for batch in rows(report, text):
        all_rows += pa.Table.from_batches([batch]).to_pylist()
    return all_rows
