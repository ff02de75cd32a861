"""Regions in CuTe DSL, compiled here: they fit every shape of control flow on every supported release, and cost little."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.dsl.languages import releases, run
from tests.dsl.machine_code import MachineCode, count, read
from tests.pieces import ROOT

pytestmark = pytest.mark.require("cutlass-dsl")
PROGRAM = ROOT / "tests" / "dsl" / "cute_compile.py"
RELEASES = ("4.5.3", "4.6.3", "4.7.1", "4.8.1")
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")
OF_HOPPER = ARCHITECTURES[1:]
NEWEST = RELEASES[-1]


def _records() -> dict[str, tuple[int, int]]:
    """RECORDS of cute_kernels.py, which imports what is not installed here."""
    tree = ast.parse((ROOT / "tests" / "dsl" / "cute_kernels.py").read_text())
    (found,) = [node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RECORDS"]
    return dict(ast.literal_eval(found))


RECORDS = _records()


class Code(NamedTuple):
    ptx: str
    cubin: Path

    @property
    def machine(self) -> MachineCode:
        return read(self.cubin)

    @property
    def loop(self) -> tuple[str, ...]:
        """The loop that loads data."""
        (found,) = [loop for loop in self.machine.loops if count(loop, "FFMA")]
        assert count(found, r"\bLDG") == 1, "the loop was unrolled"
        return found


def compiled(folder: Path, *cases: tuple[str, dict[str, Any]], arch: str = "sm_90a", release: str = NEWEST) -> list[Code]:
    """Compile (kernel, options) each; a kernel of `cute_bare` is written `bare:name`. Skips where the release is not here."""
    python = releases("cutlass-dsl").get(release)
    if python is None:
        pytest.skip(f"no environment has nvidia-cutlass-dsl {release} (tools/dsl.py all)")
    words = []
    for kernel, options in cases:
        bare, _, name = kernel.rpartition(":")
        words.append(f"cute_{bare or 'kernels'}:{name}:{json.dumps(options)}")
    run("cutlass-dsl", PROGRAM, folder, *words, python=python, CUTE_DSL_ARCH=arch)
    errors = {words[int(path.stem)]: path.read_text() for path in folder.glob("*.error")}
    assert not errors, errors
    return [Code((folder / f"{number}.ptx").read_text(), folder / f"{number}.cubin") for number in range(len(cases))]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("release", RELEASES)
def test_every_control_flow_on_every_release(tmp_path: Path, release: str, arch: str) -> None:
    names = [name for name in RECORDS if name != "elect" or arch != "sm_80"]  # elect_one itself is for sm_90
    codes = compiled(tmp_path, *((name, {"clock": "globaltimer"}) for name in names), arch=arch, release=release)
    for name, code in zip(names, codes, strict=True):
        assert f".target {arch}" in code.ptx
        regions, marks = RECORDS[name]
        stores = code.ptx.count("@p st.global.cs.v4.u32")
        # `while` has no wish for its unrolling.
        assert stores % regions == 0 if name == "while_loop" else stores == regions + marks, name
        assert stores == code.ptx.count("st.global.cs"), name
        assert code.ptx.count("%globaltimer_lo") == 2 * stores - marks, name
        assert not re.search(r"\batom|\bred\.|\.local\b|\bcall\b", code.ptx), name


@pytest.mark.require("nvdisasm")
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("release", RELEASES)
def test_a_region_costs_few_instructions_and_registers(tmp_path: Path, release: str, arch: str) -> None:
    clock = {"clock": "clock" if arch == "sm_80" else "globaltimer"}
    bare, plain, payload, generation, both, claim, ring = compiled(
        tmp_path,
        ("bare:loop", clock),
        ("loop", clock),
        ("loop_payload", clock),
        ("loop", {**clock, "generation": True}),
        ("loop_payload", {**clock, "generation": True}),
        ("loop", {**clock, "mode": "claim"}),
        ("loop", {**clock, "mode": "smem"}),
        arch=arch,
        release=release,
    )
    # Before Hopper the ring's loop is not told from that which copies it.
    for code in (plain, payload, generation, both, claim, *([ring] if arch in OF_HOPPER else [])):
        assert count(code.loop, "CLOCK|TIMER") == 2
        assert count(code.loop, r"\b(STG|STS|STL|LDL|ATOM|ATOMG|RED|BSSY|CALL|S2R)\b") == 1, "one store"
        assert count(code.loop, r"^@!?P\d STS\.64" if code is ring else r"^@!?P\d STG\.E\.EF\.128") == 1
        assert not code.machine.count(r"\b(LDL|STL|CALL)\b")
        assert code.machine.count(r"\bATOM|\bRED\b") == (code is claim)
        extra, more = len(code.loop) - len(bare.loop), code.machine.registers - bare.machine.registers
        constant = 7 if arch in OF_HOPPER else 8
        assert extra <= (constant if code in (plain, claim) else 9), "\n".join(code.loop)
        assert more <= (8 if arch in OF_HOPPER else 10)


@pytest.mark.parametrize("release", RELEASES)
def test_switched_off_it_is_the_code_of_a_kernel_without_regions(tmp_path: Path, release: str) -> None:
    names = ("loop", "nested")
    for arch in ARCHITECTURES:
        folder = tmp_path / arch
        folder.mkdir()
        cases = [(bare + name, {"enabled": False}) for name in names for bare in ("bare:", "")]
        codes = compiled(folder, *cases, arch=arch, release=release)
        for bare, off in zip(codes[::2], codes[1::2], strict=True):
            assert bare.ptx == off.ptx
            assert bare.cubin.read_bytes() == off.cubin.read_bytes()


def test_modes_clocks_and_samples_are_what_they_say(tmp_path: Path) -> None:
    cycles, claim, ring, some, plain = compiled(
        tmp_path,
        ("loop", {"clock": "clock"}),
        ("loop", {"mode": "claim"}),
        ("loop", {"mode": "smem", "slots": 256}),
        ("loop", {"warps": [0, 2], "sample_blocks": 4}),
        ("loop", {}),
    )
    assert cycles.ptx.count("%clock;") == 2
    assert "%globaltimer_lo" not in cycles.ptx
    assert len(re.findall(r"\batom\.global", claim.ptx)) == 1
    assert f".b8 wl_rings[{4 * 256 * 8}]" in ring.ptx
    assert "activemask" in ring.ptx
    for text in ("popc.b32", "rem.u32 x, cta, 4"):
        assert text in some.ptx
        assert text not in plain.ptx


def test_a_larger_buffer_needs_no_new_kernel(tmp_path: Path) -> None:
    small, large = compiled(tmp_path, ("loop", {"slots": 8}), ("loop", {"slots": 4096, "grid": 64}))
    assert small.ptx == large.ptx


WRONG = """
import sys
import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from warpline import errors
from warpline.intrakernel import allocate
from warpline.intrakernel.dsl.cute import bind, finish, mark, profiler

@cute.kernel
def kernel(out: cute.Tensor, prof, tag: cutlass.Constexpr, payload: cutlass.Constexpr):
    p = profiler(prof)
    mark(p, tag, payload=payload)
    finish(p)

@cute.jit
def host(out: cute.Tensor, prof, tag: cutlass.Constexpr, payload: cutlass.Constexpr):
    kernel(out, prof, tag, payload).launch(grid=(1, 1, 1), block=(32, 1, 1))

from cutlass.cute.runtime import make_fake_compact_tensor
out = make_fake_compact_tensor(Float32, (32,))
prof = bind(allocate(device="cpu", tags=["load"], mode=sys.argv[1]))
for tag, payload in (("lod", None), ("load", 1.5), ("load", 1 << 40), (70000, None), ("load", 3)):
    try:
        cute.compile(host, out, prof if payload != 3 else out, tag, payload)
    except errors.UsageError as error:
        print(error)
"""


def test_what_cannot_be_recorded_is_said(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WRONG)
    said = run("cutlass-dsl", program, "slices", CUTE_DSL_ARCH="sm_90a").stdout.splitlines()
    assert len(said) == 5
    for line, words in zip(said, ("no tag 'lod'", "float", "32 bits", "70000", "bind(buffer)"), strict=True):
        assert words in line
    assert "no room for a payload" in run("cutlass-dsl", program, "smem", CUTE_DSL_ARCH="sm_90a").stdout
