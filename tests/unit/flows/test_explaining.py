"""What explains the difference of two runs: parts with names, the largest first, which add up to the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

import warplens
from warplens.flows.differing import Difference, diff
from warplens.flows.explaining import DifferencePart, Explanation
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow

TICK = 1_000


def compared(folder: Path, before: str, after: str, **more: str) -> Difference:
    for name, picture in (("a", before), ("b", after)):
        timeline(folder / f"{name}.warplens", picture)
    return diff(
        warplens.open(folder / "a.warplens"), warplens.open(folder / "b.warplens"), steps=more.get("steps")
    )


def explained(difference: Difference) -> Explanation:
    """Return the explanation; its parts add up on both sides."""
    whole = difference.explained
    assert whole is not None
    assert sum(part.before for part in whole.parts) == pytest.approx(whole.before)
    assert sum(part.after for part in whole.parts) == pytest.approx(whole.after)
    assert sum(part.delta for part in whole.parts) == pytest.approx(whole.delta)
    return whole


def named(whole: Explanation) -> dict[tuple[str, str], DifferencePart]:
    return {(part.kind, part.name): part for part in whole.parts}


STEP = """
main:api |(cudaLaunchKernel#1)      (cudaLaunchKernel#2)
main     |[step                   ] [step              ]
gpu0.7   |   (gemm#1        )          (gemm#2  )
"""


def test_a_longer_kernel_explains_a_longer_step(tmp_path: Path) -> None:
    longer = STEP.replace("(gemm#2  )", "(gemm#2                   )").replace(
        "[step              ]", "[step" + " " * 31 + "]"
    )
    whole = explained(compared(tmp_path, STEP, longer))
    assert (whole.per, whole.where) == ("step", "GPU 0")
    first = whole.parts[0]
    assert (first.kind, first.name) == ("kernel", "gemm")
    assert first.delta == 17 * TICK / 2
    assert whole.delta == pytest.approx(17 * TICK / 2)


def test_the_activity_of_the_host_explains_a_gpu_that_waited(tmp_path: Path) -> None:
    late = """
main:api |(cudaLaunchKernel#1)                                   (cudaLaunchKernel#2)
main     |[step                                                ] [step              ]
main     |                         [load                      ]
gpu0.7   |   (gemm#1        )                                       (gemm#2  )
"""
    whole = explained(compared(tmp_path, STEP, late))
    assert (whole.parts[0].kind, whole.parts[0].name) == ("NVTX range", "load")
    assert whole.parts[0].delta == 28 * TICK / 2


RUN = """
main        |[work                              ]
main:python |(main;load;read )(main;compute     )
main:state  |(running:1 )(blocked:poll )(running)
main:gc     |    (2  )
"""


def test_a_run_without_a_gpu_is_that_of_its_thread(tmp_path: Path) -> None:
    whole = explained(compared(tmp_path, RUN, RUN.replace("(2  )", "(2      )")))
    assert whole.per == "run"
    assert whole.where == "thread main"
    collected = named(whole)["GC pause", ""]
    assert collected.delta == 4 * TICK
    assert whole.delta == 0
    assert abs(whole.parts[0].delta) == 4 * TICK


def test_waits_are_apart_from_work_and_say_for_what(tmp_path: Path) -> None:
    before = """
main:python |(main;wait                              )(main;compute )
main:state  |(blocked:futex                          )(running:1    )
"""
    after = """
main:python |(main;wait )(main;compute )
main:state  |(blocked:f )(running:1    )
"""
    cpu = {"wait": {"file": "/usr/lib/python3.12/threading.py"}, "main": {"file": "/app/run.py"}}
    for name, picture in (("a", before), ("b", after)):
        timeline(tmp_path / f"{name}.warplens", picture, cpu=cpu)
    whole = explained(diff(*(warplens.open(tmp_path / f"{name}.warplens") for name in "ab")))
    assert (whole.parts[0].kind, whole.parts[0].name) == ("waiting", "for other threads")
    assert whole.parts[0].delta == whole.delta == -29 * TICK
    assert "main (run.py), in threading" in whole.parts[0].detail


def test_time_that_one_recording_could_not_see_did_not_appear(tmp_path: Path) -> None:
    with_calls = RUN + "main:os     |                   (poll    )\n"
    difference = compared(tmp_path, RUN, with_calls)
    whole = explained(difference)
    call = named(whole).get(("OS call", "poll"))
    assert call is None or call.lacks == "before"
    assert any(note.startswith("OS call: not recorded before") for note in whole.notes)
    (change,) = difference.of("os")
    assert change.status == "not recorded before"


def test_a_thread_that_waits_for_work_is_no_change(tmp_path: Path) -> None:
    idle = "main |[work    ]\nmain:os |(read:/a )\nw:os |(futex  )"
    difference = compared(tmp_path, idle, idle.replace("(futex  )", "(futex                       )"))
    assert [change.name for change in difference.of("os")] == ["read"]


def test_figures_of_the_run_come_first(tmp_path: Path) -> None:
    facts = {fact.name: fact for fact in compared(tmp_path, STEP, STEP).run}
    assert next(iter(facts)) == "wall time"
    assert (facts["iterations"].before, facts["iterations"].after) == (2, 2)
    assert facts["one iteration"].unit == "ns"
    assert "CPU time" not in facts  # nobody noted it


def test_requests_are_counted(tmp_path: Path) -> None:
    served = "main |[request 1 ][request 2 ]"
    facts = {fact.name: fact for fact in compared(tmp_path, served, served + "[request 3 ]").run}
    assert (facts["requests"].before, facts["requests"].after) == (2, 3)


def test_named_ranges_are_the_unit_where_they_are_asked_for(tmp_path: Path) -> None:
    picture = "main |[epoch 1 ][epoch 2 ]"
    whole = explained(
        compared(tmp_path, picture, picture.replace("epoch 2 ", "epoch 2       "), steps="epoch")
    )
    assert (whole.per, whole.delta) == ("epoch", 3 * TICK)


def test_repeats_are_averaged(tmp_path: Path) -> None:
    for number, length in enumerate((10, 20, 15)):
        timeline(tmp_path / f"{number}.warplens", f"main |[step{' ' * length}][step{' ' * length}]")
    one, two, three = (warplens.open(tmp_path / f"{number}.warplens") for number in range(3))
    whole = explained(diff([one, two], three))
    assert whole.delta == 0


def many(lengths: str, host: str = "") -> str:
    """Return a step of ten kernels, `gemm_0` to `relu_4`, as many characters long as the digits say."""
    kernels = "".join(
        f"({'gemm' if place < 5 else 'relu'}_{place % 5}#{place + 1}{' ' * int(length)})"
        for place, length in enumerate(lengths)
    )
    calls = "".join(f"(cudaLaunchKernel#{place + 1})" for place in range(10))
    return f"main:api |{calls}\nmain     |[step{' ' * 300}]\ngpu0.7   | {kernels}\n{host}"


def test_many_small_changes_are_grouped_by_class_and_name_their_largest(tmp_path: Path) -> None:
    whole = explained(compared(tmp_path, many("1111111111"), many("3332222212")))
    parts = named(whole)
    gemm = parts["kernel", "5 of gemm"]
    assert (gemm.delta, gemm.detail) == (8 * TICK, "most in gemm_0")
    assert "kernel" not in {part.kind for part in whole.parts if part.name == "gemm_1"}


def test_the_others_name_their_largest_part(tmp_path: Path) -> None:
    whole = explained(compared(tmp_path, many("1111111111"), many("1111111112")))
    last = whole.parts[-1]
    assert (last.kind, last.name.endswith(" others"), last.detail[:8]) == ("", True, "most in ")


def test_modules_that_differ_in_numbers_alone_are_one_group(tmp_path: Path) -> None:
    def run(lengths: str) -> str:
        ranges = "".join(f"[block.{place}.norm{' ' * int(length)}]" for place, length in enumerate(lengths))
        return f"main |[step{' ' * 480}]\nmain |     {ranges}"

    parts = named(explained(compared(tmp_path, run("1111111111"), run("3333333333"))))
    assert parts["NVTX range", "10 of block.#.norm"].delta == 20 * TICK
