"""Regions in CUDA C++, compiled here: as nvcc, NVRTC and extensions of PyTorch compile them; test_costs.py says what they cost."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.dsl.compiled import ARCHITECTURES, PROGRAMS, cuda, nvcc
from tests.dsl.languages import PATIENT, answer
from tests.support.optional_dependencies import find_nvcc
from warplens.intrakernel import include_path

pytestmark = [pytest.mark.require("nvcc"), PATIENT]
COST, RECORDING = PROGRAMS / "cuda_cost.cu", PROGRAMS / "cuda_recording.cu"
EVERYWHERE = pytest.mark.parametrize(
    "architecture",
    [pytest.param(arch, marks=() if arch == "sm_90a" else pytest.mark.exhaustive) for arch in ARCHITECTURES],
)
TIMER = r"mov\.u(32|64) \S+ %(globaltimer_lo|clock);"
STORE = r"@%?\w+ st\.global\.cs\.v4\.u32"


@pytest.mark.require("nvdisasm")
@EVERYWHERE
def test_larger_kernels_have_room_for_a_region(tmp_path: Path, architecture: str) -> None:
    """The smallest take up to 12 registers more, some of them for a moment at their top."""
    bare, *others = cuda(
        tmp_path,
        architecture,
        ("RECORD=0", "LARGE"),
        ("RECORD=1", "LARGE", "PAYLOAD=2", "WARPLENS_GENERATION=1"),
        ("RECORD=1", "LARGE", "RING=1"),
    )
    for code in others:
        assert code.machine.registers - bare.machine.registers <= 4
        assert code.machine.count(r"\b(LDL|STL)\b") == 0


@EVERYWHERE
def test_every_region_has_two_timers_and_one_predicated_store(tmp_path: Path, architecture: str) -> None:
    text = nvcc(tmp_path / "k.ptx", RECORDING, architecture).read_text()
    bodies = {
        found[1]: found[2] for found in re.finditer(r"\.entry (\w+)\((.*?)^}", text, re.DOTALL | re.MULTILINE)
    }
    regions = {"regions": 2, "tokens": 2, "leaving": 1, "sum": 2}
    marks = {"tokens": 2, "leaving": 1}
    for name, number in regions.items():
        # Loops may be unrolled, and what is after a branch be there twice: the ratio holds.
        stores, timers = len(re.findall(STORE, bodies[name])), len(re.findall(TIMER, bodies[name]))
        assert stores >= number + marks.get(name, 0)
        if name not in marks:
            assert timers == 2 * stores
        assert ".local" not in bodies[name]
        assert len(re.findall(r"\batom\.global", bodies[name])) == 1, "one per unit, for claims"
    clock = "clock" if architecture == "sm_80" else "globaltimer_lo"
    assert set(re.findall(r"%(globaltimer_lo|clock);", text)) == {clock}


def test_slices_need_no_atomics_at_all(tmp_path: Path) -> None:
    text = nvcc(tmp_path / "k.ptx", COST, "sm_90a", "RECORD=1", "WARPLENS_MODE=0").read_text()
    assert "atom." not in text


@pytest.mark.exhaustive
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_off_is_as_if_it_were_not_there(tmp_path: Path, architecture: str) -> None:
    """With a ring; without one test_costs.py looks."""
    for ring in ("RING=1",):
        bare = nvcc(tmp_path / "bare.cubin", COST, architecture, "RECORD=0", ring)
        off = nvcc(tmp_path / "off.cubin", COST, architecture, "RECORD=1", ring, "WARPLENS_INTRAKERNEL_OFF")
        on = nvcc(tmp_path / "on.cubin", COST, architecture, "RECORD=1", ring)
        assert bare.read_bytes() == off.read_bytes()
        assert bare.read_bytes() != on.read_bytes()


NVRTC = """
import json, sys
from warplens.intrakernel.device.cuda_kernels import compile_gpu
source, found = open(sys.argv[1]).read(), {}
wishes = ([], ["-DWARPLENS_GENERATION=1", "-DWARPLENS_CLOCK=1"], ["-DWARPLENS_INTRAKERNEL_OFF"], ["--use_fast_math", "-default-device"])
for architecture in ("sm_80", "sm_90a", "sm_100a"):
    for options in wishes:
        found[architecture + " ".join(options)] = len(compile_gpu(source, architecture, options, "nvrtc"))
print(json.dumps(found))
"""


@pytest.mark.require("nvrtc", "cuda-bindings")
def test_nvrtc_compiles_it_without_any_other_header(tmp_path: Path) -> None:
    """As CuPy's RawKernel does."""
    program = tmp_path / "program.py"
    program.write_text(NVRTC)
    found = answer("cuda-bindings", program, RECORDING)
    assert len(found) == 12
    assert all(size > 1000 for size in found.values())


def test_macros_of_a_program_do_not_meet_its_names(tmp_path: Path) -> None:
    """Names that kernels like to define; ours are none of these."""
    common = [
        "RECORD",
        "MARK",
        "VERSION",
        "CLOCK",
        "WARP",
        "WARPS",
        "SLOTS",
        "BYTES",
        "FLAGS",
        "STACK",
        "ENABLED",
        "GENERATION",
    ]
    common += ["BLOCK", "N", "M", "K", "TILE", "LANE", "TAG", "HEADER", "MODE"]
    nvcc(tmp_path / "k.cubin", RECORDING, "sm_90a", *(f"{name}=1" for name in common))


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_recorder_compiles_as_part_of_an_extension(tmp_path: Path, standard: str) -> None:
    """With what PyTorch passes to nvcc for inline extensions: device code that is linked later, host code around it."""
    source = tmp_path / "extension.cu"
    source.write_text(
        f'#include <cstdio>\n#include "{RECORDING}"\nvoid go(void *p) {{ regions<<<4, 64>>>(3, p); std::puts("x"); }}\n'
    )
    torch = [
        "-D__CUDA_NO_HALF_OPERATORS__",
        "--expt-relaxed-constexpr",
        "--compiler-options=-fPIC",
        f"-std={standard}",
        "-gencode=arch=compute_90,code=sm_90",
    ]
    compiler = find_nvcc()
    assert compiler is not None
    done = subprocess.run(
        [compiler, *torch, f"-I{include_path()}", "-c", source, "-o", tmp_path / "extension.o"],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
