"""What `diff` says of recordings whose difference is known: planted changes are told, noise is not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import warplens
from warplens.errors import UsageError
from warplens.flows.differing import Difference, by_position, diff
from warplens.flows.gating import Condition
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


Lengths = dict[str, list[int]]


def recorded(path: Path, lengths: Lengths, steps: int, name: str = "step") -> warplens.Report:
    """Record steps that launch each kernel once, for `lengths` ticks in each step; a step is as long as its kernels."""
    rows: dict[str, list[str]] = {"main": [], "main:api": [], "gpu0.7": []}
    for step in range(steps):
        api, gpu = "(cudaLaunchKernel#", ""
        kernels = [
            f"({kernel}#{step}{index}".ljust(own[step] - 1) + ")"
            for index, (kernel, own) in enumerate(lengths.items())
        ]
        calls = [f"(cudaLaunchKernel#{step}{index})" for index in range(len(kernels))]
        api, gpu = "".join(calls), "".join(kernels)
        length = max(len(api), len(gpu)) + 4
        rows["main"].append(f"[{name}".ljust(length - 1) + "]")
        rows["main:api"].append((" " + api).ljust(length))
        rows["gpu0.7"].append(("  " + gpu).ljust(length))
    timeline(path, "\n".join(f"{row} |{''.join(parts)}" for row, parts in rows.items()))
    return warplens.open(path)


def constant(gemm: int = 40, copy: int = 30, steps: int = 6) -> Lengths:
    return {"gemm": [gemm] * steps, "copy": [copy] * steps}


def compared(folder: Path, first: Lengths, second: Lengths, steps: int = 6) -> Difference:
    return diff(recorded(folder / "a.warplens", first, steps), recorded(folder / "b.warplens", second, steps))


def test_a_slower_kernel_is_told_per_step(tmp_path: Path) -> None:
    found = compared(tmp_path, constant(), constant(gemm=50))
    assert (found.per, found.steps) == ("step", (6, 6))
    gemm, copy = found.of("kernel")
    assert (gemm.name, gemm.status, gemm.delta) == ("gemm", "changed", 10_000)
    assert gemm.relative == pytest.approx(0.25)
    assert gemm.before is not None
    assert (gemm.before.count, gemm.before.time) == (1, 40_000)
    assert (copy.name, copy.status, copy.delta) == ("copy", "same", 0)
    (step,) = found.of("step")
    assert (step.status, step.name) == ("changed", "step")
    assert {change.name for change in found.of("gpu")} == {"GPU 0 busy", "GPU 0 idle"}


def test_noise_is_not_a_change_but_more_than_noise_is(tmp_path: Path) -> None:
    chance = random.Random(7)

    def noisy(middle: int) -> Lengths:
        return {"gemm": [middle + chance.randint(-12, 12) for _ in range(40)]}

    same = compared(tmp_path / "1", noisy(60), noisy(60), 40)
    slower = compared(tmp_path / "2", noisy(60), noisy(90), 40)
    (noise,), (change,) = same.of("kernel"), slower.of("kernel")
    assert noise.noise is not None
    assert noise.noise > 0
    assert noise.status == "same"
    assert change.status == "changed"
    assert change.delta == pytest.approx(30_000, abs=change.noise or 0)


def test_kernels_come_go_and_are_renamed(tmp_path: Path) -> None:
    first = {"gemm<128>": [40] * 4, "old": [20] * 4}
    second = {"new": [20] * 2 + [25] * 2, "gemm<256>": [30] * 4}
    found = {change.name: change for change in compared(tmp_path, first, second, 4).of("kernel")}
    assert found["gemm<128>"].status == "renamed"
    assert found["gemm<128>"].after_name == "gemm<256>"
    assert found["gemm<128>"].delta == -10_000
    assert {name: change.status for name, change in found.items()} == {
        "gemm<128>": "renamed",
        "old": "removed",
        "new": "added",
    }


def test_a_kernel_in_the_place_of_another_is_renamed(tmp_path: Path) -> None:
    steady = {"embed": [20] * 4, "norm": [20] * 4}
    first = {**steady, "ampere_sgemm": [40] * 4, "softmax": [20] * 4, "old_tail<2>": [20] * 4}
    second = {**steady, "sm90_xmma": [30] * 4, "softmax": [20] * 4, "old_tail<3>": [20] * 4}
    found = {change.name: change for change in compared(tmp_path, first, second, 4).of("kernel")}
    assert (found["ampere_sgemm"].status, found["ampere_sgemm"].after_name, found["ampere_sgemm"].delta) == (
        "renamed",
        "sm90_xmma",
        -10_000,
    )
    assert found["old_tail<2>"].after_name == "old_tail<3>"
    assert len(found) == 5


@pytest.mark.parametrize(
    ("before", "after", "became"),
    [
        ("abcabd", "axcaxd", {"b": "x"}),
        ("abcabd", "axcayd", {}),  # once this, once that
        ("abcadc", "axcaxc", {}),  # two became one
        ("abc", "axyc", {}),  # nobody knows which
        ("abc", "xyz", {}),
        ("abcd", "axyd", {"b": "x", "c": "y"}),
        ("", "", {}),
    ],
)
def test_places_say_what_became_of_a_name(before: str, after: str, became: dict[str, str]) -> None:
    assert by_position(before, after) == became


def test_without_steps_whole_runs_are_compared_and_it_is_said(tmp_path: Path) -> None:
    first = recorded(tmp_path / "a.warplens", constant(), 6, name="work")
    second = recorded(tmp_path / "b.warplens", constant(steps=5), 5, name="work")
    found = diff(first, second)
    assert found.per == "run"
    assert any("--steps NAME" in note for note in found.notes)
    assert {change.name: change.delta for change in found.of("kernel")} == {"gemm": -40_000, "copy": -30_000}
    named = diff(first, second, steps="work")
    assert (named.per, named.steps) == ("step", (6, 5))
    assert {change.status for change in named.of("kernel")} == {"same"}
    with pytest.raises(warplens.MissingData):
        diff(first, second, steps="nothing")


def test_repeats_of_the_whole_run_say_how_steady_it_is(tmp_path: Path) -> None:
    first = [recorded(tmp_path / f"a{n}.warplens", constant(gemm=gemm), 6) for n, gemm in enumerate((40, 60))]
    second = recorded(tmp_path / "b.warplens", constant(gemm=55), 6)
    change = next(change for change in diff(first, second).of("kernel") if change.name == "gemm")
    assert change.before is not None
    assert (change.before.time, change.delta, change.status) == (50_000, 5_000, "same")
    assert change.noise == pytest.approx(3 * 10_000)


def test_numbers_behind_names_are_one_name(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b")):
        timeline(tmp_path / f"{name}.warplens", f"main |[epoch{number}1 ][epoch{number}2 ]")
    found = diff(*(warplens.open(tmp_path / f"{name}.warplens") for name in "ab"))
    assert [(change.name, change.status) for change in found.of("range")] == [(":epoch#", "same")]


CONDITIONS = [
    ("step.p50 > +5%", True, True),
    ("step.p50 > +50%", False, True),
    ("step[step].mean >= 1us", True, True),
    ("kernel[g*].time > +5us", True, True),
    ("kernel[g*].time > +11us", False, True),
    ("kernel.time > 85us", False, True),
    ("kernel.time >= 80us", True, True),
    ("kernel[copy].time < -1ns", False, True),
    ("kernel[gemm].count > 1", False, True),
    ("finding.appeared > 100", False, True),
    ("os[poll].time > +1ms", False, False),
]


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Difference:
    return compared(tmp_path_factory.mktemp("slower"), constant(), constant(gemm=50))


@pytest.mark.parametrize(("text", "met", "judged"), CONDITIONS)
def test_conditions(slower: Difference, text: str, met: bool, judged: bool) -> None:
    verdict = Condition.parse(text).judge(slower)
    assert (verdict.met, verdict.judged) == (met, judged), verdict.told


def test_a_change_within_the_noise_does_not_fail_a_run(tmp_path: Path) -> None:
    found = compared(tmp_path, {"gemm": [30, 70, 40, 60, 35, 65]}, {"gemm": [40, 70, 40, 65, 35, 70]})
    verdict = Condition.parse("kernel[gemm].time > +2%").judge(found)
    assert not verdict.met
    assert verdict.told.endswith("within the noise")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("step > 5%", "is not a condition"),
        ("stop.p50 > 5%", "there is no kind 'stop'"),
        ("step.p51 > 5%", "step has no value 'p51'"),
        ("step.p50 > 5", "a time needs its unit"),
        ("step.p50 > much%", "is not a number"),
        ("finding.p50 > 1", "finding has no value"),
    ],
)
def test_a_wrong_condition_is_explained(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Condition.parse(text)
