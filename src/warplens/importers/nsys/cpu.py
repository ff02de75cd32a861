"""CPU samples and thread states: the tables `samples` and `thread_states`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from warplens.arrays import BoolArray, Int64Array
from warplens.importers.nsys.calls import enclosing
from warplens.importers.nsys.chains import Chains
from warplens.importers.nsys.names import distinct_values, labelled
from warplens.importers.nsys.ranges import NsysRanges
from warplens.importers.nsys.rows import NsysRows
from warplens.importers.nsys.taken import NsysContext, NsysEvents, narrow
from warplens.importers.rows import numbered
from warplens.model.nsys_labels import SAMPLE_INTERVAL

_SAMPLES, _CHAINS, _SWITCHES = "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "SCHED_EVENTS"
_BLOCKS = "ENUM_SCHEDULING_THREAD_BLOCK"
_RUNNING = 1
_RUNNABLE, _BLOCKED = (6,), (7, 8)


def samples(context: NsysContext, ranges: NsysRanges, chains: Chains, about: dict[str, str]) -> None:
    """Write `samples`: consecutive ones of a thread with the same stack are one row."""
    rows = context.read(_SAMPLES, ["start", "id", "cpu", "threadState", "globalTid", "cpuCycles"])
    switched = rows.valid("cpuCycles") & (rows.ints("cpuCycles") == 0)
    if switched.any():
        message = f"stacks of context switches in {_SAMPLES} have no place in a report"
        context.tally.say("info", "not-imported", message, int(switched.sum()))
        rows = rows.taken(~switched)
    events = NsysEvents.sorted(context, rows, "globalTid", end=None, table=_SAMPLES)
    rows = events.rows
    thread = context.identity.thread(rows.ints("globalTid"))
    stack = chains.stacks(_CHAINS, events.process, rows.ints("id"), rows.valid("id"))
    order = np.lexsort((events.start, thread))
    rows, thread, start, stack = (
        rows.taken(order),
        thread[order],
        events.start[order],
        stack.take(pa.array(order)),
    )
    interval = _interval(about, thread, start)
    if len(rows):
        message = (
            f"the file does not contain the weight of samples; warplens uses {interval} ns, the "
            "usual time between two samples of a thread"
        )
        if SAMPLE_INTERVAL not in about:
            context.tally.say("info", "sample-interval", message, len(rows))
    keys = np.where(np.asarray(stack.is_valid()), stack.fill_null(0).to_numpy(), -1)
    cpu, on_cpu = rows.ints("cpu", -1), ~rows.valid("threadState") | (rows.ints("threadState") <= _RUNNING)
    # Run-length encoding: a row for each run of samples that agree in thread, stack, CPU and state.
    # Of the runs [0, 3) and [3, 5) the begins are [0, 3], the counts [3, 2], the lasts [2, 4].
    first = _changes(thread, keys, cpu, on_cpu.astype(np.int64))
    begins = np.flatnonzero(first)
    count = np.diff(np.append(begins, len(first)))
    last = begins + count - 1
    process = context.identity.process(rows.ints("globalTid"))[begins]
    start, end, thread, cpu, keys, on_cpu = (
        start[begins],
        start[last],
        thread[begins],
        cpu[begins],
        keys[begins],
        on_cpu[begins],
    )
    order = np.lexsort((-end, start, process))
    start, end, thread, cpu, keys, count = (
        values[order] for values in (start, end, thread, cpu, keys, count)
    )
    process, on_cpu = process[order], on_cpu[order]
    around = enclosing(ranges, thread, start)
    context.write(
        "samples",
        {
            "id": numbered(process),
            "process": process,
            "thread": thread,
            "start": start,
            "end": end,
            "kind": distinct_values(np.zeros(len(start), np.int32), ["native"], np.ones(len(start), bool)),
            "count": count,
            "weight": count * interval,
            "on_cpu": on_cpu,
            "cpu": pa.array(narrow(cpu), pa.int32(), mask=cpu < 0),
            "stack": pa.array(keys, pa.int64(), mask=keys < 0),
            "range": pa.array(around, pa.int64(), mask=around < 0),
        },
    )


def thread_states(context: NsysContext) -> None:
    """Write `thread_states`: from each switch of a thread to its next one."""
    rows = context.read(_SWITCHES, ["start", "cpu", "isSchedIn", "globalTid", "threadState", "threadBlock"])
    known = context.identity.knows(rows.ints("globalTid"))
    if not known.all():
        message = f"rows of {_SWITCHES} of processes that did nothing else were left out"
        context.tally.say("info", "not-imported", message, int((~known).sum()))
        rows = rows.taken(known)
    thread = context.identity.thread(rows.ints("globalTid"))
    order = np.lexsort((rows.ints("start"), thread))
    rows, thread, start = rows.taken(order), thread[order], rows.ints("start")[order]
    state, is_known = _states(context, rows)
    process = context.identity.process(rows.ints("globalTid"))
    # A state lasts until the thread's next switch. The last state of each thread (`closing`) lasts
    # until the process was last seen.
    end = np.append(start[1:], 0)
    closing = np.append(thread[1:] != thread[:-1], True) if len(thread) else np.empty(0, bool)
    last = np.array(
        [
            context.identity.processes[tid & ~0xFFFFFF].last
            for tid in rows.ints("globalTid")[closing].tolist()
        ],
        np.int64,
    )
    end[closing] = np.maximum(last, start[closing])
    kept = np.flatnonzero(is_known & ((end > start) | ~closing))
    order = kept[np.lexsort((-end[kept], start[kept], process[kept]))]
    rows, thread, start, end, state, process = (
        rows.taken(order),
        thread[order],
        start[order],
        end[order],
        state[order],
        process[order],
    )
    running = state == 0
    block = rows.valid("threadBlock") & (rows.ints("threadBlock") != 0) & (state == 2)
    context.tally.used.add(_BLOCKS)
    named = context.database.read(_BLOCKS, ["id"], texts=["label"])
    blocks = dict(zip(named.ints("id").tolist(), named.texts("label").to_pylist(), strict=True))
    context.write(
        "thread_states",
        {
            "id": numbered(process),
            "process": process,
            "thread": thread,
            "start": start,
            "end": end,
            "state": distinct_values(
                state.astype(np.int32), ["running", "runnable", "blocked"], np.ones(len(state), bool)
            ),
            "cpu": pa.array(narrow(rows.ints("cpu")), pa.int32(), mask=~running),
            "exact": np.ones(len(state), bool),
            "reason": labelled(
                rows.ints("threadBlock"), block, {key: text or "" for key, text in blocks.items()}
            ),
        },
    )


def _states(context: NsysContext, rows: NsysRows) -> tuple[Int64Array, BoolArray]:
    """Return the state that each switch begins, and where it is known.

    0 running, 1 runnable, 2 blocked.
    """
    goes, kind = rows.ints("isSchedIn") != 0, rows.ints("threadState")
    known = goes | (rows.valid("threadState") & (kind != 0))
    if (
        not known.all() and not (rows.valid("threadState") & ~goes).any()
    ):  # older versions never say why a thread stopped
        message = f"rows of {_SWITCHES} do not say why the thread stopped running: counted as blocked"
        context.tally.say("info", "state-unknown", message, int((~known).sum()))
        known = np.ones(len(rows), bool)
    waits = ~np.isin(kind, (_RUNNING, *_RUNNABLE))
    return np.where(goes, 0, np.where(waits, 2, 1)), known


def _interval(about: dict[str, str], thread: Int64Array, start: Int64Array) -> int:
    """Return the time (ns) that a sample stands for.

    That of the file, else the middle of the times between two of a thread.
    """
    interval = about.get(SAMPLE_INTERVAL, "")
    if interval.isdigit() and 0 < int(interval) < 1 << 40:
        return int(interval)
    gaps = np.diff(start)[thread[1:] == thread[:-1]]
    gaps = gaps[gaps > 0]
    return int(np.median(gaps)) if len(gaps) else 1_000_000


def _changes(*keys: Int64Array) -> BoolArray:
    """Say where any of the keys differs from the row before."""
    first = np.ones(len(keys[0]), bool)
    if len(first):
        first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return first
