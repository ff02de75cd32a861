"""The Numba-CUDA kernels that `benchmarks/intrakernel_numba.py` times on a GPU, compiled for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dsl.compiled import PROGRAMS
from tests.dsl.languages import PATIENT, answer, run

pytestmark = [pytest.mark.require("numba-cuda"), PATIENT]


def test_the_kernels_of_the_benchmark_compile_for_a_gpu(tmp_path: Path) -> None:
    run("numba-cuda", PROGRAMS / "numba_benchmark.py", tmp_path, "90")
    found = {path.stem: path.read_text() for path in tmp_path.glob("*.ptx")}
    for name in ("loop", "payload"):
        assert found[name].count("%globaltimer_lo") == 2 * found[name].count("st.global.cs.v4.u32") > 0
    assert "%globaltimer" not in found["off"]
    # Copies of the loop's body, each with an event.
    assert found["reference"].count("%globaltimer") == 2 * found["reference"].count("atom.global.add.u64") > 0


@pytest.mark.require("numpy")
def test_the_benchmark_itself_runs() -> None:
    """All but the device, and its figures, is what it is on a GPU."""
    rows = answer("numba-cuda", PROGRAMS / "numba_benchmark.py", "timed", NUMBA_ENABLE_CUDASIM="1")
    loops = ["a region", "a region with payload and generation", "a region into a ring in shared memory"]
    assert [row["what"] for row in rows] == [f"Numba-CUDA: {what}" for what in loops]
    assert [row["budget"] for row in rows] == [40, None, None]
