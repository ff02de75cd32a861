"""What compilers make of kernels, here and for GPUs that are not: PTX and machine code, one process for all kernels of a call."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.dsl.languages import releases, run
from tests.dsl.machine_code import MachineCode, count, read
from tests.support.optional_dependencies import ROOT, find_nvcc
from warplens.intrakernel import include_path

PROGRAMS = ROOT / "tests" / "dsl" / "programs"
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")
RELEASES = ("4.5.3", "4.6.3", "4.7.1", "4.8.1")  # of CuTe DSL
NEWEST = RELEASES[-1]
Case = tuple[
    str, dict[str, Any]
]  # a kernel, `module:name` where it is not in the language's file of kernels, and options


class Code(NamedTuple):
    """One kernel; `cubin` is its file of machine code."""

    ptx: str
    cubin: Path

    @property
    def machine(self) -> MachineCode:
        return read(self.cubin)

    @property
    def loop(self) -> tuple[str, ...]:
        """The innermost loop that does the kernel's own work, a multiplication and addition."""
        found = min((loop for loop in self.machine.loops if count(loop, "FFMA")), key=len)
        assert count(found, "FFMA") == 1, "the loop was unrolled"
        return found


def _codes(folder: Path, number: int) -> list[Code]:
    return [Code((folder / f"{at}.ptx").read_text(), folder / f"{at}.cubin") for at in range(number)]


def _new(folder: Path) -> Path:
    """A folder in `folder` for one call."""
    made = folder / f"call{len(list(folder.iterdir()))}"
    made.mkdir()
    return made


def _whole(case: Case, language: str) -> str:
    kernel, options = case
    module, _, name = kernel.rpartition(":")
    return f"{language}_{module or 'kernels'}:{name}:{json.dumps(options)}"


def cute(folder: Path, arch: str, *cases: Case, release: str = NEWEST) -> list[Code]:
    """Compile kernels of CuTe DSL; the release must be in `releases("cutlass-dsl")`."""
    folder = _new(folder)
    words = [_whole(case, "cute") for case in cases]
    run(
        "cutlass-dsl",
        PROGRAMS / "cute_compile.py",
        folder,
        *words,
        python=releases("cutlass-dsl")[release],
        CUTE_DSL_ARCH=arch,
    )
    errors = {words[int(path.stem)]: path.read_text() for path in folder.glob("*.error")}
    assert not errors, errors
    return _codes(folder, len(cases))


def triton(folder: Path, arch: str, *cases: Case) -> list[Code]:
    """Compile kernels of Triton."""
    folder = _new(folder)
    words = [_whole(case, "triton") for case in cases]
    kept: dict[str, Any] = {"TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DISABLE_LINE_INFO": "1"}
    run("triton", PROGRAMS / "triton_compile.py", folder, _capability(arch), *words, **kept)
    return _codes(folder, len(cases))


def numba(folder: Path, arch: str, *cases: Case) -> list[Code]:
    """Compile kernels of Numba-CUDA."""
    folder = _new(folder)
    run(
        "numba-cuda",
        PROGRAMS / "numba_compile.py",
        folder,
        _capability(arch),
        *(_whole(case, "numba") for case in cases),
    )
    return _codes(folder, len(cases))


def _capability(arch: str) -> str:
    return arch.removeprefix("sm_").removesuffix("a")


def nvcc(out: Path, source: Path, arch: str, *defines: str) -> Path:
    """Compile CUDA C++ to PTX or to machine code, as the name of `out` says; a warning is a failure."""
    compiler = find_nvcc()
    assert compiler is not None
    kind = "-ptx" if out.suffix == ".ptx" else "-cubin"
    words = [
        "-std=c++17",
        "-O3",
        f"-arch={arch}",
        kind,
        f"-I{include_path()}",
        *(f"-D{name}" for name in defines),
    ]
    done = subprocess.run(
        [compiler, *words, source, "-o", out], capture_output=True, text=True, timeout=1000, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return out


def cuda(folder: Path, arch: str, *cases: tuple[str, ...]) -> list[Code]:
    """Compile cuda_cost.cu with these defines each. There is no PTX of it: a second compilation would take as long."""
    folder = _new(folder)
    with ThreadPoolExecutor(2) as pool:
        cubins = pool.map(
            lambda at: nvcc(folder / f"{at}.cubin", PROGRAMS / "cuda_cost.cu", arch, *cases[at]),
            range(len(cases)),
        )
        return [Code("", cubin) for cubin in cubins]
