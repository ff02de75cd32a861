"""The rules about the host's side, each on drawn timelines where it fires, where it is silent, and where it cannot judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from tests.unit.rules.asking import ORIGIN, US, ask, costs, drawn, not_judged, one

pytestmark = pytest.mark.slow


MS = 1_000_000
NOTHING = "gpu0.7 |(gemm ) (HtoD )"
WORK = "main |[work                                                      ]"


def ms(path: Path, picture: str, **how: Any) -> Any:
    """Return the picture as a report; a column is 1 ms."""
    return drawn(path, picture, tick_ns=MS, **how)


def in_ms(finding: Any) -> tuple[int, int]:
    return finding.bound // MS, finding.estimate // MS


@pytest.mark.parametrize(
    ("rule", "lacks"),
    [
        ("gc_pauses", "does not contain Python garbage collection data."),
        ("gil_contention", "does not contain Python GIL data."),
        ("late_imports", "does not contain data on imports of Python."),
        ("lock_convoy", "does not contain OS runtime data."),
        ("slow_file_reads", "does not contain OS runtime data."),
        ("blocked_on_sockets", "does not contain OS runtime data."),
        ("data_loader", "does not contain NVTX ranges, OS runtime data or samples of Python."),
        ("nvtx_mistakes", "does not contain NVTX ranges."),
    ],
)
def test_without_their_data_they_do_not_judge(tmp_path: Path, rule: str, lacks: str) -> None:
    assert not_judged(drawn(tmp_path, NOTHING), rule) == lacks


def test_without_steps_there_is_no_first_one(tmp_path: Path) -> None:
    assert not_judged(drawn(tmp_path, WORK), "first_iterations").startswith("does not contain training steps")
    assert not_judged(drawn(tmp_path / "b", WORK + "\nmain:import | (numpy )"), "late_imports").startswith(
        "does not contain training steps"
    )


# --- gc_pauses --------------------------------------------------------------------------------------------------------------------------

PAUSES = """
main    |[work                                                                                               ]
main:gc |       (2                   )    (0)          (2                  )                  (2     )
"""


def test_gc_pauses_are_the_time_of_the_long_ones(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, PAUSES), "gc_pauses")
    assert (in_ms(finding), finding.occurrences, finding.severity) == ((43, 43), 2, "high")
    assert [
        (row.table, (row.start - ORIGIN) // MS, (row.end - ORIGIN) // MS) for row in finding.evidence
    ] == [
        ("gc", 7, 29),
        ("gc", 46, 67),
    ]


def test_gc_pauses_of_two_processes_at_once_count_once(tmp_path: Path) -> None:
    both = "".join(f"{rank}/{line}\n" for rank in ("a", "b") for line in PAUSES.strip().splitlines())
    finding = one(ms(tmp_path, both), "gc_pauses")
    assert (in_ms(finding), finding.occurrences) == ((43, 43), 4)


def test_gc_pauses_are_not_to_blame_for_a_machine_without_a_free_cpu(tmp_path: Path) -> None:
    starved = PAUSES + "main:state |        (runnable )" + " " * 28 + "(runnable     )"
    finding = one(ms(tmp_path, starved), "gc_pauses")
    assert (in_ms(finding), finding.occurrences) == ((11, 11), 1)


def test_gc_pauses_before_the_work_are_its_start(tmp_path: Path) -> None:
    before = """
    main    |                                                   [work                                          ]
    main:gc |       (2                   )    (0)
    """
    assert ask(ms(tmp_path, before), "gc_pauses") == []
    assert (
        one(
            ms(tmp_path / "without", before.replace("[work ", "!work ").replace("]", " ")), "gc_pauses"
        ).occurrences
        == 1
    )


def test_gc_pauses_that_free_much_or_are_short_are_no_mistake(tmp_path: Path) -> None:
    assert ask(ms(tmp_path, PAUSES, cpu={"2": {"collected": 100_000}}), "gc_pauses") == []
    assert ask(drawn(tmp_path / "short", PAUSES), "gc_pauses") == []


def test_gc_pauses_that_a_gpu_works_through_cost_nothing(tmp_path: Path) -> None:
    busy = "gpu0.7  |   (gemm                                                                                     )"
    assert ask(ms(tmp_path, PAUSES + busy), "gc_pauses") == []
    half = "gpu0.7  |(gemm         )             (gemm                                                              )"
    finding = one(ms(tmp_path / "half", PAUSES + half), "gc_pauses")
    assert (in_ms(finding), finding.occurrences) == ((18, 13), 2)


HEAP = """
main    |[work                                                                                                                   ]
main:gc |   (2  )        (2  )         (2         )            (2              )            (2                                  )
"""


def test_gc_advice_where_the_heap_grows(tmp_path: Path) -> None:
    """What is frozen at the start is not what later pauses walk over; to collect less costs memory."""
    fix = one(ms(tmp_path, HEAP, cpu={"2": {"collected": 1_000}}), "gc_pauses", longest=3).fix
    assert "5.00 ms at first, 37.0 ms at the end" in fix
    assert "gc.freeze() at the start does not help" in fix
    assert "gc.disable()" in fix
    assert "5,000 objects, 488 KiB or more" in fix


def test_gc_advice_where_the_heap_was_there_before(tmp_path: Path) -> None:
    alike = "main |[work" + " " * 90 + "]\nmain:gc |" + "    (2           )" * 5
    assert one(ms(tmp_path, alike), "gc_pauses").fix.startswith("Call gc.freeze() when everything is loaded")
    young = ms(tmp_path / "b", PAUSES.replace("(2", "(1"))
    assert one(young, "gc_pauses").fix.startswith("Raise the thresholds")


# --- gil_contention ---------------------------------------------------------------------------------------------------------------------

HOG = """
main     |[request                                                                  ]
main:gil |         (wait                      )(hold  )      (wait                  )
hog:gil  |       (hold                        )         (hold                       )
"""


def test_gil_contention_is_what_others_waited_for_one(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, HOG), "gil_contention")
    assert (finding.subject, in_ms(finding), finding.occurrences, finding.confidence) == (
        "thread hog",
        (52, 52),
        2,
        "high",
    )
    assert "C code that keeps the lock" in finding.cause


def test_gil_contention_of_pure_python(tmp_path: Path) -> None:
    picture = """
    main:gil |(hold)(wait)(hold)(wait)(hold)(wait)(hold)(wait)
    two:gil  |(wait)(hold)(wait)(hold)(wait)(hold)(wait)(hold)
    """
    found = ask(drawn(tmp_path, picture, tick_ns=MS // 2), "gil_contention")
    assert {finding.subject for finding in found} == {"thread main", "thread two"}
    assert all(costs(finding) == (12_000, 12_000) and "runs Python" in finding.cause for finding in found)


@pytest.mark.parametrize(
    ("file", "advice"),
    [("site-packages/anyio/_backends/_asyncio.py", "async def"), ("app.py", "into a separate process")],
)
def test_gil_contention_beside_an_event_loop(tmp_path: Path, file: str, advice: str) -> None:
    picture = """
    main:gil    |(hold)(wait)(hold)(wait)(hold)(wait)(hold)(wait)
    main:python |(run )      (run )      (run )      (run )
    two:gil     |(wait)(hold)(wait)(hold)(wait)(hold)(wait)(hold)
    two:python  |      (call)      (call)      (call)      (call)
    """
    cpu = {"run": {"file": "/lib/python3.11/asyncio/base_events.py"}, "call": {"file": file}}
    found = ask(drawn(tmp_path, picture, tick_ns=MS // 2, cpu=cpu), "gil_contention")
    assert len(found) == 2
    assert all(advice in finding.fix for finding in found)


def test_gil_contention_nobody_feels(tmp_path: Path) -> None:
    waits = HOG.replace("main:gil", "poll:gil")
    assert (
        ask(
            ms(tmp_path, waits + "main:api |(cudaLaunchKernel#1)\ngpu0.7 |    (gemm#1 )       (gemm )"),
            "gil_contention",
        )
        == []
    )
    alone = HOG.replace("(wait", "(hold")
    assert ask(ms(tmp_path / "alone", alone), "gil_contention") == []


def test_gil_contention_counts_while_the_gpu_is_idle(tmp_path: Path) -> None:
    gpu = """
    main:api |(cudaLaunchKernel#1)
    gpu0.7   |      (gemm#1        )                       (gemm                      )
    """
    finding = one(ms(tmp_path, HOG + gpu), "gil_contention")
    assert in_ms(finding) == (31, 15)


# --- lock_convoy ------------------------------------------------------------------------------------------------------------------------

CONVOY = """
a    |[item                                                                             ]
b    |[item                                                                             ]
a:os |     (sem_wait<main;note )     (sem_wait<main;note )     (sem_wait<main;note )
b:os |(sem_wait<main;note )     (sem_wait<main;note )     (sem_wait<main;note )
"""


def test_lock_convoy_is_when_anybody_waits(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, CONVOY), "lock_convoy", times=6)
    assert (finding.subject, in_ms(finding), finding.occurrences) == ("note (app.py)", (78, 39), 6)


@pytest.mark.parametrize(
    "change",
    [
        ("sem_wait", "pthread_cond_wait"),  # waits for something to happen
        ("note", "_queue_SimpleQueue_get@_queue.so"),
        ("note", "take_gil@python"),
        ("b:os", "a:os"),  # nobody holds it but the one who waits
    ],
)
def test_lock_convoy_is_no_waiting_for_something_to_happen(tmp_path: Path, change: tuple[str, str]) -> None:
    assert ask(ms(tmp_path, CONVOY.replace(*change)), "lock_convoy", times=3) == []


def test_lock_convoy_knows_pythons_own_waiting(tmp_path: Path) -> None:
    assert (
        ask(
            ms(tmp_path, CONVOY, cpu={"note": {"file": "/lib/python3.11/threading.py"}}),
            "lock_convoy",
            times=3,
        )
        == []
    )
    assert ask(ms(tmp_path / "few", CONVOY), "lock_convoy") == []


def test_lock_convoy_needs_stacks(tmp_path: Path) -> None:
    assert not_judged(ms(tmp_path, CONVOY.replace("<main;note", "          ")), "lock_convoy").startswith(
        "does not contain stacks of OS"
    )


# --- slow_file_reads, blocked_on_sockets ------------------------------------------------------------------------------------------------

READS = """
main    |[work                                                                       ]
main:os |  (read:/a    )(read:/b    )(read:/c    )  (read:/d    )(read:/e            )
"""


@pytest.mark.parametrize(
    ("rule", "call", "target"), [("slow_file_reads", "read", "/"), ("blocked_on_sockets", "recv", "unix/")]
)
def test_slow_reads_and_answers(tmp_path: Path, rule: str, call: str, target: str) -> None:
    picture = READS.replace("read", call).replace("/", target[0] if len(target) == 1 else "u")
    finding = one(ms(tmp_path, picture), rule)
    assert (finding.subject, finding.occurrences, finding.bound) == (f"{call} on thread main", 5, 73 * MS)
    assert finding.estimate == (73 if rule == "slow_file_reads" else 73 - 21) * MS


def test_slow_reads_are_not_sockets_and_the_other_way_round(tmp_path: Path) -> None:
    assert ask(ms(tmp_path, READS), "blocked_on_sockets") == []
    sockets = ms(
        tmp_path / "s",
        READS,
        cpu={f"read:/{name}": {"target": f"socket {name}:80 (TCP)"} for name in "abcde"},
    )
    assert ask(sockets, "slow_file_reads") == []
    assert one(sockets, "blocked_on_sockets").occurrences == 5


@pytest.mark.parametrize("rule", ["slow_file_reads", "blocked_on_sockets"])
def test_reads_outside_of_work_or_once_are_no_mistake(tmp_path: Path, rule: str) -> None:
    picture = READS if rule == "slow_file_reads" else READS.replace("read", "recv")
    assert ask(ms(tmp_path, picture.replace("main    |", "other   |")), rule) == []
    once = picture.replace("(read:/b    )", " " * 13).replace("(recv:/b    )", " " * 13)
    assert ask(ms(tmp_path / "b", once), rule) == []
    assert ask(drawn(tmp_path / "c", picture), rule) == []


def test_slow_reads_beside_a_busy_gpu_cost_nothing(tmp_path: Path) -> None:
    launch = "main:api |(cudaLaunchKernel#1)\n"
    assert ask(ms(tmp_path, READS + launch + f"gpu0.7 |({'gemm#1'.ljust(90)})"), "slow_file_reads") == []
    finding = one(
        ms(tmp_path / "b", READS + launch + f"gpu0.7 |({'gemm#1'.ljust(38)}){' ' * 50}(gemm )"),
        "slow_file_reads",
    )
    assert in_ms(finding) == (50, 35)


# --- data_loader ------------------------------------------------------------------------------------------------------------------------

LOADER = """
main   |[next_batch   ][step  ][next_batch          ][step  ][next_batch     ][step  ]
worker:os |(read:/data/a         )         (read:/data/a         )(read:/data/a          )
"""


def test_data_loader_by_the_names_of_ranges(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, LOADER), "data_loader")
    assert (finding.subject, in_ms(finding), finding.occurrences) == ("next_batch", (54, 54), 3)
    assert "thread worker of process 100 was in read of /data/a" in finding.cause
    assert finding.title.startswith("Thread main of process 100 waited")


@pytest.mark.parametrize(
    "name",
    few(
        [
            "enumerate(DataLoader)#_Iter.__next__",
            "data_loading",
            "fetch-data",
            "load_batch",
            "train/data_loader",
            "wait_for_data",
        ],
        2,
    ),
)
def test_data_loader_knows_many_names(tmp_path: Path, name: str) -> None:
    report = ms(tmp_path, LOADER, extra={"next_batch": {"message": name}})
    assert one(report, "data_loader").subject == name


@pytest.mark.parametrize(
    "name", few(["load", "target_data", "forget_batch", "forward", "overload_data", "upload"], 2)
)
def test_data_loader_leaves_other_names(tmp_path: Path, name: str) -> None:
    assert ask(ms(tmp_path, LOADER, extra={"next_batch": {"message": name}}), "data_loader") == []


LOADS = """
main |[epoch                                                                     ]
main | [step            ] [step           ] [step             ] [step            ]
main |  [load     ]        [load     ]       [load     ]        {fourth}
"""


@pytest.mark.parametrize(("fourth", "times"), [("[load     ]", 4), ("[fit      ]", 3)])
def test_data_loader_takes_a_load_in_each_step_for_it(tmp_path: Path, fourth: str, times: int) -> None:
    finding = one(ms(tmp_path, LOADS.format(fourth=fourth)), "data_loader")
    assert (finding.subject, finding.occurrences, in_ms(finding)) == ("load", times, (11 * times, 11 * times))


@pytest.mark.parametrize(
    "picture",
    [
        "main |[load    ][load    ][load    ][step    ][step    ][step    ]",
        "main |[load       ][step  ][step  ][step  ][step  ][step  ]\nmain |  [load    ]",
        "main |[step        ][step][step][step][step][step][step][step]\nmain | [load][load]\nmain |[x ]",  # in one of them
        "main |[work [load    ] [load    ] [load    ] ]",
    ],
)
def test_data_loader_takes_no_other_load_for_it(tmp_path: Path, picture: str) -> None:
    assert ask(ms(tmp_path, picture), "data_loader") == []


QUEUE = """
main      |[work                                                                                   ]
main:os   |        (sem_wait<main;get )         (sem_wait<main;get )         (sem_wait<main;get )
loader:os |        (read:/data/a      )         (read:/data/a      )         (read:/data/a      )
"""
IN_QUEUE = {"get": {"file": "/lib/python3.11/queue.py"}}


def test_data_loader_by_what_it_waits_in(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, QUEUE, cpu=IN_QUEUE), "data_loader")
    assert (finding.subject, in_ms(finding)) == ("sem_wait in get (queue.py)", (60, 60))
    assert ask(ms(tmp_path / "b", QUEUE), "data_loader") == []


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (("main:os   |        ", "main:os   |"), ""),  # it only waits
        (("loader:os", "other:gil"), ""),  # nobody works for it
        (("main;get", "main;pool;get"), "concurrent/futures/thread.py"),  # a worker
        (("main;get", "main;pool;get"), "multiprocessing/pool.py"),  # what hands out work
        (("main;get", "main;pool;get"), "site-packages/xdist/dsession.py"),
        (("main;get", "get"), ""),  # a helper thread of the queue itself
        (("main;get", "main;pool;start;get"), "multiprocessing/queues.py"),  # the start of that thread
        (("main;get", "main;put;get"), ""),  # what fills a queue that is full
    ],
)
def test_data_loader_is_no_wait_for_work(tmp_path: Path, change: tuple[str, str], file: str) -> None:
    picture = QUEUE.replace(*change)
    if change[0].startswith("main:os"):
        picture = picture.replace(")         (", ")(")
    assert (
        ask(
            ms(
                tmp_path,
                picture,
                cpu={
                    **IN_QUEUE,
                    "pool": {"file": f"/lib/python3.11/{file}"},
                    "put": IN_QUEUE["get"],
                    "start": {"file": "/lib/python3.11/threading.py"},
                },
            ),
            "data_loader",
        )
        == []
    )


def test_data_loader_leaves_out_the_workers_of_a_trainer(tmp_path: Path) -> None:
    """Where a thread steps, no other process waits for data: not even a worker whose ranges are called so."""
    picture = """
    trainer/main     |[step      ][step      ][step      ][step      ]
    worker/main      |[load batch ]    [load batch ]    [load batch ]
    worker/main:os   |             (sem)            (sem)             (sem)
    """
    assert ask(ms(tmp_path, picture), "data_loader") == []
    launches = "trainer/main:api |(cudaLaunchKernel#1)\ngpu0.7 |(gemm#1)     (gemm )"
    assert (
        ask(ms(tmp_path / "b", picture.replace("[step      ]", "[epoch     ]") + launches), "data_loader")
        == []
    )


SAMPLED = """
main:python |(main;work  )(main;next;get   )(main;work  )(main;next;get   )(main;work  )(main;next;get   )(main;work  )
main:api    |    (cudaLaunchKernel#1)                (cudaLaunchKernel#2)            (cudaLaunchKernel#3)
gpu0.7      |      (gemm#1)                            (gemm#2)                          (gemm#3)
"""


@pytest.mark.parametrize(
    ("waits", "file"), [(True, "queue.py"), (False, "site-packages/torch/utils/data/dataloader.py")]
)
def test_data_loader_by_samples(tmp_path: Path, waits: bool, file: str) -> None:
    """Samples alone show it: off the CPU in a queue; on it where a DataLoader without workers loads by itself."""
    cpu: dict[str, dict[str, Any]] = {
        "next": {"function": "_Iter.__next__", "file": f"/lib/python3.11/{file}"},
        "get": {"file": "/lib/python3.11/queue.py"},
    }
    cpu["main;next;get"] = {"on_cpu": not waits}
    finding = one(ms(tmp_path, SAMPLED, cpu=cpu), "data_loader")
    assert (finding.subject, finding.occurrences, in_ms(finding)[0]) == ("main (app.py)", 3, 54)
    assert (
        ask(ms(tmp_path / "b", SAMPLED, cpu={"get": {"file": "/lib/python3.11/queue.py"}}), "data_loader")
        == []
    )  # it works there


def test_data_loader_beside_a_busy_gpu_costs_nothing(tmp_path: Path) -> None:
    launch = "main:api |(cudaLaunchKernel#1)\n"
    assert ask(ms(tmp_path, LOADER + launch + f"gpu0.7 |({'gemm#1'.ljust(96)})"), "data_loader") == []
    finding = one(
        ms(tmp_path / "b", LOADER + launch + f"gpu0.7 |{' ' * 30}(gemm#1){' ' * 30}(gemm )"), "data_loader"
    )
    assert in_ms(finding) == (54, 22)


def test_data_loader_that_is_late_once_is_a_start(tmp_path: Path) -> None:
    picture = """
    main   |[next batch                         ][step         ][next][step         ][next][step         ]
    """
    assert (
        ask(ms(tmp_path, picture, extra={"next": {"message": "next batch"}}), "data_loader", least=20) == []
    )


# --- first_iterations, late_imports -----------------------------------------------------------------------------------------------------

FIRST = """
main        |[step                         ][step  ][step  ][step  ][step  ][step  ]
main:import |  (torch._inductor        )
main:os     |                                   (read )
"""


def test_first_iterations_are_what_they_took_more(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, FIRST), "first_iterations")
    assert (finding.subject, in_ms(finding), finding.occurrences, finding.severity) == (
        "step",
        (23, 0),
        1,
        "low",
    )
    assert "import torch._inductor (25.0 ms)" in finding.cause
    assert "48 % above" in finding.title


@pytest.mark.parametrize(
    "picture",
    [
        "main |[step    ][step  ][step  ][step  ][step  ][step  ]",
        "main |[step                  ][step  ][step  ]",  # too few to say what is usual
        "main |[step  ][step  ][step              ][step  ][step  ][step  ]",
    ],
)
def test_first_iterations_like_the_others(tmp_path: Path, picture: str) -> None:
    assert ask(ms(tmp_path, picture), "first_iterations") == []


def test_late_imports_are_those_in_steps(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, FIRST + "main:import |    (inner )"), "late_imports")
    assert (finding.subject, in_ms(finding), finding.occurrences) == ("torch._inductor", (25, 25), 1)


def test_late_imports_before_the_steps_or_elsewhere_are_right(tmp_path: Path) -> None:
    before = """
    main        |                      [step     ][step     ]
    main:import |  (numpy         )
    other:import|                         (json )
    """
    assert ask(ms(tmp_path, before), "late_imports") == []


# --- nvtx_mistakes ----------------------------------------------------------------------------------------------------------------------


def test_nvtx_mistakes_never_popped(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, "main |  <step    <step    <step     [fine ]"), "nvtx_mistakes")
    assert (finding.subject, finding.occurrences, finding.bound, finding.severity) == (
        "unfinished step",
        3,
        None,
        "info",
    )


def test_nvtx_mistakes_an_open_range_at_the_end_is_none(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, "main |  <serve   [request ]\nother | <serve "), "nvtx_mistakes") == []
    cut_short = "windows |[start     ]\nmain |  <step    <step    <step     [fine ]"
    assert [finding.subject for finding in ask(drawn(tmp_path / "w", cut_short), "nvtx_mistakes")] == []


def test_nvtx_mistakes_crossing(tmp_path: Path) -> None:
    picture = """
    main   |[a   ]   [a   ]   [a   ]
    main@b |  [x    ]  [x    ]  [x    ]
    """
    finding = one(drawn(tmp_path, picture), "nvtx_mistakes")
    assert (finding.subject, finding.occurrences, finding.severity) == ("crossing ranges", 3, "info")
    assert "a" in finding.cause


def test_nvtx_mistakes_nesting_and_start_end_are_right(tmp_path: Path) -> None:
    picture = """
    main   |[a        ]   [a        ]   [a        ]
    main@b |  [x    ]       [x    ]       [x    ]
    main   |  {s             }{s            }{s            }
    other  |    [a        ]   [a        ]   [a        ]
    """
    assert ask(drawn(tmp_path, picture), "nvtx_mistakes") == []


def test_nvtx_mistakes_too_many_names(tmp_path: Path) -> None:
    picture = "main |" + "".join(f"[s{number} ]" for number in range(12))
    finding = one(drawn(tmp_path, picture), "nvtx_mistakes", names=10)
    assert (finding.subject, finding.occurrences) == ("names in the default domain", 12)
    assert (
        ask(drawn(tmp_path / "b", picture + picture.partition("|")[2] + "[s1 ]"), "nvtx_mistakes", names=10)
        == []
    )


# --- profiler_overhead ------------------------------------------------------------------------------------------------------------------


def test_profiler_overhead_of_many_rows(tmp_path: Path) -> None:
    picture = "main |" + "[s ]" * 50
    finding = one(drawn(tmp_path, picture, tick_ns=100), "profiler_overhead")
    assert (finding.subject, finding.occurrences, finding.bound) == ("rows of nvtx_ranges", 50, 50 * 60)
    assert ask(drawn(tmp_path / "b", picture, tick_ns=MS), "profiler_overhead") == []


def test_profiler_overhead_of_the_driver(tmp_path: Path) -> None:
    picture = """
    main          |[step                                  ]
    main:overhead |     (Buffer_flush      ) (Driver_compiler)
    """
    finding = one(drawn(tmp_path, picture), "profiler_overhead")
    assert (finding.subject, costs(finding)) == ("tracing of CUDA", (20, 20))


@pytest.mark.parametrize(
    "work",
    [
        "main |                                     [step ][step ][step ]",
        "gpu0.7 |                                   (gemm              )",
    ],
)
def test_profiler_overhead_before_the_work_is_a_remark(tmp_path: Path, work: str) -> None:
    picture = "main:overhead |     (Buffer_flush            )      (Resource)\n" + work
    finding = one(drawn(tmp_path, picture), "profiler_overhead")
    assert (finding.subject, finding.severity, finding.bound) == (
        "tracing of CUDA",
        "high",
        10 * US,
    )  # what lies in the work
    finding = one(drawn(tmp_path / "b", picture.replace("(Resource)", "")), "profiler_overhead")
    assert (finding.subject, finding.severity, finding.bound) == (
        "tracing of CUDA outside of the work",
        "info",
        None,
    )


def test_profiler_overhead_counts_rows_of_the_work(tmp_path: Path) -> None:
    """A million ranges before the first step cost no step."""
    before = "main |" + "[s ]" * 50 + " " * 400 + "[step" + " " * 395 + "][step]"
    assert ask(drawn(tmp_path, before, tick_ns=100), "profiler_overhead") == []
    assert (
        one(
            drawn(tmp_path / "b", before.replace("[step", "[work"), tick_ns=100), "profiler_overhead", least=1
        ).occurrences
        == 52
    )


def test_profiler_overhead_leaves_out_what_the_program_does_not_wait_for(tmp_path: Path) -> None:
    picture = """
    main          |[step                                  ]
    :overhead     |     (Buffer_flush      )
    """
    assert ask(drawn(tmp_path, picture), "profiler_overhead") == []
