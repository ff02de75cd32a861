"""The reference design's names in CuTe DSL: its kernels compile with a changed import, and claim a unit once per launch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dsl.compiled import ARCHITECTURES, NEWEST, RELEASES
from tests.dsl.languages import PATIENT, releases, run
from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.require("cutlass-dsl"), PATIENT]
EVERYWHERE = [
    pytest.param(release, arch, marks=() if (release, arch) == (NEWEST, "sm_90a") else pytest.mark.exhaustive)
    for release in RELEASES
    for arch in ARCHITECTURES
]
PROGRAM = ROOT / "tests" / "dsl" / "programs" / "cute_nuggets.py"
RECORD, CLAIM = "@p st.global.cs.v4.u32", "atom.global.add.u32"


@pytest.mark.parametrize(("release", "arch"), EVERYWHERE)
def test_kernels_of_the_reference_design_compile(tmp_path: Path, release: str, arch: str) -> None:
    python = releases("cutlass-dsl").get(release)
    if python is None:
        pytest.skip(f"no environment has nvidia-cutlass-dsl {release} (tools/dsl.py all)")
    said = run("cutlass-dsl", PROGRAM, tmp_path, python=python, CUTE_DSL_ARCH=arch).stdout
    assert "is a parameter of the kernel" in said
    ptx = {path.stem: path.read_text() for path in tmp_path.glob("*.ptx")}
    timer = "%globaltimer_lo" if arch != "sm_80" else "%clock;"
    # (records, units): the example's loop has four passes and is unrolled; two kinds of threads record in `loops`, three in `warps`.
    expected = {"example": (5, 1), "limitation": (1, 1), "loops": (2, 2), "warps": (3, 3)}
    if arch != "sm_80":
        expected["elected"] = (2, 1)
    assert ptx.keys() == expected.keys()
    elections = {name: text.count("elect.sync") for name, text in ptx.items() if "elect.sync" in text}
    # Once where the kernel begins; `elected` has one of its own. Before Hopper lane 0 does it.
    assert elections == ({} if arch == "sm_80" else {"loops": 1, "elected": 2})
    for name, (records, units) in expected.items():
        text = ptx[name]
        assert text.count(RECORD) == records, name
        assert text.count(timer) == 2 * records, name
        assert text.count(CLAIM) == units, name
        assert not re.search(r"\batom\.(?!global\.add\.u32)|\bred\.|\.local\b|\bcall\b", text), name
        # Claimed where the kernel begins: before any loop and any branch of its own.
        label = re.search(r"^\$L__BB", text, re.MULTILINE)
        assert label is None or text.rindex(CLAIM) < label.start(), name
