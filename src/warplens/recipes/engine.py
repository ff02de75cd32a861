"""Computes the parts of a recipe in a pool and merges them to its answer.

The answer is the same with every pool, byte for byte: parts are merged in the order of their reports.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from warplens import catalog
from warplens.errors import MissingData, WarplensError
from warplens.flows import foreign
from warplens.recipes import base, merging
from warplens.recipes.base import Answer, BrokenPart, Summary
from warplens.report import Report

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PartTask:
    """One part: what a worker needs to compute it. `options`: the recipe's, by name."""

    recipe: str
    options: tuple[tuple[str, Any], ...]
    path: Path
    number: int


@dataclass(frozen=True)
class Result:
    """The result of a part: its summary, or one line about why there is none."""

    number: int
    summary: Summary | None
    error: str = ""


class Pool(Protocol):
    """Computes parts in workers; computes a part again if its worker is lost."""

    def run(self, work: Sequence[PartTask]) -> Iterator[Result]:
        """Compute all parts, and yield their results in any order."""
        ...


def compute(work: PartTask) -> Result:
    """Compute one part in this process. An error of the report becomes the result's `error`."""
    question = catalog.find(base.FAMILY, work.recipe).load()
    options = dict(work.options)
    try:
        with _opened(work.path, whole=not getattr(question, "FILES", False)) as source:
            summary = question.part(source, **options)
    except MissingData as error:
        return Result(work.number, None, error=f"{work.path.name} {error}")
    except (WarplensError, OSError) as error:
        return Result(work.number, None, error=str(error).partition("\n")[0])
    except Exception as error:  # one report that breaks a recipe must not cost the answer over the others
        return Result(work.number, None, error=f"{work.path}: {type(error).__name__}: {error}")
    return Result(work.number, merging.numbered(summary, work.number))


def run(
    recipe: str,
    paths: Sequence[Path],
    pool: Pool,
    *,
    options: dict[str, Any],
    progress: Progress | None = None,
) -> tuple[Answer, list[BrokenPart]]:
    """Answer a recipe over reports.

    Reports that cannot be read are left out and returned beside the answer. MissingData if none is left.
    """
    question = catalog.find(base.FAMILY, recipe).load()
    work = [
        PartTask(recipe, tuple(options.items()), path, number=number) for number, path in enumerate(paths)
    ]
    summaries: dict[int, Summary] = {}
    broken: dict[int, BrokenPart] = {}
    for done, result in enumerate(pool.run(work), 1):
        if result.summary is None:
            broken[result.number] = BrokenPart(paths[result.number], result.error)
        else:
            summaries[result.number] = result.summary
        if progress is not None:
            progress(done, len(work))
    left_out = [broken[number] for number in sorted(broken)]
    if not summaries:
        others = f" ({len(left_out) - 1} more reports could not be read, either)" if len(left_out) > 1 else ""
        raise MissingData(f"{left_out[0].error}{others}")
    merged = merging.tree([summaries[number] for number in sorted(summaries)], merging.merge_of(question))
    takes = inspect.signature(question.answer).parameters
    of_answer = {name: value for name, value in options.items() if name in takes}
    return question.answer(merging.in_order(merged), **of_answer), left_out


@contextmanager
def _opened(path: Path, *, whole: bool) -> Iterator[Report | Path]:
    if not whole:
        yield path
        return
    with foreign.open(path) as report:
        yield report
