"""The GPU is idle because the host launches late; names the work that delayed the host.

## What it looks for
Gaps of more than 20 us on each GPU that ended with a late launch (cause `host-bound` of
`gpu_utilization`). Time in calls that wait for the GPU does not count, nor gaps between kernels
that the host launches at full speed. Each gap is divided among the activities of the launching
thread during it: a pause of the garbage collector, a wait for the GIL, a CUDA call, an import, a C
library call, an NVTX range, operation or Python function that began or ended in the gap, or
functions that samples saw. If nothing else is known, it is the range around the gap.

Each activity that takes more than 2 % of the judged time is a finding. Smaller ones are combined
into one finding that names the largest. Ranges and operations whose names differ only in numbers
(`block.0`, `block.1`) count as one, `block.#`.

## Why it costs time
The GPU works only as fast as the host launches. It could have worked during each of these gaps.

## What to do
Move the work in the gaps off the launching thread, do it ahead of time, or do it less often. If the
framework's own operations fill many gaps, torch.compile or CUDA graphs reduce the number of
launches.

## When it does not apply
If the program had no work for the GPU, e.g. a server between requests. If the host itself waited
for another process. If a profiler made the host slow: see `profiler_overhead`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.comparison.comparable import without_numbers
from warplens.analysis.cpu.culprits import (
    API,
    CPU,
    FUNCTION,
    GC,
    GIL,
    IMPORT,
    NATIVE,
    OP,
    OS,
    RANGE,
    UNKNOWN,
    pieces,
    sampled,
)
from warplens.analysis.dictionaries import codes
from warplens.analysis.distinct import distinct
from warplens.analysis.gpu.idle import idle
from warplens.analysis.intervals import Cover
from warplens.arrays import Int32Array, Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.report.quoting import quoted
from warplens.rules.base import Evidence, Finding, Without, most
from warplens.rules.captures import first_graphs
from warplens.rules.gpus import gpus
from warplens.rules.hosts import edges, numbers, rows, threads
from warplens.rules.hosts import idle as gpu_idle
from warplens.rules.launches import fewer_launches

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
IDLE = ("host-bound", "head")
_SLOW_LAUNCH = 50_000_000  # ns: a launch takes some us; the first one of a kernel may load or compile it
_REST = "place"  # what takes little each, put together
_FEW = 0.05  # of the launches of a thread: a line with so few of them launches nothing; samples are off by a tick
# The name of a row of python_calls as `pieces` has it: `step (train.py)`.
_CALLED = "name || coalesce(' (' || regexp_extract(file, '[^/]*$') || ')', '')"
_WORK = (
    API,
    RANGE,
    OP,
    FUNCTION,
    NATIVE,
)  # what the program did, where the other kinds say what kept it from that
_ADVICE = {
    GC: "gc.freeze() after start-up, or collect when it does no harm: see gc_pauses.",
    GIL: "Another thread held Python's lock: see gil_contention.",
    API: "Call it less often or ahead of time: memory from a pool, modules loaded before the loop, "
    "launches together in a CUDA graph.",
    IMPORT: "Import at the top of the program.",
    OS: "Take this call off the launching thread, or make it ahead of time.",
    CPU: "Too many threads for the CPUs: fewer workers, OMP_NUM_THREADS, or pin the launching "
    "thread to separate CPUs.",
    RANGE: "Do this part ahead of time, in another thread, or on the GPU.",
    OP: "Reduce the framework's own overhead: torch.compile, CUDA graphs, larger batches.",
    FUNCTION: "Do this ahead of time, in another thread, or on the GPU.",
    NATIVE: "Do this ahead of time, in another thread, or on the GPU.",
    _REST: "The host launches slowly everywhere: fewer and larger kernels (torch.compile, CUDA "
    "graphs, larger batches) keep the GPU busy.",
    UNKNOWN: "Record more to see it: --sample=process-tree --python-sampling=true, -t "
    "nvtx,cuda,osrt,gc,gil, and NVTX ranges.",
}


def check(
    report: Report,
    selection: Selection,
    *,
    gap: float = 20,
    least: float = 2,
    share: float = 20,
    most_of: int = 4,
) -> list[Finding]:
    """Return a finding for each thing that kept GPUs waiting.

    Args:
        report: the report.
        selection: the part to use.
        gap: minimum length of a gap, us.
        least: percent of the judged time that an activity must take; smaller ones are combined.
        share: percent of all such time that a function, range or call must take to be a separate
            finding.
        most_of: maximum number of separate findings.
    """
    gpus(report, selection)  # says what is missing
    if not report.tables["cuda_api"]:
        raise MissingData(f"does not contain CUDA API data{selection.place(report)}.")
    gaps = idle(report, selection, longer_than=round(gap * 1000))
    gaps = gaps.filter(pc.is_valid(gaps.column("thread")))
    cause = pc.cast(gaps.column("cause"), pa.string())
    gaps = pa.concat_tables(
        [
            gaps.filter(pc.equal(cause, "host-bound")),
            _slow_launches(report, gaps.filter(pc.equal(cause, "launch-bound"))),
        ]
    )
    captured = {first.process: Cover([first.begin], [first.end]) for first in first_graphs(report, selection)}
    stretches = _stretches(gaps, captured)
    if not stretches.num_rows:
        return []
    parts = pieces(report, stretches)
    begin, end = edges(report, selection)
    (kind_of, kinds), (name_of, names) = (
        codes(parts.column(name).combine_chunks()) for name in ("kind", "name")
    )
    # (kind, name) in one number; `code` numbers the combinations that occur from 0 on. Sorted by
    # it, the pieces of combination n are order[bounds[n] : bounds[n + 1]].
    used, code = distinct(kind_of.astype(np.int64) * len(names) + name_of, len(kinds) * len(names))
    start, finish = numbers(parts, "start"), numbers(parts, "end")
    where = numbers(parts, "stretch")
    code, texts = _alike(
        code,
        [
            (kinds[number // len(names)].as_py(), names[number % len(names)].as_py())
            for number in used.tolist()
        ],
    )
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(texts) + 1))
    called = threads(report)
    every = gpu_idle(report, selection, whole=True)
    idle_in_all = 0 if every is None else every.total
    least_ns = least * (end - begin) / 100
    parts_of = [order[bounds[number] : bounds[number + 1]] for number in range(len(texts))]
    totals = [Cover(start[mine], finish[mine]).total for mine in parts_of]
    findings: list[Finding] = []
    little: dict[str, list[tuple[Int64Array, str, str]]] = defaultdict(list)
    enough = share * Cover(start, finish).total / 100
    for number in np.argsort(-np.array(totals, np.int64), kind="stable").tolist():
        (kind, name), mine = texts[number], parts_of[number]
        if (
            totals[number] < least_ns
            or (len(findings) == most_of and kind != UNKNOWN)
            or (kind in _WORK and totals[number] < enough)
        ):
            little[_REST if kind in _WORK else kind].append((mine, kind, name))
            continue
        finding = _finding(
            stretches,
            where[mine],
            start=start[mine],
            end=finish[mine],
            kind=kind,
            name=name,
            called=called,
            span=end - begin,
        )
        findings.append(_bounded(report, selection, finding, kind=kind, name=name, idle_in_all=idle_in_all))
    for group, several in little.items():
        mine = np.concatenate([places for places, *_ in several])
        if group != UNKNOWN and Cover(start[mine], finish[mine]).total >= least_ns:
            kind, name = several[0][1:] if len(several) == 1 else (_common(several, group), "")
            parts_in = [several[0][2]] if len(several) == 1 else [name for _, _, name in several]
            finding = _finding(
                stretches,
                where[mine],
                start=start[mine],
                end=finish[mine],
                kind=kind,
                name=name,
                called=called,
                span=end - begin,
                several=parts_in if len(several) > 1 else (),
                owner=np.repeat(np.arange(len(several)), [len(places) for places, *_ in several]),
            )
            if len(several) == 1:
                findings.append(
                    _bounded(report, selection, finding, kind=kind, name=name, idle_in_all=idle_in_all)
                )
            else:
                most_in = ", ".join(
                    f"{name} ({duration(Cover(start[some], finish[some]).total)})"
                    for some, _, name in several[:3]
                )
                finding = replace(
                    finding,
                    title=f"{finding.title}, most in {most_in}",
                    cause=f"{finding.cause} Most of all: {most_in}.",
                )
                findings.append(replace(finding, bound=max(finding.bound or 0, idle_in_all)))
    return sorted(findings, key=lambda finding: -(finding.estimate or 0))


def _alike(code: Int32Array, texts: Sequence[tuple[str, str]]) -> tuple[Int32Array, list[tuple[str, str]]]:
    """Make one thing of ranges, and of operations, whose names differ in numbers alone; return new codes and their texts."""
    families = Counter((kind, without_numbers(name)) for kind, name in texts if kind in (RANGE, OP))
    labels = [
        family if families[family := (kind, without_numbers(name))] > 1 else (kind, name)
        for kind, name in texts
    ]
    known = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([known[label] for label in labels], np.int32)[code], list(known)


def _common(several: Sequence[tuple[Int64Array, str, str]], group: str) -> str:
    """Return the kind that all of several things have, else the word for things of any kind."""
    kinds = {kind for _, kind, _ in several}
    return kinds.pop() if len(kinds) == 1 else group


def _slow_launches(report: Report, gaps: pa.Table) -> pa.Table:
    """Return the gaps in which a call that launches lasted long, up to its end."""
    start, end = numbers(gaps, "start"), numbers(gaps, "end")
    gaps = gaps.filter(pa.array(end - start > _SLOW_LAUNCH))
    ids = ", ".join(map(str, gaps.column("api").to_pylist())) or "NULL"
    ends = report.sql(f'SELECT id, "end" FROM cuda_api WHERE id IN ({ids})').to_pydict()
    ended = dict(zip(ends["id"], ends["end"], strict=True))
    start = numbers(gaps, "start")
    until = np.array([ended.get(call, 0) for call in gaps.column("api").to_pylist()], np.int64)
    until = np.minimum(numbers(gaps, "end"), until)
    place = gaps.schema.get_field_index("end")
    return gaps.set_column(place, "end", pa.array(until)).filter(pa.array(until - start > _SLOW_LAUNCH))


def _stretches(gaps: pa.Table, captured: Mapping[int, Cover]) -> pa.Table:
    """Return when each thread was late for any of its GPUs, but not while its process captured its first graphs.

    Time that two of them lost at once is lost once.
    """
    process, thread, start, end = (numbers(gaps, name) for name in ("process", "thread", "start", "end"))
    parts = []
    for own in np.unique(thread).tolist():
        mine = thread == own
        late = Cover(start[mine], end[mine])
        late = late.without(captured.get(int(process[np.argmax(mine)]), Cover([], [])))
        parts.append(
            pa.table(
                {
                    "thread": pa.array(np.full(len(late.start), own)),
                    "start": pa.array(late.start),
                    "end": pa.array(late.end),
                }
            )
        )
    return pa.concat_tables(parts) if parts else gaps.select(["thread", "start", "end"])


def _finding(
    stretches: pa.Table,
    where: Int64Array,
    start: Int64Array,
    end: Int64Array,
    kind: str,
    name: str,
    called: dict[int, str],
    span: int,
    several: Sequence[str] = (),
    owner: Int64Array | None = None,
) -> Finding:
    """Return the finding about these stretches; of `several` things each stretch is of that with its number in `owner`."""
    cover = Cover(start, end)
    many = bool(several)
    subject = f"{kind}s, most in {several[0]}" if many else f"{kind} {name}" if name else kind
    gaps = np.unique(where)
    evidence = []
    best = np.argsort(start - end, kind="stable")[:50]
    whole = stretches.take(pa.array(where[best])).to_pylist()
    titles = [several[number] for number in owner[best].tolist()] if owner is not None and many else None
    for place, (row, first, last) in enumerate(
        zip(whole, start[best].tolist(), end[best].tolist(), strict=True)
    ):
        inside = titles[place] if titles is not None else subject or kind
        text = (
            f"GPU idle for {duration(row['end'] - row['start'])}, {duration(last - first)} of it in {inside}"
        )
        evidence.append(
            Evidence(
                table="nvtx_ranges" if kind == RANGE else "threads",
                id=None,
                start=first,
                end=last,
                text=text,
                thread=row["thread"],
            )
        )
    # The longest gaps first. `few` is how many of them hold half of the time: for [8, 3, 2, 1] of
    # 14 ms the first one does.
    lengths = np.sort(np.bincount(np.searchsorted(gaps, where), end - start))[::-1]
    few = int(np.searchsorted(np.cumsum(lengths), 0.5 * cover.total)) + 1
    rare = few <= 5 and few * 10 <= len(gaps) and not many and kind != UNKNOWN
    once = (
        f" Half of it was in {few} of them: that looks like something which happens once, such as loading."
        if rare
        else ""
    )
    who = called.get(evidence[0].thread or 0, "a thread")
    if many:
        title = f"GPUs waited {duration(cover.total)} for the host in {len(several)} {kind}s"
    elif kind == UNKNOWN:
        title = f"GPUs waited {duration(cover.total)} for the host, but the report does not show its activity"
    elif kind == CPU:
        title = f"GPUs waited {duration(cover.total)} for the host, which had no free CPU"
    elif kind in (RANGE, OP) and name:
        title = f"GPUs waited {duration(cover.total)} for the host in the {kind} {name}"
    else:
        title = f"GPUs waited {duration(cover.total)} for the host: {name if kind == FUNCTION else subject}"
    return Finding(
        rule="gpu_waits_for_cpu",
        subject=subject,
        title=title,
        cause=f"In {counted(len(gaps), 'gap')} ({percent(cover.total / span, 1)} of the time) {who} had not launched the next operation. "
        + (
            f"It was in: {subject}.{once}"
            if kind != UNKNOWN
            else "No range, call or sample shows its activity."
        ),
        fix=_ADVICE[kind],
        evidence=most(evidence),
        occurrences=len(gaps),
        bound=cover.total,
        estimate=cover.total,
        confidence="low" if kind == UNKNOWN else "high" if kind in (GC, GIL, IMPORT, OS, API) else "medium",
        claim=cover,
        without=Without(
            threads=frozenset(np.asarray(stretches.column("thread").to_numpy(), np.int64)[where].tolist()),
            time=cover,
        ),
    )


def _bounded(
    report: Report, selection: Selection, finding: Finding, *, kind: str, name: str, idle_in_all: int
) -> Finding:
    """Return the finding with its bound: all of its time on the thread, also where a GPU still had work, if there is so much idle time.

    A fix removes all of that time, with the waits in it. What launches kernels, other than the calls themselves, cannot be removed: there
    a fix makes the gaps shorter.
    """
    if kind == UNKNOWN:
        return finding
    thread = finding.evidence[0].thread
    spent = _spent(report, selection, kind, name=name, thread=thread)
    if spent is None or thread is None:
        return replace(finding, bound=max(finding.bound or 0, idle_in_all))
    finding = replace(finding, bound=max(finding.bound or 0, min(spent.total, idle_in_all)))
    if finding.without is None:
        return finding
    if kind != API and _launches(report, thread, spent):
        return replace(finding, fix=f"It launches the GPU's work itself. {fewer_launches(report, selection)}")
    waits = _calls(report, thread, "true").of(spent)
    return replace(finding, without=replace(finding.without, time=spent, waits=waits))


@dataclass(frozen=True, eq=False)
class _Calls:
    """Calls of CUDA of one thread: their ids and begins."""

    id: Int64Array
    start: Int64Array

    def of(self, cover: Cover) -> Int64Array:
        """Return the ids of those that begin in a time."""
        return self.id[cover.within(self.start, self.start + 1) > 0]


def _calls(report: Report, thread: int, where: str) -> _Calls:
    rows = report.sql(f'SELECT id, "start" FROM cuda_api WHERE thread = {thread} AND {where}')
    return _Calls(numbers(rows, "id"), numbers(rows, "start"))


def _launches(report: Report, thread: int, spent: Cover) -> bool:
    """Say whether a thread launched kernels in this time; samples may be off by a tick."""
    launches = _calls(report, thread, "id IN (SELECT api FROM kernels UNION SELECT api FROM graphs)")
    return len(launches.of(spent)) > _FEW * len(launches.id)


def _spent(report: Report, selection: Selection, kind: str, name: str, thread: int | None) -> Cover | None:
    """Return when a thread did something, also where a GPU still had work; None where no table has that."""
    if thread is not None and kind in (FUNCTION, NATIVE):
        begin, end = edges(report, selection)
        seen = sampled(report, thread, name, begin=begin, end=end)
        if not seen.total:  # calls of functions were recorded, not samples
            calls = rows(
                report,
                selection,
                "thread",
                table="python_calls",
                where=f"thread = {thread} AND {_CALLED} = {quoted(name)}",
            )
            seen = Cover(numbers(calls, "start"), numbers(calls, "end"))
        return seen if seen.total else None
    plain = quoted(name.partition(":")[2] if ":" in name and kind == RANGE else name)
    where = {
        GC: ("gc", "true"),
        GIL: ("gil", f"thread = {thread} AND state = 'wait'"),
        API: ("cuda_api", f"thread = {thread} AND name = {plain}"),
        IMPORT: ("imports", f"thread = {thread} AND name = {plain}"),
        OS: ("osrt", f"thread = {thread} AND name = {plain}"),
        CPU: ("thread_states", f"thread = {thread} AND state = 'runnable'"),
        RANGE: ("nvtx_ranges", f"thread = {thread} AND message::VARCHAR IN ({plain}, {quoted(name)})"),
        OP: (
            "nvtx_ranges",
            f"thread = {thread} AND (message = {plain} OR starts_with(message::VARCHAR, "
            f"{quoted(name + ', ')}))",
        ),
    }.get(kind)
    if where is None or (kind in (RANGE, OP) and "#" in name):
        return None
    blockers = rows(report, selection, "thread", *where)
    return Cover(numbers(blockers, "start"), numbers(blockers, "end"))
