"""The Triton kernels that `benchmarks/intrakernel_triton.py` times on a GPU: compiled for GPUs, attention run in the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dsl.compiled import PROGRAMS
from tests.dsl.languages import PATIENT, answer, run

pytestmark = [pytest.mark.require("triton"), PATIENT]
PROGRAM = PROGRAMS / "triton_benchmark.py"
TAGS = ["keys", "scores", "maximum", "weights", "rescale", "sums", "values", "product"]


@pytest.mark.parametrize("capability", ["90", pytest.param("80", marks=pytest.mark.exhaustive)])
def test_the_kernels_of_the_benchmark_compile_for_a_gpu(tmp_path: Path, capability: str) -> None:
    run("triton", PROGRAM, tmp_path, capability, TRITON_CACHE_DIR=str(tmp_path / "cache"))
    found = {path.stem: path.read_text() for path in tmp_path.glob("*.ptx")}
    assert found["loop"].count("%globaltimer_lo") == found["payload"].count("%globaltimer_lo") == 2
    assert found["reference"].count("atom.global.add.u64") == 1
    assert found["reference"].count("%globaltimer") == 2
    assert "globaltimer" not in found["scoped"]
    # Eight regions for each tile, and the compiler still loads tiles ahead of those that are worked on.
    assert found["attention"].count("%globaltimer_lo") == 2 * len(TAGS)
    for what in ("cp.async", "wgmma.mma" if capability == "90" else "mma.sync"):
        assert found["attention"].count(what) == found["attention_off"].count(what) > 0


@pytest.mark.require("numpy")
def test_attention_is_right_and_has_eight_regions_per_tile() -> None:
    found = answer("triton", PROGRAM, "attention", TRITON_INTERPRET="1")
    assert found["wrong"] < 1e-4
    assert [unit[3:] for unit in found["units"]] == [[8 * 4, 0]] * 4
    assert [event[1] for event in found["events"]] == 4 * 4 * TAGS
    assert [event[3] for event in found["events"]] == [
        16 * tile for _ in range(4) for tile in range(4) for _ in TAGS
    ]


@pytest.mark.require("numpy")
@pytest.mark.exhaustive  # 18 s; the kernels are compiled below
def test_the_benchmark_itself_runs() -> None:
    """All but the device and PyTorch, and its figures, is what it is on a GPU."""
    rows = answer("triton", PROGRAM, "timed", TRITON_INTERPRET="1")
    loops = [
        "a region",
        "a region with payload and generation",
        "a region into a ring in shared memory",
        "a region",
    ]
    assert [row["what"] for row in rows] == [f"Triton: {what}" for what in loops] + [
        "attention in Triton with 8 regions per tile"
    ]
    assert [row["budget"] for row in rows] == [40, None, None, None, 1.02]
    assert rows[3]["note"].startswith("Proton did not run")
    assert "128 regions a launch" in rows[4]["note"]
