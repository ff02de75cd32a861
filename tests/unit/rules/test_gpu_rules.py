"""Rules about GPUs, each on drawn timelines where it fires, where it is silent, and where it cannot judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.simulated_gpu import Machine
from tests.unit.rules.asking import ORIGIN, US, ask, costs, drawn, looped, not_judged, one
from warplens.report import open as open_report

pytestmark = pytest.mark.slow


NEED_CALLS = ("unneeded_sync", "small_kernels", "allocator_churn", "graph_reinstantiation", "single_stream")
NEED_A_GPU = (*NEED_CALLS, "transfers_not_overlapped", "pageable_memory")
NO_GPU = "does not contain CUDA kernel or GPU memory data."


@pytest.mark.parametrize("rule", NEED_A_GPU)
def test_without_a_gpu_they_do_not_judge(tmp_path: Path, rule: str) -> None:
    assert not_judged(drawn(tmp_path, "main |[step ]"), rule) == NO_GPU


@pytest.mark.parametrize("rule", NEED_CALLS)
def test_without_calls_they_do_not_judge(tmp_path: Path, rule: str) -> None:
    assert not_judged(drawn(tmp_path, "gpu0.7 |(gemm ) (HtoD )"), rule) == "does not contain CUDA API data."


# Each step of 63 waits from 22 until the kernel is done at 50, and the next begins at 63 + 10: 23 without work.
SYNC = """
main     |[step                                                        ]
main:api |(cudaLaunchKernel#k__)(cudaStreamSynchronize#s__    )
gpu0.7   |          (gemm#k__                              )
main     |                                                               """


def test_unneeded_sync(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(SYNC, 4)), "unneeded_sync")
    assert costs(finding) == (3 * 23, 3 * 23)
    assert (finding.subject, finding.occurrences) == ("step", 4)
    assert finding.title == "4 waits for the GPU in step leave it idle afterwards"
    assert [row.values["gpu_idle_ns"] for row in finding.evidence] == [23 * US] * 3 + [0]


def test_unneeded_sync_names_the_line(tmp_path: Path) -> None:
    calls = """
    main:call |(step                                                        )
    main:call |                     (item                              )"""
    cpu = {
        "step": {"file": "/home/me/train.py", "line": 57},
        "item": {"file": "torch/_tensor.py", "line": 9, "depth": 1},
    }
    finding = one(drawn(tmp_path, looped(SYNC + calls, 4), cpu=cpu), "unneeded_sync")
    assert finding.cause.endswith("The costliest was called from step (train.py:57).")
    assert (
        finding.evidence[0].text
        == "GPU idle for 23.0 us after cudaStreamSynchronize, from step (train.py:57)"
    )


def test_unneeded_sync_names_the_line_of_a_stack(tmp_path: Path) -> None:
    stack = [
        {
            "frame": 0,
            "process": 0,
            "depth": 0,
            "kind": "python",
            "function": "main",
            "file": "/a/run.py",
            "line": 7,
        },
        {
            "frame": 1,
            "process": 0,
            "parent": 0,
            "depth": 1,
            "kind": "python",
            "function": "wait",
            "file": "threading.py",
            "line": 3,
        },
        {
            "frame": 2,
            "process": 0,
            "parent": 1,
            "depth": 2,
            "kind": "native",
            "function": "cudaStreamSynchronize",
        },
    ]
    report = drawn(
        tmp_path, looped(SYNC, 4), cuda={"cudaStreamSynchronize": {"stack": 2}}, tables={"frames": stack}
    )
    assert one(report, "unneeded_sync").cause.endswith("The costliest was called from main (run.py:7).")
    step = drawn(tmp_path / "drawn", looped(SYNC, 4)).table("nvtx_ranges").to_pylist()[0]
    op = {name: step[name] for name in ("process", "thread", "start", "end")} | {
        "range": step["id"],
        "name": "aten::item",
        "stack": 2,
    }
    report = drawn(tmp_path / "ops", looped(SYNC, 4), tables={"frames": stack, "ops": [op]})
    assert one(report, "unneeded_sync").cause.endswith("The costliest was called from main (run.py:7).")


def test_unneeded_sync_is_no_loop(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, looped(SYNC, 2)), "unneeded_sync") == []


def test_unneeded_sync_where_the_gpu_stays_busy(tmp_path: Path) -> None:
    busy = SYNC.replace(
        "gpu0.7   |          (gemm#k__                              )",
        "gpu0.7   |" + "(gemm#k__".ljust(62) + ")",
    )
    assert ask(drawn(tmp_path, looped(busy, 4)), "unneeded_sync") == []


def test_unneeded_sync_of_ops_that_are_numbered(tmp_path: Path) -> None:
    picture = "\n".join(line for line in looped(SYNC, 4).splitlines() if line.startswith(("main:", "gpu")))
    ranges = "main |" + "".join(f"[op{number} ".ljust(62) + "]" for number in range(4))
    extra = {f"op{number}": {"message": f"aten::item, op_id = {4711 + number}"} for number in range(4)}
    assert one(drawn(tmp_path, f"{picture}\n{ranges}", extra=extra), "unneeded_sync").subject == "aten::item"


def test_unneeded_sync_hides_in_small_copies_to_the_host(tmp_path: Path) -> None:
    step = """
    main:api |(cudaLaunchKernel#k__)(cudaMemcpyAsync#c__          )
    gpu0.7   |          (gemm#k__                            )
    gpu0.9   |                                                (DtoH#c__ )
    main     |                                                                        """
    cuda = {"DtoH": {"bytes": 4}}
    finding = one(drawn(tmp_path, looped(step, 4), cuda=cuda), "unneeded_sync")
    assert finding.subject == "cudaMemcpyAsync"
    assert (
        ask(drawn(tmp_path / "large", looped(step, 4), cuda={"DtoH": {"bytes": 4096}}), "unneeded_sync") == []
    )


# The copy runs alone from 0 to 20 of 40, then the kernel that waits for it.
SERIAL = """
gpu0.7 |(HtoD             )(gemm              )"""
BESIDE = """
gpu0.7 |(gemm                                 )
gpu0.8 |    (HtoD             )"""


def test_transfers_not_overlapped(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(SERIAL, 3)), "transfers_not_overlapped")
    # that before the first kernel is left out
    assert costs(finding) == (2 * 19, 2 * 19)
    assert (finding.subject, finding.occurrences) == ("GPU 0", 2)
    assert "2 of them share a stream with kernels" in finding.cause
    assert "2 of them use pageable memory" in finding.cause
    assert dict(finding.evidence[0].values) == {"bytes": 1000, "alone_ns": 19 * US}


def test_transfers_win_no_more_than_there_is_to_compute(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped("gpu0.7 |(HtoD             )(g )", 4)), "transfers_not_overlapped")
    assert costs(finding) == (3 * 19, 4 * 4)
    assert "won by moving less" in finding.cause


def test_transfers_that_nobody_waits_for_are_not_won(tmp_path: Path) -> None:
    step = "gpu0.7 |(HtoD             )" + " " * 40 + "(gemm              )"
    assert costs(one(drawn(tmp_path, looped(step, 3)), "transfers_not_overlapped")) == (2 * 19, 0)


@pytest.mark.parametrize("picture", [BESIDE, SERIAL.replace("HtoD", "DtoD"), "gpu0.7 |(gemm  )(gemm  )"])
def test_transfers_that_are_no_loss(tmp_path: Path, picture: str) -> None:
    assert ask(drawn(tmp_path, looped(picture, 3)), "transfers_not_overlapped") == []


def test_transfers_without_kernels_are_not_judged(tmp_path: Path) -> None:
    assert (
        not_judged(drawn(tmp_path, "gpu0.7 |(HtoD )(HtoD )"), "transfers_not_overlapped")
        == "does not contain CUDA kernel data."
    )


def test_pageable_memory_at_the_rate_of_the_other_copies(tmp_path: Path) -> None:
    picture = """
    gpu0.7 |(HtoD#1             )(gemm   )(HtoD#2   )
    gpu0.8 |              (gemm )
    """
    pinned = {"source_kind": "Pinned", "bytes": 220_000}
    report = drawn(tmp_path, picture, cuda={"#1": {"bytes": 100_000}, "#2": pinned})
    finding = one(report, "pageable_memory")
    # 21 long, 7 of it beside a kernel; 4.8 GB/s where page-locked memory has 20
    assert costs(finding) == (14, 10)
    assert (finding.subject, finding.confidence, finding.occurrences) == ("Host-to-Device", "medium", 1)
    assert "at 4.8 GB/s; page-locked memory had 20.0 GB/s" in finding.cause


def test_pageable_memory_without_a_measure(tmp_path: Path) -> None:
    finding = one(
        drawn(tmp_path, "gpu0.7 |(DtoH               )", cuda={"DtoH": {"bytes": 100_000}}), "pageable_memory"
    )
    assert (finding.bound, finding.estimate, finding.confidence) == (21 * US, 21 * US // 2, "low")


@pytest.mark.parametrize(
    "columns",
    [
        {"source_kind": "Pinned", "bytes": 100_000},
        {"bytes": 1000},
        {"kind": "Device-to-Device", "bytes": 100_000},
    ],
)
def test_no_pageable_memory(tmp_path: Path, columns: dict[str, Any]) -> None:
    assert (
        ask(drawn(tmp_path, "gpu0.7 |(HtoD               )", cuda={"HtoD": columns}), "pageable_memory") == []
    )


def test_pageable_memory_of_unknown_kind(tmp_path: Path) -> None:
    report = drawn(
        tmp_path, "gpu0.7 |(HtoD )", cuda={"HtoD": {"source_kind": None, "destination_kind": None}}
    )
    assert not_judged(report, "pageable_memory") == "does not contain the kinds of memory of its copies."


# Each kernel begins while the host still calls for it, and runs for 6 of 22.
SHORT = """
main:api |(cudaLaunchKernel#k__)
gpu0.7   |               (g#k__)"""
LONG = """
main:api |(cudaLaunchKernel#k__)
gpu0.7   |(g#k__               )"""


def test_small_kernels(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(SHORT, 6)), "small_kernels", fewest=5)
    assert costs(finding) == (5 * 15, 5 * 14)
    assert (finding.occurrences, finding.evidence[0].values) == (
        1,
        {"gpu_idle_ns": 5 * 15 * US, "operations": 5},
    )
    assert (
        "half of them ran for less than 7.00 us, and the next launch came 15.0 us too late" in finding.cause
    )


@pytest.mark.parametrize(
    ("name", "says", "not_says"),
    [
        ("g", ["Fuse (torch.compile", "mode='reduce-overhead'"], "compiled already"),
        ("triton_poi_fused_add_0", ["compiled already", "mode='reduce-overhead'"], "Fuse"),
    ],
)
def test_small_kernels_advice_follows_what_is_there(
    tmp_path: Path, name: str, says: list[str], not_says: str
) -> None:
    fix = one(drawn(tmp_path, looped(SHORT, 6), cuda={"g": {"name": name}}), "small_kernels", fewest=5).fix
    assert all(text in fix for text in says)
    assert not_says not in fix
    graphs = (
        looped(SHORT, 6)
        + "\nmain:api |"
        + " " * 300
        + "(cudaGraphLaunch#x)\ngpu0.7 |"
        + " " * 310
        + "(graph#x )"
    )
    fix = one(drawn(tmp_path / "b", graphs, cuda={"g": {"name": name}}), "small_kernels", fewest=5).fix
    assert "reduce-overhead" not in fix


def test_small_kernels_need_many(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, looped(SHORT, 6)), "small_kernels") == []


def test_small_kernels_are_long_enough(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, looped(LONG, 6)), "small_kernels", fewest=1) == []


def test_small_kernels_behind_a_busy_host(tmp_path: Path) -> None:
    assert (
        ask(drawn(tmp_path, looped(SHORT + "\nmain     |" + " " * 140, 6)), "small_kernels", fewest=1) == []
    )


def test_small_kernels_of_a_graph(tmp_path: Path) -> None:
    graph = """
    main:api |(cudaGraphLaunch#g )
    gpu0.7   |     (a#g )    (b#g )    (c#g )
    """
    assert ask(drawn(tmp_path, graph), "small_kernels", fewest=1) == []


# cudaFree waits from 22 to 36 and lets the GPU run dry from 36 to 50.
CHURN = """
main:api |(cudaLaunchKernel#k__)(cudaFree#f__)
gpu0.7   |               (gemm#k__           )
main     |                                              """


def test_allocator_churn(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(CHURN, 16)), "allocator_churn")
    assert finding.occurrences == 16  # the first fifth is like the rest: it is no warm-up
    bound, estimate = costs(finding)
    assert bound == 15 * 14
    assert estimate == bound
    assert "16 of cudaFree" in finding.cause


def test_allocator_churn_leaves_out_a_warm_up_that_allocates_more(tmp_path: Path) -> None:
    machine = Machine()
    for step in range(20):
        machine.work(100 * US)
        for _ in range(6 if step < 3 else 1):
            machine.call("cudaMalloc", 50 * US)
        machine.launch(20 * US)
    machine.wait()
    finding = one(open_report(machine.write(tmp_path / "r.warplens")), "allocator_churn")
    assert finding.occurrences < 20


def test_allocator_churn_names_empty_cache(tmp_path: Path) -> None:
    samples = "\nmain:python |                      (main:3;step:9;empty_cache )"
    cpu = {
        "step": {"file": "/home/me/train.py"},
        "empty_cache": {"file": "/site-packages/torch/cuda/memory.py"},
    }
    finding = one(drawn(tmp_path, looped(CHURN + samples, 16), cpu=cpu), "allocator_churn")
    assert (
        "In 100 % of that time Python was in empty_cache(), called from step (train.py:9)." in finding.cause
    )
    assert finding.fix.startswith("Take empty_cache() out of the loop")
    elsewhere = samples.replace("empty_cache", "linear     ")
    finding = one(drawn(tmp_path / "other", looped(CHURN + elsewhere, 16), cpu=cpu), "allocator_churn")
    assert "empty_cache()," not in finding.cause


def test_allocator_churn_where_memory_is_short(tmp_path: Path) -> None:
    bursts = """
    main:api |(cudaLaunchKernel#k__)(cudaFree )(cudaFree )(cudaFree )(cudaMalloc )
    gpu0.7   |               (gemm#k__           )
    main     |                                                                     """
    finding = one(drawn(tmp_path, looped(bursts, 16)), "allocator_churn")
    assert "Memory was freed in 15 bursts before new allocations" in finding.cause
    assert finding.fix.startswith("Reduce peak memory")
    refused = {"cudaFree": {"result": 2}}
    finding = one(drawn(tmp_path / "refused", looped(CHURN, 16), cuda=refused), "allocator_churn")
    assert f"{finding.occurrences} calls returned out of memory." in finding.cause


def test_allocations_before_the_loop(tmp_path: Path) -> None:
    begin = "main:api |" + "(cudaMalloc )" * 20 + "\n" + "gpu0.7   |(memset )" + " " * 900 + "(gemm )"
    assert ask(drawn(tmp_path, begin), "allocator_churn") == []


@pytest.mark.parametrize(("steps", "found"), [((5, 8, 13), 0), ((5, 8, 11, 13), 1)])
def test_allocations_of_libraries_that_are_loaded_late(
    tmp_path: Path, steps: tuple[int, ...], found: int
) -> None:
    quiet = CHURN.replace("(cudaFree#f__)", " " * len("(cudaFree#f__)"))
    pictures = [
        looped((CHURN if step in steps else quiet).replace("__", f"{step:02}"), 1).splitlines()
        for step in range(16)
    ]
    heads = [line.partition("|")[0] for line in pictures[0]]
    tracks = ["".join(picture[row].partition("|")[2] for picture in pictures) for row in range(len(heads))]
    picture = "\n".join(f"{head}|{track}" for head, track in zip(heads, tracks, strict=True))
    assert len(ask(drawn(tmp_path, picture), "allocator_churn", fewest=3)) == found


def test_stream_ordered_allocation(tmp_path: Path) -> None:
    assert (
        ask(drawn(tmp_path, looped(CHURN.replace("cudaFree#f__", "cuMemFreeAsync"), 16)), "allocator_churn")
        == []
    )


def test_a_pool_is_noted(tmp_path: Path) -> None:
    picture = """
    main:api    |(cuMemAlloc_v2#1 )
    gpu0.7      |                       (gemm )
    gpu0:memory |  +60000#1
    """
    finding = one(drawn(tmp_path, picture, cuda={"gpu0": {"memory": 80000}}), "allocator_churn")
    assert (finding.severity, finding.bound, finding.subject) == ("info", None, "GPU 0 preallocated")
    assert finding.title == "The program took 75 % of GPU 0's memory at once"
    assert ask(drawn(tmp_path / "less", picture, cuda={"gpu0": {"memory": 800000}}), "allocator_churn") == []


GRAPHS = """
main:api |(cudaGraphInstantiate#i__       )(cudaGraphLaunch#g__)
gpu0.7   |                                             (graph#g__  )"""


def test_graph_reinstantiation(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(GRAPHS, 6)), "graph_reinstantiation")
    # the host instantiates for 33 in each step, and the GPU is idle for longer
    assert finding.occurrences == 5
    assert costs(finding) == (5 * 33, 5 * 33)
    assert finding.title == "CUDA graphs were instantiated again 5 times for 6 launches"


def test_graphs_that_are_launched_again(tmp_path: Path) -> None:
    again = GRAPHS + "\nmain:api |" + " " * 60 + "(cudaGraphLaunch )" * 4
    assert ask(drawn(tmp_path, looped(again, 6)), "graph_reinstantiation") == []
    assert ask(drawn(tmp_path / "few", looped(GRAPHS, 5)), "graph_reinstantiation") == []


# Rank 1 comes 20 later each time.
SKEW = """
a/gpu0.7 |(gemm   )(ncclDevKernel_AllReduce                     )
b/gpu0.7 |(gemm                       )(ncclDevKernel_AllReduce )"""
RANKS = {"a": 0, "b": 1}


def test_collective_skew(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(SKEW, 3), ranks=RANKS), "collective_skew")
    assert costs(finding) == (3 * 20, 3 * 10)
    assert finding.title == "Ranks wait 60.0 us for each other in collectives; rank 1 is last in 100 %"
    assert (finding.occurrences, finding.confidence) == (3, "medium")
    row = finding.evidence[0]
    assert (row.start - ORIGIN, row.end - ORIGIN) == (9 * US, 29 * US)


def test_collectives_by_their_sequence(tmp_path: Path) -> None:
    report = drawn(tmp_path, SKEW, ranks=RANKS)
    processes = report.table("processes", ["process"]).column(0).to_pylist()
    told = [
        {
            "id": process << 32 | n,
            "process": process,
            "start": ORIGIN + start * US,
            "end": ORIGIN + (start + 30) * US,
            "name": "all_reduce",
        }
        | {"group": "0", "sequence": 7 - n, "kernel": n}
        for process, starts in zip(processes, ((9, 42), (29, 45)), strict=True)
        for n, start in enumerate(starts)
    ]
    finding = one(
        drawn(tmp_path / "told", SKEW, ranks=RANKS, tables={"collectives": told}), "collective_skew"
    )
    assert costs(finding) == (23, 11)


def test_collectives_in_step(tmp_path: Path) -> None:
    step = """
    a/gpu0.7 |(gemm   )(ncclDevKernel_AllReduce                     )
    b/gpu0.7 |(gemm   )(ncclDevKernel_AllReduce                     )"""
    assert ask(drawn(tmp_path, looped(step, 3)), "collective_skew") == []


@pytest.mark.parametrize(
    "picture",
    [
        "gpu0.7 |(ncclDevKernel_AllReduce )",
        "a/gpu0.7 |(gemm )\nb/gpu0.7 |(gemm )",
        SKEW.replace("AllReduce", "SendRecv"),
    ],
)
def test_collectives_of_one_rank(tmp_path: Path, picture: str) -> None:
    assert (
        not_judged(drawn(tmp_path, picture), "collective_skew")
        == "does not contain collectives of several ranks."
    )


def test_collectives_of_groups_that_are_not_told(tmp_path: Path) -> None:
    picture = """
    a/gpu0.7 |(ncclDevKernel_AllReduce )
    b/gpu0.7 |                                (ncclDevKernel_AllReduce )
    """
    assert (
        not_judged(drawn(tmp_path, picture), "collective_skew")
        == "does not match collectives of different ranks."
    )


# Launched at once, in streams 7 (null), 13 and 14; they run one after the other.
LEGACY = """
main:api |(cudaLaunchKernel#a__)(cudaLaunchKernel#b__)
gpu0.7   |                      (a#a__     )
gpu0.13  |                                            (b#b__     )"""
STREAMS: dict[str, Any] = {
    "stream 7": {"kind": "null"},
    "stream 13": {"kind": "default"},
    "gpu0": {"multiprocessors": 132},
}


def test_single_stream(tmp_path: Path) -> None:
    step = """
    main:api |(cudaLaunchKernel#a__)(cudaLaunchKernel#b__)
    gpu0.7   |                      (a#a__                                    )
    gpu0.13  |                                                                 (b#b__              )"""
    finding = one(drawn(tmp_path, looped(step, 10), cuda=STREAMS), "single_stream")
    # launched at 44, held until 65; runs for 21
    assert costs(finding) == (10 * 21, 10 * 21)
    assert (finding.subject, finding.occurrences, finding.confidence) == ("GPU 0", 10, "low")
    assert ask(drawn(tmp_path / "few", looped(step, 9), cuda=STREAMS), "single_stream") == []
    for name, other in {
        "nonblocking": {**STREAMS, "stream 13": {"kind": "non-blocking"}},
        "large": {**STREAMS, "a": {"grid_x": 133}},
        "unknown": {name: columns for name, columns in STREAMS.items() if name != "gpu0"},
    }.items():
        assert ask(drawn(tmp_path / name, looped(step, 10), cuda=other), "single_stream") == []


def test_single_stream_that_waits_for_an_event(tmp_path: Path) -> None:
    picture = looped(LEGACY, 10) + "\n:sync |(Stream_wait_event )"
    cuda = {**STREAMS, "Stream wait event": {"stream": 13}, "Stream_wait_event": {"stream": 13}}
    assert ask(drawn(tmp_path, picture, cuda=cuda), "single_stream", fewest=1, least=0) == []


def test_single_stream_without_a_known_default_stream(tmp_path: Path) -> None:
    assert (
        not_judged(drawn(tmp_path, looped(LEGACY, 10)), "single_stream")
        == "does not identify the default stream."
    )


METRICS = """
gpu0.7             |(ampere_sgemm_128x64 )(add )
gpu0~SM_Active     |0   90  90   90  10
gpu0~Tensor_Active |0   2   3    4   80
"""


def test_low_tensor_use(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, METRICS), "low_tensor_use")
    assert (finding.subject, finding.bound, finding.estimate, finding.severity) == (
        "GPU 0",
        22 * US,
        None,
        "high",
    )
    assert finding.title == "The tensor cores of GPU 0 were active for 3.0 % of the time"
    assert finding.evidence[0].text == "ampere_sgemm_128x64"


def test_tensor_cores_with_enough_or_nothing_to_do(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, METRICS.replace("2   3    4 ", "20  30   40")), "low_tensor_use") == []
    assert (
        ask(
            drawn(tmp_path / "no", METRICS.replace("ampere_sgemm_128x64", "vectorized_add_float")),
            "low_tensor_use",
        )
        == []
    )


def test_without_metrics_of_tensor_cores(tmp_path: Path) -> None:
    assert not_judged(
        drawn(tmp_path, "gpu0.7 |(ampere_sgemm )\ngpu0~SM_Active |90 90"), "low_tensor_use"
    ) == ("does not contain metrics of the tensor cores.")


def test_gpus_that_are_alike_are_one_finding(tmp_path: Path) -> None:
    ranks = "".join(f"{rank}/{line}\n" for rank in "abc" for line in looped(SERIAL, 3).splitlines())
    report = drawn(tmp_path, ranks, ranks={"a": 0, "b": 1, "c": 2})
    finding = one(report, "transfers_not_overlapped")
    assert (finding.subject, finding.occurrences, costs(finding)) == ("GPUs", 6, (38, 38))
    assert finding.title.endswith("; much the same on 2 other GPUs")
    assert "Much the same on GPU 0 of rank 1, GPU 0 of rank 2: 38.0 us in total" in finding.cause


def test_collectives_that_are_told_without_numbers(tmp_path: Path) -> None:
    processes = drawn(tmp_path, SKEW).table("processes", ["process"]).column(0).to_pylist()
    told = [
        {
            "id": process << 32,
            "process": process,
            "start": ORIGIN + start * US,
            "end": ORIGIN + 60 * US,
            "name": "all_to_all",
            "kernel": 7,
        }
        for process, start in zip(processes, (10, 35), strict=True)
    ]
    report = drawn(
        tmp_path / "told", SKEW.replace("AllReduce", "SendRecv"), tables={"collectives": told}, ranks=RANKS
    )
    assert costs(one(report, "collective_skew")) == (25, 12)
    host = [{**row, "kernel": None} for row in told]
    report = drawn(
        tmp_path / "host", SKEW.replace("AllReduce", "SendRecv"), tables={"collectives": host}, ranks=RANKS
    )
    assert not_judged(report, "collective_skew") == "does not contain collectives of several ranks."
