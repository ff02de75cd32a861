"""Child process that converts a self-recorded spool.

It returns its messages as JSON, the parent prints them.

The program prints the messages.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplens.cli.light import give_back_early, import_lightly
from warplens.cli.printing.unfinished import leave_for_later
from warplens.cli.printing.words import counted, short_path
from warplens.errors import WarplensError
from warplens.handover import pending
from warplens.handover.priority import step_back
from warplens.recording.agent.libraries import named, package_of, silent
from warplens.recording.agent.library import load_agent
from warplens.recording.run_facts import RunFacts

_LINE = 300


def main(request: Mapping[str, Any]) -> None:
    """Finish the recording that `request` names, and print as JSON what was found."""
    import_lightly()
    give_back_early()
    step_back(5, first_to_go=True)  # the program comes first, also where memory gets short
    note = pending.read(Path(request["note"]))
    late: list[str] = []
    said: list[str] = []
    unheard: list[str] = []
    finished = False
    try:
        if note is not None:
            late = silent(request["before"], request["attached"], request["agent"])
            try:
                _add_facts(note, late, request)
            except (OSError, WarplensError) as error:  # a failure here must not lose the report
                said.append(f"{short_path(note.report)} lacks facts: {' '.join(str(error).split())}")
        if request["lock"] is not None:
            os.close(request["lock"])
        if note is not None:
            finished = _finish(note, said, unheard)
    except WarplensError as error:
        if note is not None and note.path.exists():  # else somebody overwrote the report
            said.append(" ".join(str(error).split()))
    except Exception as error:  # a line, not a traceback in the middle of the program's own output
        path = request["note"] if note is None else short_path(note.report)
        said.append(
            f"{path} is not finished: {type(error).__name__}: {error}. Whatever opens it tries again."
        )
    finally:
        json.dump({"silent": late, "finished": finished, "said": said, "unheard": unheard}, sys.stdout)


def _add_facts(note: pending.Pending, late: list[str], request: Mapping[str, Any]) -> None:
    facts = RunFacts.load(Path(note.spool), source="record")
    if facts is None:
        return
    if facts.traces("nvtx"):
        facts.set_cost("nvtx", load_agent(Path(request["agent"])).pair_cost(Path(note.spool)))
    for path in late:
        package = package_of(path, request["search"])
        before = f"{package} is imported" if package else "its first NVTX call"
        text = (
            f"{named(path, request['search']).name} was loaded before the recording and is not heard: it made its first NVTX call "
            f"too early, or none at all. To hear it, call warplens.prepare() before {before}, or start the program with "
            f"`warplens profile`. ({path})"
        )
        facts.note("warning", "late-library", text)
    facts.save()


def _finish(note: pending.Pending, said: list[str], unheard: list[str]) -> bool:
    try:
        import pyarrow.parquet as pq

        from warplens.convert.finish import finish
    except ModuleNotFoundError as error:
        said.append(" ".join(leave_for_later(note, error).split()).removeprefix("warplens: "))
        return False
    manifest = finish(note, note.report, keep_raw=note.keep_raw)
    with pq.ParquetFile(note.report / manifest.tables["diagnostics"]["file"]) as file:
        table = file.read(["severity", "code", "message"])
    rows = [row for row in table.to_pylist() if row["severity"] in ("error", "warning")]
    late = [row for row in rows if row["code"] == "late-library"]
    others = [row for row in rows if row["code"] != "late-library"]
    texts = [row["message"] for row in others[:1]]
    path = short_path(note.report)
    if late:
        names = ", ".join(row["message"].split(" ", 1)[0] for row in late[:4]) + (
            ", …" if len(late) > 4 else ""
        )
        unheard.append(
            f"{path}: {'libraries' if len(late) > 1 else 'library'} not heard: {names} (`warplens info {path}`)"
        )
    if texts:
        more = f" ({counted(len(others), 'diagnostic')}: `warplens info {path}`)"
        said.append(f"{path}: {'; '.join(' '.join(text.split())[:_LINE] for text in texts)}{more}")
    return True
