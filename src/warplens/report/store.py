"""Opens a report: finishes pending recordings, reads the manifests, lists the files of each table.

Each file with its clock.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warplens.errors import NotAReport, ReportError, WarplensError
from warplens.handover import pending as pendings
from warplens.handover.naming import check_readable, is_readable, located
from warplens.model.tables import TABLES
from warplens.storage import generations, schema, weight
from warplens.storage import manifest as manifests
from warplens.storage.generations import Held
from warplens.storage.manifest import Manifest

_TRIES = 50


@dataclass(frozen=True)
class Part:
    """One part, and the shift of its clock columns (ns) to the clock of the report's first part."""

    manifest: Manifest
    shift: int


@dataclass(frozen=True)
class TableFile:
    """One file of a table.

    `missing`: columns that the model got after the file was written; they read as null.

    `cut`: only rows that overlap this time count (ns, after the shift), and only what of them lies in it; None: all do.
    `calls`: instead, rows count whole whose call has an id in one of these ranges; those without a call, where they overlap `cut`.
    """

    file: Path
    rows: int
    shift: int
    part: int = 0
    missing: tuple[str, ...] = ()
    cut: tuple[int, int] | None = None
    calls: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Stored:
    """A report as it lies on disk.

    `waiting` has a sentence for each recording that is not in it yet.

    `snapshots`: one for each that is in it as it was some time ago; `held` keeps the files of those from being replaced.

    `cuts`: where one window of the capture is chosen, its time in each part that has it (ns, after the shift), and in `calls` the ids
    of the calls of CUDA that began then: the first, and the one behind the last, of each process.
    """

    path: Path
    parts: tuple[Part, ...]
    waiting: tuple[str, ...]
    snapshots: tuple[str, ...] = ()
    cuts: Mapping[int, tuple[int, int]] | None = None
    calls: Mapping[int, tuple[tuple[int, int], ...]] | None = None
    held: tuple[Held, ...] = ()
    _checked: dict[tuple[str, Path], tuple[str, ...]] = field(
        default_factory=dict, compare=False
    )  # table, file -> missing columns

    @property
    def own(self) -> bool:
        """Whether this user made all of it. Only then is anything written into it."""
        return all(part.manifest.own for part in self.parts)

    @property
    def origin(self) -> int:
        """The begin of the report: ns on the clock of the first part."""
        return min(part.manifest.origin + part.shift for part in self.parts)

    @property
    def end(self) -> int:
        """The end of the report: ns on the clock of the first part."""
        return max(part.manifest.end + part.shift for part in self.parts)

    @property
    def span(self) -> tuple[int, int]:
        """Begin and end of what is chosen: of the whole report, or of the window in all parts."""
        if not self.cuts:
            return self.origin, self.end
        return min(begin for begin, _ in self.cuts.values()), max(end for _, end in self.cuts.values())

    def rows(self, table: str) -> int:
        """Return how many rows a table has, a window or not."""
        return sum(part.manifest.rows(table) for part in self.parts)

    def pieces(self, table: str) -> list[TableFile]:
        """Return the files that hold rows of a table.

        Empty ones are there for other tools, and are never read here.

        Raises ReportError for a file that does not hold what the model and its manifest say.
        """
        files = []
        for part in self.parts:
            entry = part.manifest.tables.get(table)
            chosen = self.cuts is not None and TABLES[table].happens
            cut = self.cuts.get(part.manifest.part) if chosen and self.cuts is not None else None
            rows = part.manifest.rows(table)
            if entry is not None and rows and (cut is not None or not chosen):
                file = self.path / str(entry["file"])
                if (table, file) not in self._checked:
                    if table == "processes":
                        weight.check_processes(file, rows, manifests.claimed(self.path))
                    self._checked[table, file] = _check_file(table, file, rows)
                missing = self._checked[table, file]
                by_call = (
                    cut is not None
                    and TABLES[table].launched
                    and "api" not in missing
                    and self.calls is not None
                )
                calls = self.calls.get(part.manifest.part, ()) if by_call and self.calls is not None else None
                files.append(
                    TableFile(
                        file, rows, part.shift, part=part.manifest.part, missing=missing, cut=cut, calls=calls
                    )
                )
        return files


def open_store(
    path: str | os.PathLike[str], progress: Callable[[str, float], None] | None = None, *, trust: bool = False
) -> Stored:
    """Open the report at `path`, finishing recordings of this user that nobody runs any more.

    `trust`: those of others, too.

    A name may lack its `.warplens`. A recording that cannot be finished now (a full disk, say) leaves the other parts readable.
    Raises NotAReport, NewerReport or ReportError; messages name the file.
    """
    check_readable(Path(path))
    report = located(Path(path))
    if not report.is_dir():
        what = "is a file, not a report directory" if report.exists() else "does not exist"
        raise NotAReport(f"{report} {what}")
    if not is_readable(report):
        raise ReportError(f"{report} is not UTF-8, so its tables cannot be read. Move it to a path that is.")
    waiting: dict[str, str] = {}
    recording: dict[str, str] = {}
    failed: WarplensError | None = None
    for pending in pendings.listed(report):
        busy = pendings.runner(pending)
        if busy is None and not (trust or pending.own):
            why = "it is not finished, and another user or machine made it: warplens only reads it"
            failed = failed or ReportError(
                f"{report} holds the recording {pending.id}: {why}.\n"
                "If it is yours, from another machine say, finish it: warplens info --trust "
                f"{shlex.quote(str(report))}"
            )
            waiting[pending.id] = f"{why}; `warplens info --trust` finishes it if it is yours"
        elif busy is None:
            from warplens.convert.finish import finish  # 0.1 s that a finished report does not need

            try:
                finish(pending, report, progress=progress)
            except WarplensError as error:
                failed = failed or error
                waiting[pending.id] = str(error)
        else:
            waiting[pending.id] = f"{busy} is still recording into {pending.spool}"
            recording[pending.id] = f"{busy} is still recording"
    listed, held = _read(report)
    if not listed:
        if failed is not None:
            raise failed
        for name, text in waiting.items():
            raise ReportError(
                f"{report} is still being recorded ({name}: {text}).\nOpen it when the recording has "
                "ended, or after `warplens stop`."
            )
        raise NotAReport(f"{report} is not a report: it has no {manifests.DIRECTORY}/*.json")
    failed = None  # its traceback leads here, and would keep what is held
    if not waiting and all(manifest.own for manifest in listed):  # else somebody may be writing one
        generations.sweep(report, listed)
    shown = {manifest.id: manifest for manifest in listed}
    first = listed[0]
    parts = tuple(
        Part(
            manifest,
            0 if manifest.boot_id == first.boot_id else manifest.realtime_offset - first.realtime_offset,
        )
        for manifest in listed
    )
    for part in parts:
        if abs(part.shift) >= 1 << 62:
            raise ReportError(
                f"{report}: the clock of the part {part.manifest.id} differs too much from that of {first.id}"
            )
    return Stored(
        report,
        parts,
        tuple(f"{name}: {text}" for name, text in waiting.items() if name not in shown),
        snapshots=tuple(
            f"{name}: {(waiting | recording).get(name, 'the recording was abandoned')}, as of "
            f"{_clock_time(manifest.snapshot)}"
            for name, manifest in shown.items()
            if manifest.snapshot is not None
        ),
        held=held,
    )


def _read(report: Path) -> tuple[list[Manifest], tuple[Held, ...]]:
    """Return the manifests of all parts, by number, and what keeps the files of snapshots in place."""
    for _ in range(_TRIES):
        files = sorted((report / manifests.DIRECTORY).glob("*.json"))
        listed = sorted(
            (manifests.read(file) for file in files), key=lambda manifest: (manifest.part, manifest.id)
        )
        fleeting = [manifest for manifest in listed if manifest.snapshot is not None]
        try:
            held = tuple(generations.Held(report, manifest) for manifest in fleeting)
        except OSError:
            continue  # replaced at this moment
        if all(manifests.read(manifests.path_of(report, manifest.id)) == manifest for manifest in fleeting):
            _check(report, listed)
            return listed, held
    raise ReportError(
        f"{report} is being replaced repeatedly, or its files were removed: {fleeting[0].tables}"
    )


def _clock_time(ns: int) -> str:
    then, now = time.localtime(ns / 1e9), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", then)


def _check(report: Path, listed: list[Manifest]) -> None:
    numbers: dict[int, str] = {}
    inside = _inside(report)
    for manifest in listed:
        if manifest.part in numbers:
            raise ReportError(
                f"{report}: the parts {numbers[manifest.part]} and {manifest.id} have the same "
                f"number {manifest.part}"
            )
        numbers[manifest.part] = manifest.id
        for name in TABLES:
            entry = manifest.tables.get(name)
            if entry is None:
                continue
            file = os.path.join(report, str(entry["file"]))
            if not inside(file):
                raise ReportError(
                    f"{report}: the part {manifest.id} points outside the report: {entry['file']}"
                )
            if not Path(file).is_file():
                raise ReportError(f"{file} is missing; the part {manifest.id} of the report needs it")


def _inside(folder: Path) -> Callable[[str], bool]:
    """Return a function that says whether a file is in `folder`, links resolved.

    It resolves each folder once.
    """
    root = os.path.realpath(folder)
    known = {os.fspath(folder): root}

    def resolved(path: str) -> str:
        if path in known:
            return known[path]
        above, name = os.path.split(path)
        if not above or name in ("", os.curdir, os.pardir):
            return os.path.realpath(path)
        whole = os.path.join(resolved(above), name)
        return os.path.realpath(whole) if Path(whole).is_symlink() else whole

    def inside(file: str) -> bool:
        above = os.path.split(file)[0]
        known[above] = resolved(above)
        whole = resolved(file)
        return whole == root or whole.startswith(os.path.join(root, ""))

    return inside


def _check_file(table: str, path: Path, expected: int) -> tuple[str, ...]:
    """Return the columns that a Parquet file may lack and does.

    ReportError unless it has the others and `expected` rows.
    """
    try:
        with pq.ParquetFile(path) as file:
            columns, rows = file.schema_arrow, file.metadata.num_rows
            weight.check(TABLES[table], path, file.metadata)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if rows != expected:
        raise ReportError(
            f"{path} has {rows} rows, but its manifest says {expected}: it differs from the file that "
            "was written"
        )
    missing = []
    for wanted in schema.schema(table):
        number = columns.get_field_index(wanted.name)
        if number < 0:
            if wanted.nullable:
                missing.append(wanted.name)
                continue
            raise ReportError(f"{path} lacks the column {wanted.name!r} of the table {table}")
        kind, nullable = _plain(columns.field(number).type), columns.field(number).nullable
        if kind != _plain(wanted.type):
            raise ReportError(f"{path}: the column {wanted.name!r} holds {kind}, not {_plain(wanted.type)}")
        if nullable and not wanted.nullable:
            raise ReportError(f"{path}: the column {wanted.name!r} may have gaps, but each row needs a value")
    return tuple(missing)


def unreadable(path: Path, error: Exception) -> Exception:
    """Return the error for a table file that Arrow could not read: MemoryError where memory is short, else ReportError.

    Arrow has no type for a thread that could not start, which a limit of the address space prevents, too.
    """
    if isinstance(error, MemoryError) or "Failed to launch worker thread" in str(error):
        return MemoryError(f"cannot read {path}: {error}")
    return ReportError(f"cannot read {path}: {error}")


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
