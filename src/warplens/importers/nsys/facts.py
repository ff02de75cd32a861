"""Facts of the run: time, host, command; and the diagnostics that nsys recorded."""

from __future__ import annotations

from typing import Any

from warplens.importers.nsys.conditions import Named
from warplens.importers.nsys.database import Database
from warplens.importers.nsys.identity import NsysIdentity
from warplens.importers.nsys.taken import NsysContext, NsysDiagnostics
from warplens.model.nsys_labels import SEVERITIES
from warplens.storage.writer import Facts

_LOOKED_INTO = frozenset(
    (
        *(
            "StringIds",
            "PROCESSES",
            "ThreadNames",
            "MPI_RANKS",
            "ANALYSIS_DETAILS",
            "EXPORT_META_DATA",
            "UnwindMethodType",
        ),
        *("TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_SESSION_START_TIME"),
    )
)
_MACHINE = 48  # bits below a global id's machine


def settings(database: Database) -> dict[str, str]:
    """Return what the file says about its export and its capture, without environments.

    The first of several values counts.
    """
    values: dict[str, str] = {}
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE"):
        for name, value in database.pairs(table) if database.has(table, "name", "value") else ():
            values.setdefault(name, value)
    return values


def command(about: dict[str, str]) -> list[str]:
    """Return the command that nsys launched, program first; empty if the file does not say."""
    program = about.get("PROCESS_0:COMMAND")
    if not program:
        return []
    words, number = [program], 0
    while (word := about.get(f"PROCESS_0:ARGUMENT_{number}")) is not None:
        words.append(word)
        number += 1
    return words


def machines(database: Database) -> dict[int, dict[str, str]]:
    """Return the known facts of each machine of the recording, by its number.

    That is the bits above 48 of its global ids.
    """
    table = "TARGET_INFO_SYSTEM_ENV"
    wanted = (
        "Hostname",
        "OsDescription",
        "KernelVersion",
        "SoftwareReleaseVersion",
        "CpuArchitecture",
        "CpuDescription",
        "CpuCores",
    )
    if not database.has(table, "name", "value"):
        return {}
    rows = database.read(table, ("globalVid",), texts=("name", "value"), where=[Named("name", wanted)])
    facts_of_machine: dict[int, dict[str, str]] = {}
    columns = rows.ints("globalVid").tolist(), rows.texts("name").to_pylist(), rows.texts("value").to_pylist()
    for machine, name, value in zip(*columns, strict=True):
        facts_of_machine.setdefault(machine >> _MACHINE << _MACHINE, {})[name] = value or ""
    return facts_of_machine


def host_of(about: dict[str, str], known: dict[int, dict[str, str]]) -> str:
    """Return the host's name; `nsys` where the file does not say."""
    names = [facts["Hostname"] for facts in known.values() if facts.get("Hostname")]
    return names[0] if names else about.get("DEVICE_DISPLAY_NAME") or "nsys"


def facts(identity: NsysIdentity, about: dict[str, str], host: str, sources: dict[str, Any]) -> Facts:
    """Return the facts of the part.

    Times stay as they are in the file: since nsys' session began.
    """
    rows = identity.database.read("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    began = int(rows.ints("utcEpochNs")[0]) if len(rows) else 0
    # A piece that was cut out of a longer recording begins with its first event, not with the session it comes from.
    cut = bool(about.get("EXPORT_PARAM_TIMES_TO_EXPORT") or about.get("DERIVED_WINDOW_NS"))
    return Facts(
        id=identity.part.id,
        host=host,
        boot_id=identity.part.id,  # its clock is nobody else's
        command=command(about),
        origin=identity.first if cut else min(identity.first, 0),
        end=identity.last,
        realtime_offset=began if 0 <= began < 1 << 62 else 0,
        clock="nsys",
        sources=sources,
    )


def targets(host: str, boot_id: str, known: dict[int, dict[str, str]]) -> list[dict[str, Any]]:
    """Return the rows of `targets`."""
    rows = []
    for machine in list(known.values()) or [{}]:
        cores = machine.get("CpuCores", "")
        rows.append(
            {
                "host": machine.get("Hostname") or host,
                "boot_id": boot_id,
                "os": machine.get("OsDescription", ""),
                "kernel": machine.get("SoftwareReleaseVersion", ""),
                "machine": machine.get("CpuArchitecture", ""),
                "cpu": machine.get("CpuDescription", ""),
                "cpus": int(cores) if cores.isdigit() and len(cores) < 7 else 0,
                "memory": 0,
            }
        )
    return rows


def diagnostics(context: NsysContext) -> None:
    """Take over nsys' own diagnostics; its warnings and errors count, the rest is information."""
    table = "DIAGNOSTIC_EVENT"
    rows = context.database.read(table, ("timestamp", "severity", "globalPid"), texts=("text",))
    context.tally.used.add(table)
    columns = (rows.ints(name).tolist() for name in ("timestamp", "severity", "globalPid"))
    for time, severity, pid, text in zip(*columns, rows.texts("text").to_pylist(), strict=True):
        process = context.identity.keys.get(pid & ~0xFFFFFF)
        row = {
            "severity": SEVERITIES.get(severity, "info"),
            "code": "nsys",
            "source": "nsys",
            "message": " ".join((text or "").split()),
        }
        context.tally.rows.append({**row, "process": process, "time": time if abs(time) < 1 << 61 else None})


def left_out(database: Database, tally: NsysDiagnostics) -> None:
    """Say which tables hold something that a report has no place for."""
    for table in sorted(database.tables):
        if table in tally.used or table in _LOOKED_INTO or table.startswith(("ENUM_", "META_DATA_")):
            continue
        if rows := database.count(table):
            tally.say(
                "info", "not-imported", f"the rows of the table {table} have no place in a report", rows
            )
