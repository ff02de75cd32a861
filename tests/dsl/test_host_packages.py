"""Memory of real packages as buffers: torch, NumPy and JAX, on the host; kernels record into it, nothing of it is ours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dsl.compiled import PROGRAMS
from tests.dsl.languages import PATIENT, here
from tests.dsl.languages import answer as run_for_answer
from tests.support.optional_dependencies import LIBRARIES, find_library

pytestmark = [pytest.mark.require("g++", "numpy"), PATIENT]
BLOCKS, WARPS = 3, 2
EACH = ["inner"] * 4 + ["outer"]


def answer(library: str, case: str, **environment: str) -> Any:
    """What the program says of a case, where the library is."""
    found = find_library(LIBRARIES[library])
    assert found is not None
    return run_for_answer("", PROGRAMS / "host_packages.py", case, python=found[0], **environment)


def check(into: dict[str, Any]) -> None:
    """Every warp of every block has its regions, in the memory that was given."""
    assert into["same"] is True
    assert into["units"] == [[cta, warp, True, 5, 0] for cta in range(BLOCKS) for warp in range(WARPS)]
    assert [event[1] for event in into["events"]] == EACH * BLOCKS * WARPS
    assert [event[3] for event in into["events"]] == [cta for cta in range(BLOCKS) for _ in range(5 * WARPS)]
    assert into["dropped"] == into["lost"] == into["garbled"] == 0


def test_arrays_of_numpy() -> None:
    found = run_for_answer("", PROGRAMS / "host_packages.py", "numpy", python=here())
    check(found["into"])
    assert set(found["x"]) == {16.0}
    assert "read" in found["frozen"]
    assert "not contiguous" in found["steps"]


@pytest.mark.require("pytorch")
def test_tensors_of_torch() -> None:
    found = answer("pytorch", "torch")
    check(found["into"])
    assert found["made"] == ["torch.int64", "cpu", True]
    # Two slots were too few, and the larger buffer is of torch, too.
    assert found["grown"] == [5, 5 * BLOCKS * WARPS, 0, "Tensor"]
    assert set(found["x"]) == {16.0**3}
    assert "gradient" in found["gradient"] or "grad" in found["gradient"]
    assert "not contiguous" in found["steps"]
    assert "64 bytes" in found["small"]


@pytest.mark.require("jax")
def test_arrays_of_jax_are_nobodys_to_write() -> None:
    assert answer("jax", "jax", JAX_PLATFORMS="cpu")["refused"].startswith("JAX shares")


@pytest.mark.parametrize(
    "piece", [pytest.param(name, marks=pytest.mark.require(name)) for name in ("cupy", "cuda-bindings")]
)
def test_streams_of_packages_have_handles(piece: str) -> None:
    found = (
        answer(piece, "streams")
        if piece in LIBRARIES
        else run_for_answer(piece, PROGRAMS / "host_packages.py", "streams")
    )
    assert set(found) >= ({"cupy"} if piece == "cupy" else {"bindings", "core"})
    assert set(found.values()) == {1234}


@pytest.mark.require("pytorch")
def test_the_hosts_half_of_the_reference_designs_example() -> None:
    found = answer("pytorch", "nuggets")
    assert found["tensor"] == ["Tensor", "torch.int64"]
    assert sorted(found["events"]) == sorted(
        [tag, cta] for cta in range(BLOCKS) for tag in EACH
    )  # of warp 0, as there
    assert found["same"] is True
    assert found["overflow"] == 0
    assert found["shown"] == sorted(EACH * BLOCKS)
    assert found["old"] == [["outer", 1_000, 500, 7], ["inner", 1_600, 300, 7]]
    assert set(found["output"]) == {16.0}


@pytest.mark.require("pytorch")
def test_the_benchmark_of_attention_agrees_with_torch() -> None:
    said = answer("pytorch", "attention", TRITON_INTERPRET="1")
    if said is None:
        pytest.skip("where torch is there is no triton")
    assert said["what"] == "attention in Triton with 8 regions per tile"
    assert said["note"].endswith("16 regions a launch")
