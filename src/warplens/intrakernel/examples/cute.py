"""The example kernel in CuTe DSL: tiles that are loaded, computed and stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from warplens.intrakernel import driver, dsl
from warplens.intrakernel.dsl.cute import bind, finish, mark, profiler, region

if TYPE_CHECKING:
    from warplens.intrakernel.buffers import Buffer

_WIDTH = 128


@cute.kernel
def tiles(address: Int64, count: Int32, prof):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103
    p = profiler(prof)
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    pointer = cute.make_ptr(Float32, address, cute.AddressSpace.gmem)
    x = cute.make_tensor(pointer, cute.make_layout(dsl.EXAMPLE_GRID * dsl.EXAMPLE_TILES * _WIDTH))
    for tile in cutlass.range(count, unroll=1):
        at = (block * count + tile) * _WIDTH + thread
        with region(p, "tile", payload=tile):
            with region(p, "load", payload=tile):
                value = x[at]
            with region(p, "compute", payload=tile):
                value = cute.math.sqrt(value * value + 1.0)
            with region(p, "store", payload=tile):
                x[at] = value
    mark(p, "done")
    finish(p)


@cute.jit
def launch(address: Int64, count: Int32, prof):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103
    tiles(address, count, prof).launch(grid=(dsl.EXAMPLE_GRID, 1, 1), block=(_WIDTH, 1, 1))


def compiled(prof: Any, **options: Any) -> Any:
    """Compile the launch for what `bind` gave; needs no GPU."""
    return cute.compile(launch, Int64(0), Int32(dsl.EXAMPLE_TILES), prof, **options)


def run(buffer: Buffer) -> None:
    """Launch it once, on data beside the buffer."""
    calls = driver.driver()
    assert buffer.device is not None
    with calls.using(calls.context_of(buffer.pointer)):
        data = calls.allocate(4 * dsl.EXAMPLE_GRID * dsl.EXAMPLE_TILES * _WIDTH)
        try:
            prof = bind(buffer)
            kernel = compiled(prof)
            with buffer.launch("example"):
                kernel(Int64(data), Int32(dsl.EXAMPLE_TILES), prof)
            buffer.read()  # waits for it
        finally:
            calls.free(data)
