"""Compiles (FOLDER CAPABILITY) or interprets (attention, timed) the kernels of benchmarks/_intrakernel_triton_kernels.py, without a GPU.

Compiled: FOLDER/<kernel>.ptx and .cubin of all. Interpreted: prints how far attention is from NumPy's, and what was recorded, as JSON.
Timed: runs benchmarks/intrakernel_triton.py itself, smaller, with NumPy for PyTorch; prints its rows as JSON.
"""

# ruff: noqa: TID253
from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tests.dsl.decoded import told
from tests.support.optional_dependencies import ROOT
from warplens.intrakernel import allocate
from warplens.intrakernel.dsl.triton import bind

sys.path.insert(0, str(ROOT / "benchmarks"))

import _intrakernel_proton as proton
import _intrakernel_triton_kernels as kernels


def compile_all(folder: Path, capability: int) -> None:
    """Compile each kernel, ours with and without regions."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    def save(
        name: str, fn: Any, arguments: dict[str, str], constants: dict[Any, Any], prof: Any = None
    ) -> None:
        names = list(fn.arg_names)
        signature: dict[str, Any] = {
            **arguments,
            **{word: "constexpr" for word in names if word not in arguments and word != "prof"},
        }
        constexprs: dict[tuple[int, ...], Any] = {
            (names.index(word),): value for word, value in constants.items()
        }
        if prof is not None:
            signature["prof"] = type(prof)("i64", "constexpr")
            constexprs[(names.index("prof"), 1)] = prof.plan.value
        wide = {
            (names.index(word),): [["tt.divisibility", 16]]
            for word, kind in arguments.items()
            if kind in ("i64", "*fp16") or word == "length"
        }
        source = ASTSource(
            fn=fn, signature={word: signature[word] for word in names}, constexprs=constexprs, attrs=wide
        )
        made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})
        (folder / f"{name}.ptx").write_text(made.asm["ptx"])
        (folder / f"{name}.cubin").write_bytes(made.asm["cubin"])

    numbers = {"out": "i64", "count": "i32"}
    on = bind(allocate(device="cpu", warps=4, tags=kernels.LOOP_TAGS))
    save("loop", kernels.loop, numbers, {"PAYLOAD": False}, on)
    save("payload", kernels.loop, numbers, {"PAYLOAD": True}, on)
    save("reference", kernels.reference, {**numbers, "slots": "i64"}, {})
    save("scoped", proton.scoped, numbers, {})  # without Proton's session a scope is nothing
    shape = {"KIND": tl.float16, "WIDTH": 64, "ROWS": 128, "COLUMNS": 64}
    words = {**dict.fromkeys(("q", "k", "v", "out"), "*fp16"), "length": "i32", "scale": "fp32"}
    buffer = allocate(device="cpu", warps=4, tags=kernels.ATTENTION_TAGS)
    for name, enabled in (("attention", True), ("attention_off", False)):
        save(name, kernels.attention, words, shape, bind(buffer, enabled=enabled))


def interpret() -> dict[str, Any]:
    """Run attention on the host: two heads, two programs each, four tiles."""
    heads, length, width, rows, columns = 2, 64, 16, 32, 16
    random = np.random.default_rng(1)
    q, k, v = (random.standard_normal((heads, length, width)).astype(np.float32) for _ in range(3))
    out = np.zeros_like(q)
    buffer = allocate(
        (length // rows, heads), slots=8 * length // columns, tags=kernels.ATTENTION_TAGS, device="cpu"
    )
    addresses = (array.ctypes.data for array in (q, k, v, out))
    scale = math.log2(math.e) / math.sqrt(width)
    with buffer.launch("attention"):
        kernels.attention[(length // rows, heads)](
            *addresses, length, scale, bind(buffer), tl.float32, width, rows, columns
        )
    scores = np.einsum("hik,hjk->hij", q, k) / math.sqrt(width)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    wanted = weights @ v / weights.sum(2, keepdims=True)
    return {"wrong": float(np.abs(out - wanted).max()), **told(buffer)}


@triton.jit
def nothing(out, count, slots):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """The loop without anything, for the reference design's events, which are assembly."""
    at = out.to(tl.pointer_type(tl.float32)) + tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(at)
    for _ in tl.range(0, count, loop_unroll_factor=1):
        value = value * 1.0001 + 1.0
    tl.store(at, value)


class Array(int):
    """What the benchmark asks of a tensor: an address that kernels take, and a difference."""

    data: Any

    def __new__(cls, data: Any) -> Array:
        made = super().__new__(cls, data.ctypes.data)
        made.data = data
        return made

    def __sub__(self, other: Any) -> Any:
        return Array(self.data.astype(np.float32) - other.data)

    def abs(self) -> Any:
        return abs(self.data)


def numbers(shape: Any, dtype: Any = np.float32, device: str = "") -> Array:
    """Random ones, always the same."""
    return Array(np.random.default_rng(1).standard_normal(shape).astype(dtype))


def attended(q: Array, k: Array, v: Array) -> Array:
    """Attention, as NumPy computes it."""
    a, b, c = (one.data.astype(np.float32) for one in (q, k, v))
    scores = np.exp(np.einsum("hik,hjk->hij", a, b) / math.sqrt(a.shape[2]))
    return Array(scores @ c / scores.sum(2, keepdims=True))


def timed() -> list[Any]:
    """Run the benchmark on the host, where a loop of the reference design is a loop without anything."""
    from dataclasses import asdict
    from functools import partial
    from types import SimpleNamespace

    import intrakernel_triton as benchmark
    from warplens import intrakernel

    torch: Any = SimpleNamespace(float16=np.float16, int64=np.int64, randn=numbers)
    torch.Tensor = type("Tensor", (), {})
    torch.zeros = lambda count, dtype=np.float32, device="": SimpleNamespace(
        data_ptr=partial(int, Array(np.zeros(count, dtype)))
    )
    torch.cuda = SimpleNamespace(synchronize=lambda: None)
    torch.nn = SimpleNamespace(functional=SimpleNamespace(scaled_dot_product_attention=attended))
    sys.modules["torch"] = torch
    made = intrakernel.allocate
    intrakernel.allocate = lambda *words, **named: made(*words, **{**named, "device": "cpu"})
    benchmark.BLOCKS, benchmark.WARPS, benchmark.WIDTH, benchmark.ROWS, benchmark.COLUMNS = 2, 1, 16, 32, 16
    kernels.reference = nothing
    rows = [*benchmark.regions(3), *benchmark.attention(1, heads=2, length=64, device="cpu")]
    return [{**asdict(row), "ok": row.ok} for row in rows]


if __name__ == "__main__":
    if sys.argv[1] == "timed":
        print(json.dumps(timed()))
    elif len(sys.argv) > 2:
        compile_all(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        print(json.dumps(interpret()))
