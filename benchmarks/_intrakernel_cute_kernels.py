"""Compiles the CuTe DSL kernels of the benchmarks to files: python _intrakernel_cute_kernels.py FOLDER.

Writes FOLDER/cost-<case>.cubin and cost.json, which names the entry and the parameters' bytes of each. CUTE_DSL_ARCH says for what.
"""

# CuTe DSL reads the source of kernels, annotations included: no future annotations here.
# ruff: noqa: ANN001, ANN202, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"
import json
import re
import sys
from pathlib import Path
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T, dsl_user_op

from _intrakernel_gpu import BARE, BEGIN_PTX, FULL, REFERENCE, REGION, RING, end_ptx
from warplens.intrakernel import allocate
from warplens.intrakernel.dsl.cute import bind, finish, profiler, region

BLOCKS, THREADS = 64, 128
TAGS = ("body",)
RING_SLOTS = 64


@dsl_user_op
def _asm(result, value, text, constraints, *, loc=None, ip=None):
    return llvm.inline_asm(
        result,
        [value.ir_value(loc=loc, ip=ip)],
        text,
        constraints,
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )


def _place(out):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    x = cute.make_tensor(
        cute.make_ptr(Float32, out, cute.AddressSpace.gmem), cute.make_layout(BLOCKS * THREADS)
    )
    return x, block * THREADS + thread


@cute.kernel
def loop(out: Int64, count: Int32, prof):
    p = profiler(prof)
    x, at = _place(out)
    value = x[at]
    for _ in cutlass.range(count, unroll=1):
        with region(p, "body"):
            value = value * value + value
    x[at] = value
    finish(p)


@cute.kernel
def payload(out: Int64, count: Int32, prof):
    p = profiler(prof)
    x, at = _place(out)
    value = x[at]
    for i in cutlass.range(count, unroll=1):
        with region(p, "body", payload=i):
            value = value * value + value
    x[at] = value
    finish(p)


@cute.kernel
def reference(out: Int64, count: Int32, prof):
    x, at = _place(out)
    value = x[at]
    for _ in cutlass.range(count, unroll=1):
        slot = Int64(_asm(T.i64(), prof, BEGIN_PTX, "=l,l,~{memory}"))
        value = value * value + value
        _asm(None, slot, end_ptx("$0"), "l,~{memory}")
    x[at] = value


def _launch(kernel):
    @cute.jit
    def launch(out: Int64, count: Int32, prof):
        kernel(out, count, prof).launch(grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1))

    return launch


def main(folder: Path) -> None:
    """Compile and write each case."""
    shape: dict[str, Any] = {
        "grid": BLOCKS,
        "warps": THREADS // 32,
        "tags": TAGS,
        "device": "cpu",
        "clock": "globaltimer",
    }
    buffer = allocate(**shape, slots=2)
    ring = allocate(**shape, slots=RING_SLOTS, mode="smem")
    cases = {
        BARE: (loop, bind(buffer, enabled=False)),
        REGION: (loop, bind(buffer)),
        FULL: (payload, bind(buffer, generation=True)),
        RING: (loop, bind(ring)),
        REFERENCE: (reference, Int64(0)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    entries = {}
    for number, (name, (kernel, last)) in enumerate(cases.items()):
        made = cute.compile(_launch(kernel), Int64(0), Int32(1), last, options="--keep-ptx --keep-cubin")
        (entry,) = re.findall(r"\.entry (\w+)\(", made.__ptx__)
        bits = re.findall(rf"\.param \.[a-z]?(\d+) {entry}_param_\d+", made.__ptx__)
        (folder / f"cost-{number}.cubin").write_bytes(made.__cubin__)
        (folder / f"cost-{number}.ptx").write_text(made.__ptx__.rstrip("\0"))
        entries[name] = {
            "file": f"cost-{number}.cubin",
            "entry": entry,
            "parameters": [int(width) // 8 for width in bits],
        }
    (folder / "cost.json").write_text(json.dumps(entries))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
