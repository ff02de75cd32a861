"""`warplens profile --trace=cuda,nvtx` on the look-alike libcuda: the report against what the GPUs did and what the program called."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.integration.conftest import Target
from tests.support.native.fake_cuda import VERSIONS, FakeCuda, truth, violations
from tests.support.programs.launching import environment, warplens
from tests.support.thorough import alike, few
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("gcc", "native"), pytest.mark.timeout(300)]

# Everything that is recorded, through the runtime, the driver, and from a thread.
SCRIPT = (
    "malloc:1048576 kernel:_Z5firstPf:20000:0:5 kernel:second:100000:1:3 h2d:1000000:1 d2h:4096:2 d2d:512:2 memset:7:65536:1"
    " event:1 wait_event:2 sync_event query_event graph:4:3000:1:3 sync:1 sleep:100 managed:1048576 prefetch:0 prefetch:-1 device_sync"
    " malloc_async:4096:1 free_async:1 pool module free last_error push:3:77 kernel:labelled:1000:0 pop:3"
    " driver kernel:direct:5000:3:2 h2d:100:3 sync:3 runtime device:1 kernel:elsewhere:1000:0 peer:2048:1 device_sync"
    " thread kernel:threaded:2000:0:4 device_sync"
)
OPTIONS = (
    "--cuda-memory-usage=true",
    "--cuda-event-trace=true",
    "--cuda-um-cpu-page-faults=true",
    "--cuda-um-gpu-page-faults=true",
)
COPIES = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 10: "Peer-to-Peer"}
SYNCS = {1: "Event", 2: "Stream wait event", 3: "Stream", 4: "Context"}


class Recorded(NamedTuple):
    """A recording: the tables of its report, what the look-alike did, what the program wrote, what the agent did wrong."""

    tables: dict[str, list[dict[str, Any]]]
    done: list[dict[str, Any]]
    said: list[str]
    wrong: list[str]

    def did(self, what: str) -> list[dict[str, Any]]:
        """What the GPUs or the allocator did, of one kind."""
        return [line for line in self.done if line["what"] == what]


TABLES = (
    *(
        "processes",
        "threads",
        "nvtx_ranges",
        "kernels",
        "memcpys",
        "memsets",
        "graphs",
        "cuda_api",
        "syncs",
        "cuda_events",
        "gpu_memory",
        "um_events",
    ),
    *("overhead", "external_ids", "devices", "contexts", "streams", "diagnostics"),
)


def record(
    folder: Path,
    target: Target,
    version: str,
    words: list[str] | tuple[str | Path, ...],
    *options: str,
    traps: str = "",
    code: int = 0,
    **more: str,
) -> Recorded:
    """Profile the C program with these words, or another program (a tuple), in `folder`."""
    fake = FakeCuda(version)
    program: tuple[str | Path, ...] = (
        words if isinstance(words, tuple) else (target("cuda_program", *fake.words()), *words)
    )
    log, done, said = folder / "log", folder / "truth", folder / "said"
    # No SONAME of one version leads to another: the library path alone says which it is.
    env = environment(**fake.environment(traps=traps, log=log, truth=done), **more, TRUTH=str(said))
    run = warplens("profile", "-q", "-o", "x", "--trace=cuda,nvtx", *options, *program, cwd=folder, env=env)
    assert run.returncode == code, run.stderr
    with open_report(folder / "x.warplens") as report:
        tables = {name: report.table(name).to_pylist() for name in TABLES}
    return Recorded(
        tables,
        truth(done),
        said.read_text(encoding="utf-8").splitlines() if said.exists() else [],
        violations(log),
    )


@pytest.fixture(scope="module", params=alike(VERSIONS, "11.8", "13.4"))
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, target: Target
) -> Recorded:
    """The script, under each version."""
    return record(tmp_path_factory.mktemp("cuda"), target, request.param, SCRIPT.split(), *OPTIONS)


def of_work(row: dict[str, Any]) -> tuple[int, int, int, int]:
    """What ties a row of the report, or a line of the truth, to one piece of work: where it ran, for which call, how long."""
    return row["device"], row["stream"], row["correlation"], row["end"] - row["start"]


def test_the_agent_makes_no_forbidden_cupti_call_and_no_call_fails(recorded: Recorded) -> None:
    assert recorded.wrong == []
    assert [line for line in recorded.said if "error" in line] == []
    assert {row["severity"] for row in recorded.tables["diagnostics"]} <= {"info"}


def test_kernels(recorded: Recorded) -> None:
    done = recorded.did("kernel")
    rows = recorded.tables["kernels"]
    assert Counter((row["mangled"], *of_work(row)) for row in rows) == Counter(
        (line["name"], *of_work(line)) for line in done
    )
    assert {row["demangled"] for row in rows if row["mangled"].startswith("_Z")} == {"first(float*)"}
    assert {row["name"] for row in rows} == {
        "first",
        "second",
        "graph_kernel",
        "labelled",
        "direct",
        "elsewhere",
        "threaded",
    }
    launched = {
        (row["grid_x"], row["grid_y"], row["block_x"], row["dynamic_shared"], row["registers"])
        for row in rows
    }
    assert launched == {(128, 2, 256, 64, 32)}
    graphs = Counter(row["graph"] or 0 for row in rows)
    assert graphs == Counter(line["graph"] for line in done)
    nodes = {row["graph_node"] for row in rows if row["graph"]}
    assert len(nodes) == 4


def test_times_are_on_the_clock_of_the_report(recorded: Recorded) -> None:
    done = {(line["correlation"], line["stream"], line["start"]): line for line in recorded.did("kernel")}
    mine = sorted((row["correlation"], row["stream"], row["start"]) for row in recorded.tables["kernels"])
    off = [start - wanted for (_, _, start), (_, _, wanted) in zip(mine, sorted(done), strict=True)]
    assert (
        max(map(abs, off)) < 1_000_000
    )  # the look-alike's own clock is converted as CUPTI does it; a wrong clock is off by hours


def test_copies_and_memsets(recorded: Recorded) -> None:
    done = recorded.did("memcpy")
    rows = recorded.tables["memcpys"]
    wanted = Counter((COPIES[line["kind"]], line["bytes"], *of_work(line)) for line in done)
    assert Counter((row["kind"], row["bytes"], *of_work(row)) for row in rows) == wanted
    peers = [
        (row["source_device"], row["destination_device"]) for row in rows if row["kind"] == "Peer-to-Peer"
    ]
    assert peers == [(0, 1)]
    sets = recorded.did("memset")
    assert [(row["value"], row["bytes"], *of_work(row)) for row in recorded.tables["memsets"]] == [
        (line["value"], line["bytes"], *of_work(line)) for line in sets
    ]


def test_each_piece_of_work_knows_the_call_that_began_it(recorded: Recorded) -> None:
    calls = {row["id"]: row for row in recorded.tables["cuda_api"]}
    for table in ("kernels", "memcpys", "memsets"):
        for row in recorded.tables[table]:
            call = calls[row["api"]]
            assert call["correlation"] == row["correlation"]
            assert call["start"] <= row["start"]
    names = {row["mangled"]: calls[row["api"]]["name"] for row in recorded.tables["kernels"]}
    assert names["direct"] == "cuLaunchKernel"
    assert names["second"] == "cudaLaunchKernel"
    assert names["graph_kernel"] == "cudaGraphLaunch"


def test_kernels_of_a_graph_know_the_call_that_captured_them_through_a_clone(recorded: Recorded) -> None:
    calls = {row["id"]: row for row in recorded.tables["cuda_api"]}
    nodes: dict[int, set[int]] = {}
    for row in recorded.tables["kernels"]:
        if row["graph"]:
            nodes.setdefault(row["captured"], set()).add(row["graph_node"])
        else:
            assert row["captured"] is None
    assert {calls[call]["name"] for call in nodes} == {"cudaLaunchKernel"}
    assert [len(of) for of in nodes.values()] == [1] * 4
    launched = min(row["start"] for row in calls.values() if row["name"] == "cudaGraphLaunch")
    assert all(calls[call]["end"] < launched for call in nodes)
    threads = {row["thread"]: row["tid"] for row in recorded.tables["threads"]}
    tids = {row["mangled"]: threads[calls[row["api"]]["thread"]] for row in recorded.tables["kernels"]}
    said = {line.split()[3]: int(line.split()[1]) for line in recorded.said if line.split()[2] == "kernel"}
    assert {name: tids[name] for name in said} == said
    assert said["threaded"] != said["second"]


def test_calls_that_only_ask_are_left_out(recorded: Recorded) -> None:
    names = {row["name"] for row in recorded.tables["cuda_api"]}
    assert not names & {"cudaGetLastError", "cuModuleGetFunction", "cudaGetDevice"}
    assert all(row["result"] == 0 for row in recorded.tables["cuda_api"] if row["name"] != "cudaEventQuery")


def test_waits_and_events(recorded: Recorded) -> None:
    wanted = Counter((SYNCS[line["type"]], line["correlation"]) for line in recorded.did("sync"))
    assert Counter((row["kind"], row["correlation"]) for row in recorded.tables["syncs"]) == wanted
    events = [(row["event"], row["stream"], row["correlation"]) for row in recorded.tables["cuda_events"]]
    assert events == [(line["event"], line["stream"], line["correlation"]) for line in recorded.did("event")]


def test_memory(recorded: Recorded) -> None:
    names = {"allocate": "alloc", "free": "free"}
    rows = [row for row in recorded.tables["gpu_memory"] if row["operation"] in names]
    mine = Counter(
        (names[row["operation"]], row["address"], row["bytes"], row["correlation"]) for row in rows
    )
    done = [*recorded.did("alloc"), *recorded.did("free")]
    assert mine == Counter(
        (line["what"], line["address"], line["bytes"], line["correlation"]) for line in done
    )
    device = [row for row in rows if row["kind"] == "Device" and row["pool"] is None]
    assert [row["total"] for row in device] == [1048576, 0]
    pools = [row["operation"] for row in recorded.tables["gpu_memory"] if row["operation"].startswith("pool")]
    assert pools == ["pool create", "pool trim", "pool destroy"]


def test_unified_memory(recorded: Recorded) -> None:
    moves = {1: "HtoD", 2: "DtoH"}
    rows = [row for row in recorded.tables["um_events"] if row["kind"] in moves.values()]
    wanted = [
        (moves[line["kind"]], line["bytes"], line["address"], line["end"] - line["start"])
        for line in recorded.did("um")
    ]
    assert [(row["kind"], row["bytes"], row["address"], row["end"] - row["start"]) for row in rows] == wanted
    faults = {row["kind"]: row["faults"] for row in recorded.tables["um_events"] if row["faults"]}
    assert faults == {"GPU page fault": 12, "CPU page fault": 1}


def test_external_ids_and_driver_names_are_recorded(recorded: Recorded) -> None:
    assert [(row["kind"], row["external"]) for row in recorded.tables["external_ids"]] == [("custom0", 77)]
    labelled = [row["api"] for row in recorded.tables["kernels"] if row["mangled"] == "labelled"]
    assert [row["api"] for row in recorded.tables["external_ids"]] == labelled
    kinds = {row["kind"] for row in recorded.tables["overhead"]}
    assert "Module loading" in kinds
    assert any(kind.startswith("JIT") for kind in kinds)


def test_devices_contexts_and_streams(recorded: Recorded) -> None:
    devices = {
        row["device"]: (row["name"], row["uuid"][:8], row["multiprocessors"])
        for row in recorded.tables["devices"]
    }
    assert devices == {0: ("Fake GPU 0", "GPU-a0a1", 132), 1: ("Fake GPU 1", "GPU-b0b1", 132)}
    contexts = {row["context"]: row["device"] for row in recorded.tables["contexts"]}
    assert sorted(contexts.values()) == [0, 1]
    streams = {(row["stream"], row["context"]) for row in recorded.tables["streams"]}
    for row in recorded.tables["kernels"]:
        assert contexts[row["context"]] == row["device"]
        assert (row["stream"], row["context"]) in streams


def test_graphs_as_a_whole(tmp_path: Path, target: Target) -> None:
    """Each launch is one row, and its kernels are none."""
    found = record(
        tmp_path,
        target,
        "13.0",
        ["graph:5:2000:1:3", "kernel:alone:1000:0", "device_sync"],
        "--cuda-graph-trace=graph",
    )
    assert found.wrong == []
    assert [row["mangled"] for row in found.tables["kernels"]] == ["alone"]
    done = found.did("graph")
    assert [(row["correlation"], row["graph"] or row["graph_exec"]) for row in found.tables["graphs"]] == [
        (line["correlation"], line["graph"]) for line in done
    ]
    kernels = [line for line in found.did("kernel") if line["graph"]]
    for row, line in zip(found.tables["graphs"], done, strict=True):
        inside = [kernel for kernel in kernels if kernel["correlation"] == line["correlation"]]
        assert row["end"] - row["start"] == max(kernel["end"] for kernel in inside) - min(
            kernel["start"] for kernel in inside
        )


def test_duplicate_records_become_one_row(tmp_path: Path, target: Target) -> None:
    """Nodes of a graph have one call between them, and launches follow each other: all are told apart."""
    words = ["graph:5:2000:1:20", "sync:1", "sleep:50", "kernel:late:1000:1:5", "device_sync"]
    found = record(tmp_path, target, "13.0", words, traps="redeliver")
    assert len(found.tables["kernels"]) == len(found.did("kernel")) == 105
    assert "cupti-repeated" in {row["code"] for row in found.tables["diagnostics"]}


@pytest.mark.parametrize(
    ("trap", "code"),
    [("steal=5", "cupti-silent"), ("steal-kinds=5", "launches-without-work")],
    ids=["buffers", "kinds"],
)
def test_work_taken_by_another_tool_is_reported(trap: str, code: str, tmp_path: Path, target: Target) -> None:
    """However short the program is."""
    words = ["kernel:a:1000:1:40", "sync:1", "h2d:4096:1", "memset:7:4096:1", "device_sync"]
    found = record(tmp_path, target, "13.0", words, traps=trap)
    (note,) = [row for row in found.tables["diagnostics"] if row["severity"] == "warning"]
    answered = {row["api"] for table in ("kernels", "memcpys", "memsets") for row in found.tables[table]}
    asked = [row["id"] for row in found.tables["cuda_api"] if "Launch" in row["name"] or "Mem" in row["name"]]
    assert note["code"] == code
    assert (note["count"] or 0) == len(set(asked) - answered)
    assert len(answered) <= 5


def test_no_record_of_very_many_is_lost(tmp_path: Path, target: Target) -> None:
    """More than CUPTI's buffers hold, of threads and graphs, with no time to breathe before the end."""
    words = [
        "kernel:first:100:1:20000",
        "thread",
        "kernel:second:100:2:20000",
        "graph:20:100:3:500",
        "device_sync",
    ]
    found = record(tmp_path, target, "13.0", words)
    assert found.wrong == []
    assert Counter(row["mangled"] for row in found.tables["kernels"]) == {
        "first": 20000,
        "second": 20000,
        "graph_kernel": 10000,
    }
    names = Counter(row["name"] for row in found.tables["cuda_api"])
    assert (names["cudaLaunchKernel"], names["cudaGraphLaunch"]) == (40020, 500)


def test_all_calls_on_request(tmp_path: Path, target: Target) -> None:
    found = record(
        tmp_path,
        target,
        "12.4",
        ["last_error", "kernel:a:1000:0", "device_sync"],
        "--cuda-trace-all-apis=true",
    )
    assert found.wrong == []
    assert "cudaGetLastError" in {row["name"] for row in found.tables["cuda_api"]}


@pytest.mark.parametrize("version", few(["13.4", "12.4"]))
def test_fork_before_cuda(version: str, tmp_path: Path, target: Target) -> None:
    """Both processes start CUDA for themselves: each has its kernels, under its own pid."""
    words = ["fork_both", "kernel:both:3000:1:4", "device_sync"]
    found = record(tmp_path, target, version, words)
    assert found.wrong == []
    pids = {row["process"]: row["pid"] for row in found.tables["processes"]}
    mine = Counter((pids[row["process"]], row["mangled"], *of_work(row)) for row in found.tables["kernels"])
    assert mine == Counter((line["pid"], line["name"], *of_work(line)) for line in found.did("kernel"))
    assert len({pid for pid, *_ in mine}) == 2


def test_fork_after_cuda(tmp_path: Path, target: Target) -> None:
    """The child cannot use CUDA, and ends as it would without us; the parent goes on being recorded."""
    words = ["kernel:before:3000:0:2", "fork_both", "kernel:after:3000:0:2", "device_sync"]
    found = record(tmp_path, target, "13.0", words)
    assert found.wrong == []
    names = Counter(row["mangled"] for row in found.tables["kernels"])
    assert names == {"before": 2, "after": 2}
    assert any("child 0" in line for line in found.said)


PYTHON = Path(__file__).resolve().parents[2] / "targets" / "cuda" / "cuda_python.py"


def test_a_python_program_with_ranges(tmp_path: Path, target: Target) -> None:
    """Libraries that are loaded by need, as frameworks do it; ranges of threads and of processes made by `spawn`."""
    found = record(tmp_path, target, "13.0", (sys.executable, PYTHON, "2"))
    assert found.wrong == []
    tables = found.tables
    ranges = {row["id"]: row for row in tables["nvtx_ranges"]}
    calls = {row["id"]: row for row in tables["cuda_api"]}
    pids = {row["process"]: row["pid"] for row in tables["processes"]}
    # Each kernel is named after the range that its launch lies in, "none" without.
    assert len(tables["kernels"]) == len(found.did("kernel")) == 3 * (3 * 4 + 1)
    for row in tables["kernels"]:
        inside = calls[row["api"]]["range"]
        assert row["name"] == ("none" if inside is None else ranges[inside]["message"])
        assert inside is None or ranges[inside]["thread"] == calls[row["api"]]["thread"]
    mine = Counter((pids[row["process"]], row["mangled"], *of_work(row)) for row in tables["kernels"])
    assert mine == Counter((line["pid"], line["name"], *of_work(line)) for line in found.did("kernel"))
    assert len({pid for pid, *_ in mine}) == 3
