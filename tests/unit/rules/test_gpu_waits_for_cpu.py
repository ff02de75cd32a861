"""`gpu_waits_for_cpu` on drawn timelines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import ORIGIN, US, ask, drawn, not_judged
from tests.unit.rules.test_host_rules import MS, NOTHING, WORK, in_ms, ms

LATE = """
main     |          [preprocess                          ]
main:gc  |                   (2        )
main:api |(cuLaunchKernel#1)                               (cuLaunchKernel#2)
gpu0.7   |     (gemm#1    )                                      (gemm#2 )
"""


def test_gpu_waits_for_cpu_says_for_what(tmp_path: Path) -> None:
    found = ask(ms(tmp_path, LATE), "gpu_waits_for_cpu", least=1)
    by_subject = {finding.subject: in_ms(finding) for finding in found}
    assert by_subject == {
        # priced by the graph: without the range, calls in it included, or without all of these calls
        "NVTX range preprocess": (38, 38),
        "GC pause generation 2": (11, 11),
        "CUDA API call cuLaunchKernel": (36, 21),
        "unknown": (1, 1),
    }
    assert all(
        row.start >= ORIGIN + 17 * MS and row.end <= ORIGIN + 53 * MS
        for finding in found
        for row in finding.evidence
    )


def test_gpu_waits_for_cpu_of_two_gpus_at_once_count_once(tmp_path: Path) -> None:
    two = (
        LATE
        + "main:api |                    \ngpu1.7   |     (gemm#1    )                                       (gemm#2 )\n"
    )
    found = ask(ms(tmp_path, two), "gpu_waits_for_cpu")
    assert {finding.subject: in_ms(finding)[1] for finding in found}["NVTX range preprocess"] == 38


def test_gpu_waits_for_cpu_puts_together_what_takes_little(tmp_path: Path) -> None:
    ops = """
    main@pytorch |              [aten::add      ][aten::mul      ][aten::sub     ]
    main:api     |(cuLaunchKernel#1)                                             (cuLaunchKernel#2)
    gpu0.7       |     (gemm#1    )                                                    (gemm#2 )
    """
    found = ask(ms(tmp_path, ops), "gpu_waits_for_cpu", least=25)
    assert [(finding.subject, finding.estimate // MS) for finding in found if finding.estimate] == [
        ("places, most in aten::mul", 46)
    ]
    assert "in aten::mul" in found[0].evidence[0].text
    assert found[0].title.startswith("GPUs waited 46.0 ms for the host in 4 places, most in aten::mul (")


def test_gpu_waits_for_cpu_takes_modules_with_numbers_for_one_thing(tmp_path: Path) -> None:
    modules = """
    main     |            [block.0      ][block.1      ][block.2       ]
    main:api |(cuLaunchKernel#1)                                          (cuLaunchKernel#2)
    gpu0.7   |     (gemm#1    )                                                 (gemm#2 )
    """
    found = ask(ms(tmp_path, modules), "gpu_waits_for_cpu")
    assert [finding.subject for finding in found if (finding.estimate or 0) > 20 * MS] == [
        "NVTX range block.#"
    ]


def test_gpu_waits_for_cpu_takes_nothing_away_that_launches(tmp_path: Path) -> None:
    launches = "  (cuLaunchKernel#1)                     (cuLaunchKernel#2)"
    inside = f"""
    main@pytorch |[backward                                                  ]
    main:api     |{launches}
    gpu0.7       |       (gemm#1      )                          (gemm#2 )
    """
    (finding,) = [
        finding
        for finding in ask(ms(tmp_path, inside), "gpu_waits_for_cpu")
        if finding.subject == "framework op backward"
    ]
    assert finding.claim is not None
    assert finding.without is not None
    assert finding.without.time.total == finding.claim.total  # the gap, not the 60 ms of the operation
    assert "CUDA graphs" in finding.fix
    assert finding.fix.startswith("It launches the GPU's work itself.")
    before = inside.replace(
        "[backward                                                  ]", " " * 22 + "[backward        ]"
    )
    (finding,) = [
        finding
        for finding in ask(ms(tmp_path / "before", before), "gpu_waits_for_cpu")
        if finding.subject == "framework op backward"
    ]
    assert finding.without is not None
    assert finding.without.time.total == 18 * MS  # all of it
    assert "It launches" not in finding.fix


def test_gpu_waits_for_cpu_names_launches_that_load_a_kernel(tmp_path: Path) -> None:
    loads = """
    main:api |(cuLaunchKernel#1)(cuLaunchKernel#2                         )
    gpu0.7   |     (gemm#1    )                                          (gelu#2 )
    """
    (finding,) = ask(drawn(tmp_path, loads, tick_ns=5 * MS), "gpu_waits_for_cpu", least=10)
    assert finding.subject == "CUDA API call cuLaunchKernel"
    assert 80 <= in_ms(finding)[1] <= in_ms(finding)[0] == 47 * 5  # both calls
    assert ask(ms(tmp_path / "ms", loads), "gpu_waits_for_cpu", least=10) == []


@pytest.mark.parametrize("launches", [False, True])
def test_gpu_waits_for_cpu_prices_functions_by_their_calls(tmp_path: Path, launches: bool) -> None:
    """Without samples the calls of Python say when a function ran."""
    calls = "(cuLaunchKernel#1)                             (cuLaunchKernel#2)"
    function = "(run" + " " * 61 + ")" if launches else " " * 24 + "(run            )"
    picture = f"""
    main:call |{function}
    main:api  |{calls}
    gpu0.7    |       (gemm#1      )                             (gemm#2 )
    """
    cpu = {"run": {"file": "/x/cov463qhi2m2kw6ldmzzijfv5t3cjjklfci3qly3nsw6upcskct3.py"}}
    (finding,) = [
        finding
        for finding in ask(ms(tmp_path, picture, cpu=cpu), "gpu_waits_for_cpu")
        if finding.subject.startswith("Python function run (cov")
    ]
    assert finding.estimate is not None
    assert finding.estimate > 10 * MS
    assert ("CUDA graphs" in finding.fix) == launches


def test_gpu_waits_for_cpu_is_silent_where_the_host_is_ahead(tmp_path: Path) -> None:
    ahead = """
    main:api |(cuLaunchKernel#1)(cuLaunchKernel#2)
    gpu0.7   |       (gemm#1                        )  (gemm#2 )
    """
    assert ask(ms(tmp_path, ahead), "gpu_waits_for_cpu") == []


def test_gpu_waits_for_cpu_needs_calls(tmp_path: Path) -> None:
    assert not_judged(drawn(tmp_path, NOTHING), "gpu_waits_for_cpu") == "does not contain CUDA API data."
    assert (
        not_judged(drawn(tmp_path / "b", WORK), "gpu_waits_for_cpu")
        == "does not contain CUDA kernel or GPU memory data."
    )
    assert US == 1000
