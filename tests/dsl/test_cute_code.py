"""Regions in CuTe DSL, compiled here: they fit every shape of control flow, on every supported release."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.dsl.compiled import ARCHITECTURES, NEWEST, RELEASES, cute
from tests.dsl.languages import PATIENT, releases, run
from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.require("cutlass-dsl"), PATIENT]
EVERYWHERE = [
    pytest.param(release, arch, marks=() if (release, arch) == (NEWEST, "sm_90a") else pytest.mark.exhaustive)
    for release in RELEASES
    for arch in ARCHITECTURES
]


def _records() -> dict[str, tuple[int, int]]:
    """RECORDS of cute_kernels.py, which imports what is not installed here."""
    tree = ast.parse((ROOT / "tests" / "dsl" / "programs" / "cute_kernels.py").read_text())
    (found,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RECORDS"
    ]
    return dict(ast.literal_eval(found))


RECORDS = _records()


@pytest.mark.parametrize(("release", "arch"), EVERYWHERE)
def test_every_control_flow_on_every_release(tmp_path: Path, release: str, arch: str) -> None:
    if release not in releases("cutlass-dsl"):
        pytest.skip(f"no environment has nvidia-cutlass-dsl {release} (tools/dsl.py all)")
    names = [name for name in RECORDS if name != "elect" or arch != "sm_80"]  # elect_one itself is for sm_90
    codes = cute(tmp_path, arch, *((name, {"clock": "globaltimer"}) for name in names), release=release)
    for name, code in zip(names, codes, strict=True):
        assert f".target {arch}" in code.ptx
        regions, marks = RECORDS[name]
        stores = code.ptx.count("@p st.global.cs.v4.u32")
        # `while` has no wish for its unrolling.
        assert stores % regions == 0 if name == "while_loop" else stores == regions + marks, name
        assert stores == code.ptx.count("st.global.cs"), name
        assert code.ptx.count("%globaltimer_lo") == 2 * stores - marks, name
        assert not re.search(r"\batom|\bred\.|\.local\b|\bcall\b", code.ptx), name


def test_modes_clocks_and_samples_are_what_they_say(tmp_path: Path) -> None:
    cycles, claim, ring, some, plain, larger, off, bare = cute(
        tmp_path,
        "sm_90a",
        ("loop", {"clock": "clock"}),
        ("loop", {"mode": "claim"}),
        ("loop", {"mode": "smem", "slots": 256}),
        ("loop", {"warps": [0, 2], "sample_blocks": 4}),
        ("loop", {}),
        ("loop", {"slots": 4096, "grid": 64}),
        ("nested", {"enabled": False}),
        ("bare:nested", {}),
    )
    assert cycles.ptx.count("%clock;") == 2
    assert "%globaltimer_lo" not in cycles.ptx
    assert len(re.findall(r"\batom\.global", claim.ptx)) == 1
    assert f".b8 wl_rings[{4 * 256 * 8}]" in ring.ptx
    assert "activemask" in ring.ptx
    for text in ("popc.b32", "rem.u32 x, cta, 4"):
        assert text in some.ptx
        assert text not in plain.ptx
    assert larger.ptx == plain.ptx, "a larger buffer needs no new kernel"
    assert off.ptx == bare.ptx
    assert off.cubin.read_bytes() == bare.cubin.read_bytes()


WRONG = """
import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from warplens import errors
from warplens.intrakernel import allocate
from warplens.intrakernel.dsl.cute import bind, finish, mark, profiler

@cute.kernel
def kernel(out: cute.Tensor, prof, tag: cutlass.Constexpr, payload: cutlass.Constexpr):
    p = profiler(prof)
    mark(p, tag, payload=payload)
    finish(p)

@cute.kernel
def unbegun(out: cute.Tensor, prof):
    mark(prof, "load")

@cute.kernel
def begun_often(out: cute.Tensor, prof):
    for i in cutlass.range(8, unroll=1):
        p = profiler(prof)
        mark(p, "load")
        finish(p)

@cute.jit
def other_host(out: cute.Tensor, prof, kernel: cutlass.Constexpr):
    kernel(out, prof).launch(grid=(1, 1, 1), block=(32, 1, 1))

@cute.jit
def host(out: cute.Tensor, prof, tag: cutlass.Constexpr, payload: cutlass.Constexpr):
    kernel(out, prof, tag, payload).launch(grid=(1, 1, 1), block=(32, 1, 1))

from cutlass.cute.runtime import make_fake_compact_tensor
out = make_fake_compact_tensor(Float32, (32,))
prof, ring = (bind(allocate(device="cpu", tags=["load"], mode=mode)) for mode in ("slices", "smem"))
for tag, payload, prof in (
    ("lod", None, prof), ("load", 1.5, prof), ("load", 1 << 40, prof), (70000, None, prof), ("load", 3, out), ("load", 4, ring)
):
    try:
        cute.compile(host, out, prof, tag, payload)
    except errors.UsageError as error:
        print(error)
good = bind(allocate(device="cpu", tags=["load"]))
for kernel in (unbegun, begun_often):
    try:
        cute.compile(other_host, out, good, kernel)
    except errors.UsageError as error:
        print(error)
"""


def test_the_compiler_names_regions_that_cannot_be_recorded(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WRONG)
    said = run("cutlass-dsl", program, CUTE_DSL_ARCH="sm_90a").stdout.splitlines()
    wanted = (
        "no tag 'lod'",
        "float",
        "32 bits",
        "70000",
        "bind(buffer)",
        "no room for a payload",
        "p = profiler(prof)",
        "profiler() in a loop",
    )
    for line, words in zip(said, wanted, strict=True):
        assert words in line
