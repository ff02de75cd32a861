"""Finds the times in which a framework compiled, with the thread and the line of the program.

The stacks of Python samples show it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.own_code import nearest
from warplens.arrays import BoolArray, Int64Array
from warplens.rules.hosts import numbers, rows
from warplens.rules.lines import own_line

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# The functions that compilers are entered by: file and function (qualified). What they only call at run time is not among them.
_ENTERED = {
    "torch.compile": (
        (r"torch/_dynamo/convert_frame\.py$", r"(?!<module>)"),
        (r"torch/_inductor/compile_fx\.py$", r".*(compile|codegen)"),
        (
            r"torch/_inductor/runtime/triton_heuristics\.py$",
            r".*(precompile|benchmark_all_configs|autotune_to_one_config)",
        ),
    ),
    "JAX": (
        (r"jax/_src/compiler\.py$", r"(?!<module>)"),
        (r"jax/_src/interpreters/mlir\.py$", r".*lower_jaxpr_to_module"),
        (
            r"jax/_src/interpreters/pxla\.py$",
            r".*(lower_sharding_computation|_cached_compilation|from_hlo|\.compile$)",
        ),
        (r"jax/_src/pjit\.py$", r".*_create_pjit_jaxpr"),
    ),
    "Triton": (
        (r"triton/compiler/compiler\.py$", r"compile$"),
        (r"triton/runtime/autotuner\.py$", r".*_bench$"),
    ),
    "Numba": ((r"numba/(core|cuda)/dispatcher\.py$", r".*\b(_compile_for_args|compile|compile_device)$"),),
    "TensorFlow": ((r"polymorphic_function/tracing_compilation\.py$", r"(?!<module>)"),),
}
_APART = 20_000_000  # ns between two samples of one compilation, at most: four ticks of the usual rate


@dataclass(frozen=True)
class Compiling:
    """A stretch in which a thread compiled.

    `line`: of the program, as `step (train.py:57)`, empty if its stack has none of it.
    """

    process: int
    thread: int
    sample: int
    start: int
    end: int
    compiler: str
    line: str


def compiling(report: Report, selection: Selection) -> list[Compiling]:
    """Return the stretches in which Python samples were in a compiler, by thread and start.

    A stretch has at least two ticks.
    """
    frames = FrameTable.of(report)
    compiler = _compilers(frames)
    within = nearest(frames.parent, compiler >= 0)
    seen = rows(
        report,
        selection,
        'id, process, thread, stack, "count"',
        table="samples",
        where="kind = 'python' AND stack IS NOT NULL",
    )
    position = frames.positions(seen.column("stack"))
    kept = within[position] >= 0
    position, seen = position[kept], seen.filter(kept)
    process, thread, start, end, ids, count = (
        numbers(seen, name) for name in ("process", "thread", "start", "end", "id", "count")
    )
    order = np.lexsort((start, thread))
    apart = (np.diff(thread[order]) != 0) | (start[order][1:] - end[order][:-1] > _APART)
    names = list(_ENTERED)
    stretches = []
    for part in np.split(order, np.flatnonzero(apart) + 1) if len(order) else ():
        first = int(part[0])
        if count[part].sum() >= 2:
            name, line = (
                names[int(compiler[within[position[first]]])],
                own_line(frames.path(int(position[first]))),
            )
            stretches.append(
                Compiling(
                    int(process[first]),
                    int(thread[first]),
                    int(ids[first]),
                    start=int(start[first]),
                    end=int(end[part].max()),
                    compiler=name,
                    line=line,
                )
            )
    return stretches


def _compilers(frames: FrameTable) -> Int64Array:
    """Number the compiler that each frame is the entrance of; -1: none."""
    files, code_of_file = frames.texts("file")
    functions, code_of_function = frames.texts("function")
    number = np.full(len(frames), -1, np.int64)
    for compiler, entrances in enumerate(_ENTERED.values()):
        for file, function in entrances:
            in_file = _matching(re.compile(file), files)[code_of_file]
            if in_file.any():
                number[
                    in_file
                    & _matching(re.compile(f"(?:{function})"), functions, begin=True)[code_of_function]
                ] = compiler
    return number


def _matching(pattern: re.Pattern[str], texts: list[str], *, begin: bool = False) -> BoolArray:
    """Return which texts a pattern occurs in, or (`begin`) begins; the last stands for no text."""
    look = pattern.match if begin else pattern.search
    return np.array([look(text.replace("\\", "/")) is not None for text in texts] + [False])
