"""Takes over an export as a whole: all tables, in the order in which they need each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.importers.nsys import (
    calls,
    cpu,
    facts,
    hardware,
    memory,
    metrics,
    os_calls,
    overhead,
    parallel,
    waits,
    work,
)
from warplens.importers.nsys.chains import Chains
from warplens.importers.nsys.database import Database
from warplens.importers.nsys.identity import NsysIdentity
from warplens.importers.nsys.ranges import Annotations
from warplens.importers.nsys.taken import NsysContext, NsysDiagnostics
from warplens.importers.rows import whole_window

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

_SOURCES = {
    "cuda": ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    "nvtx": ("NVTX_EVENTS",),
    "osrt": ("OSRT_API",),
    "cpu": ("COMPOSITE_EVENTS", "SCHED_EVENTS"),
    "mpi": ("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"),
    "gpu_metrics": ("GPU_METRICS",),
}


def take(database: Database, part: PartWriter, progress: Progress, rank: int | None = None) -> Facts:
    """Write all tables of an export to the part and return its facts.

    Raises ReportError if it is broken.

    `rank`: of the launched program, where the export says none.
    """
    about = facts.settings(database)
    known = facts.machines(database)
    host = facts.host_of(about, known)
    tally = NsysDiagnostics()
    progress("processes", 0.0)
    identity = NsysIdentity.of(database, part, rank)
    context = NsysContext(database, identity, part, tally=tally)
    chains = Chains(database, part, tally)
    progress("NVTX", 0.1)
    annotations = Annotations(context)
    annotations.write()
    progress("calls", 0.4)
    calls.write(context, annotations.ranges, chains)
    progress("CPU", 0.55)
    os_calls.osrt(context, annotations.ranges, chains)
    os_calls.file_access(context)
    os_calls.syscalls(context, chains)
    cpu.samples(context, annotations.ranges, chains, about=about)
    cpu.thread_states(context)
    chains.write()
    parallel.mpi(context, annotations.ranges)
    parallel.openmp(context)
    parallel.openacc(context)
    progress("GPU work", 0.7)
    for write in (work.kernels, work.copies, work.memsets, work.graphs):
        write(context)
    progress("the rest", 0.85)
    for write in (
        waits.syncs,
        waits.cuda_events,
        memory.gpu_memory,
        memory.um_events,
        overhead.write,
        hardware.write,
    ):
        write(context)
    metrics.write(context, host)
    facts.diagnostics(context)
    facts.left_out(database, tally)
    version = about.get("EXPORT_PRODUCT_VERSION", "")
    sources = {
        name: {"on": any(map(database.count, tables)), "by": f"nsys {version}".strip()}
        for name, tables in _SOURCES.items()
    }
    part_facts = facts.facts(identity, about, host, sources=sources)
    hosts = {machine: facts_of["Hostname"] for machine, facts_of in known.items() if facts_of.get("Hostname")}
    part.write("processes", identity.process_rows(hosts, host, facts.command(about)))
    part.write("threads", identity.thread_rows(annotations.thread_names))
    part.write(
        "capture_windows",
        whole_window(part.part, part_facts.host, begin=part_facts.origin, end=part_facts.end),
    )
    part.write("targets", facts.targets(host, part_facts.boot_id, known))
    part.write("diagnostics", tally.rows)
    progress("write", 1.0)
    return part_facts
