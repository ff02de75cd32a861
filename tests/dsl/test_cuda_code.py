"""What a region costs in CUDA C++, in machine code that is compiled here: no atomics, no local memory, few instructions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.dsl.languages import answer
from tests.dsl.machine_code import MachineCode, count, read
from tests.pieces import ROOT, find_nvcc
from warpline.intrakernel import include_path

pytestmark = pytest.mark.require("nvcc")
FOLDER = ROOT / "tests" / "dsl"
COST, RECORDING = FOLDER / "cuda_cost.cu", FOLDER / "cuda_recording.cu"
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")
TIMER = r"mov\.u(32|64) \S+ %(globaltimer_lo|clock);"
STORE = r"@%?\w+ st\.global\.cs\.v4\.u32"
# A literal is put into the record by an instruction of its own; with a generation there is a register to take the word from.
MOST = {(): 7, ("PAYLOAD=2",): 8, ("PAYLOAD=1",): 8, ("PAYLOAD=1", "WARPLINE_GENERATION=1"): 7, ("PAYLOAD=2", "WARPLINE_GENERATION=1"): 9}
MOST_REGISTERS = 8


def nvcc(out: Path, source: Path, architecture: str, *defines: str) -> Path:
    compiler = find_nvcc()
    assert compiler is not None
    kind = "-ptx" if out.suffix == ".ptx" else "-cubin"
    words = ["-std=c++17", "-O3", f"-arch={architecture}", kind, f"-I{include_path()}", *(f"-D{name}" for name in defines)]
    done = subprocess.run([compiler, *words, source, "-o", out], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return out


def cost(folder: Path, architecture: str, *defines: str) -> MachineCode:
    return read(nvcc(folder / f"{len(list(folder.iterdir()))}.cubin", COST, architecture, *defines))


def hot(code: MachineCode) -> tuple[str, ...]:
    """The loop that loads from global memory."""
    (found,) = [loop for loop in code.loops if count(loop, r"\bLDG")]
    assert count(found, r"\bLDG") == 1, "the loop was unrolled"
    return found


@pytest.mark.require("nvdisasm")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_region_costs_few_instructions(tmp_path: Path, architecture: str) -> None:
    bare = hot(cost(tmp_path, architecture, "RECORD=0"))
    for defines, most in MOST.items():
        code = cost(tmp_path, architecture, "RECORD=1", *defines)
        loop = hot(code)
        assert count(loop, "CLOCK|TIMER") == 2, "\n".join(loop)
        assert count(loop, r"\bS2U?R\b") == 0, "a slow read of a timer"
        assert count(loop, r"^@!?P\d STG\.E\.\w+\.128") == 1
        assert count(loop, r"\b(ATOM|RED|BRA|BSSY)") == 1, "the loop's own branch"
        assert len(loop) - len(bare) <= most, "\n".join(loop)
        assert code.count(r"\b(LDL|STL|CALL)\b") == 0


@pytest.mark.require("nvdisasm")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_region_costs_few_registers(tmp_path: Path, architecture: str) -> None:
    """Of a kernel that has something to do: the top of the smallest ones needs more than they do, for a moment."""
    bare = cost(tmp_path, architecture, "RECORD=0", "LARGE")
    for more in ((), ("PAYLOAD=2",), ("PAYLOAD=2", "WARPLINE_GENERATION=1"), ("RING=1",)):
        code = cost(tmp_path, architecture, "RECORD=1", "LARGE", *more)
        assert code.registers - bare.registers <= MOST_REGISTERS
        assert code.count(r"\b(LDL|STL)\b") == 0


@pytest.mark.require("nvdisasm")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_ring_takes_stores_to_shared_memory_only(tmp_path: Path, architecture: str) -> None:
    code = cost(tmp_path, architecture, "RECORD=1", "RING=1")
    loop = next(loop for loop in code.loops if count(loop, r"\bLDG"))
    assert count(loop, r"\bSTG") == 0
    assert count(loop, "CLOCK|TIMER") == 2 * count(loop, r"\bSTS") > 0
    assert count(loop, r"\bS2U?R\b") == 0, "a slow read of a timer"
    assert count(loop, r"\bATOM|\bRED") == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_region_has_two_timers_and_one_predicated_store(tmp_path: Path, architecture: str) -> None:
    text = nvcc(tmp_path / "k.ptx", RECORDING, architecture).read_text()
    bodies = {found[1]: found[2] for found in re.finditer(r"\.entry (\w+)\((.*?)^}", text, re.DOTALL | re.MULTILINE)}
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
    text = nvcc(tmp_path / "k.ptx", COST, "sm_90a", "RECORD=1", "WARPLINE_MODE=0").read_text()
    assert "atom." not in text


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_off_is_as_if_it_were_not_there(tmp_path: Path, architecture: str) -> None:
    for ring in ("RING=0", "RING=1"):
        bare = nvcc(tmp_path / "bare.cubin", COST, architecture, "RECORD=0", ring)
        off = nvcc(tmp_path / "off.cubin", COST, architecture, "RECORD=1", ring, "WARPLINE_INTRAKERNEL_OFF")
        on = nvcc(tmp_path / "on.cubin", COST, architecture, "RECORD=1", ring)
        assert bare.read_bytes() == off.read_bytes()
        assert bare.read_bytes() != on.read_bytes()


NVRTC = """
import json, sys
from warpline.intrakernel.device.cuda_kernels import compile_gpu
source, found = open(sys.argv[1]).read(), {}
wishes = ([], ["-DWARPLINE_GENERATION=1", "-DWARPLINE_CLOCK=1"], ["-DWARPLINE_INTRAKERNEL_OFF"], ["--use_fast_math", "-default-device"])
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
    common = ["RECORD", "MARK", "VERSION", "CLOCK", "WARP", "WARPS", "SLOTS", "BYTES", "FLAGS", "STACK", "ENABLED", "GENERATION"]
    common += ["BLOCK", "N", "M", "K", "TILE", "LANE", "TAG", "HEADER", "MODE"]
    nvcc(tmp_path / "k.cubin", RECORDING, "sm_90a", *(f"{name}=1" for name in common))


def test_it_compiles_as_part_of_an_extension(tmp_path: Path) -> None:
    """With what PyTorch passes to nvcc for inline extensions: device code that is linked later, host code around it."""
    source = tmp_path / "extension.cu"
    source.write_text(f'#include <cstdio>\n#include "{RECORDING}"\nvoid go(void *p) {{ regions<<<4, 64>>>(3, p); std::puts("x"); }}\n')
    torch = [
        "-D__CUDA_NO_HALF_OPERATORS__",
        "--expt-relaxed-constexpr",
        "--compiler-options=-fPIC",
        "-std=c++17",
        "-gencode=arch=compute_90,code=sm_90",
    ]
    compiler = find_nvcc()
    assert compiler is not None
    done = subprocess.run(
        [compiler, *torch, f"-I{include_path()}", "-c", source, "-o", tmp_path / "extension.o"],
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
