"""The CuTe DSL kernels that `benchmarks/intrakernel_cute.py` times on a GPU, compiled to files that travel there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.dsl.languages import PATIENT, run
from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.require("cutlass-dsl"), PATIENT]
# of each case of the loop: stamps, and stores of records
LOOPS = {
    "nothing": (0, 0),
    "a region": (2, 1),
    "a region with payload and generation": (2, 1),
    "a region into a ring in shared memory": (2, 0),
}


@pytest.mark.parametrize("arch", ["sm_90a", pytest.param("sm_100a", marks=pytest.mark.exhaustive)])
def test_the_kernels_compile_into_files_that_a_launch_can_load(tmp_path: Path, arch: str) -> None:
    run("cutlass-dsl", ROOT / "benchmarks" / "_intrakernel_cute_kernels.py", tmp_path, CUTE_DSL_ARCH=arch)
    entries = json.loads((tmp_path / "cost.json").read_text())
    for entry in entries.values():
        assert entry["parameters"] == [8, 4, 8]
        assert (tmp_path / entry["file"]).read_bytes().startswith(b"\x7fELF")
    texts = {
        name: (tmp_path / entry["file"]).with_suffix(".ptx").read_text() for name, entry in entries.items()
    }
    for name, (stamps, stores) in LOOPS.items():
        assert len(re.findall(r"%globaltimer_lo;", texts[name])) == stamps, name
        assert texts[name].count("@p st.global.cs.v4.u32") == stores, name
    reference = texts["an event of the reference design"]
    assert reference.count("atom.global.add.u64") == 1
    assert reference.count("st.global.u64") == 4
