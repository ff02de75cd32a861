"""Records a small kernel and writes a trace: `python -m warplens.intrakernel.example`.

Without `--dsl` it takes the best way that is there: a language on a GPU, else in its interpreter or simulator, else the header for
CUDA C++ with the compiler of the host. What was recorded is checked before it is written.
"""

from __future__ import annotations

import argparse
import sys

from warplens import catalog
from warplens.errors import CaptureError, WarplensError
from warplens.intrakernel.dsl import EXAMPLE_GRID, EXAMPLE_TAGS, EXAMPLE_TILES
from warplens.intrakernel.traces import write_trace
from warplens.model.intrakernel_layout import HAS_PAYLOAD, MARK
from warplens.model.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from warplens.intrakernel.buffers import Buffer
    from warplens.spool.kernels.decoded import Decoded

_RANKS = ("gpu", "interpreter", "simulator", "host")  # ways of running, best first
_LANGUAGES = ("cute", "triton", "numba", "cuda")  # best first; others of the catalog come behind
_OUT = "intrakernel_example_trace.json"


def _choices(only: str | None) -> tuple[list[tuple[str, str, Any]], list[str]]:
    """What can be run here, best first, as (way, language, module); and why the rest cannot."""
    there: list[tuple[str, str, Any]] = []
    absent: list[str] = []
    for unit in catalog.units("intrakernel.dsl") if only is None else [catalog.find("intrakernel.dsl", only)]:
        try:
            module = unit.load()
        except ImportError as error:
            absent.append(
                f"{unit.id}: {error.name or error} is not installed"
                if isinstance(error, ModuleNotFoundError)
                else f"{unit.id}: {error}"
            )
            continue
        for way, why in module.ways().items():
            if why is None:
                there.append((way, unit.id, module))
            else:
                absent.append(f"{unit.id} ({way}): {why}")

    def rank(choice: tuple[str, str, Any]) -> tuple[int, int]:
        way, language, _ = choice
        return (
            _RANKS.index(way) if way in _RANKS else len(_RANKS),
            _LANGUAGES.index(language) if language in _LANGUAGES else len(_LANGUAGES),
        )

    return sorted(there, key=rank), absent


def check(buffer: Buffer, decoded: Decoded) -> list[str]:
    """Say what is wrong with the events of the example kernel.

    Empty if every unit has recorded what it should.
    """
    wrong = list(decoded.losses())
    expected = EXAMPLE_GRID * buffer.warps
    if len(decoded.units) != expected:
        wrong.append(f"{counted(len(decoded.units), 'unit')} recorded, not {expected}")
    columns = (decoded.events[name].tolist() for name in ("unit", "tag", "flags", "start", "end", "payload"))
    by_unit: dict[int, list[tuple[str, int, int, int, int]]] = {}
    for unit, tag, flags, start, end, payload in zip(*columns, strict=True):
        by_unit.setdefault(unit, []).append((buffer.tags.label(tag), flags, start, end, payload))
    for unit, row in enumerate(decoded.units[["cta", "warp", "start", "end"]].tolist()):
        cta, warp, begin, end = row
        where = f"CTA {cta} warp {warp}"
        rows = by_unit.get(unit, [])
        order = [name for _ in range(EXAMPLE_TILES) for name in ("load", "compute", "store", "tile")] + [
            "done"
        ]
        if [name for name, *_ in rows] != order:
            wrong.append(f"{where} has recorded {', '.join(name for name, *_ in rows) or 'nothing'}")
            continue
        for number in range(EXAMPLE_TILES):
            load, compute, store, tile = rows[4 * number : 4 * number + 4]
            times = [tile[2], load[2], load[3], compute[2], compute[3], store[2], store[3], tile[3]]
            if times != sorted(times) or not begin <= times[0] <= times[-1] <= end:
                wrong.append(f"the regions of tile {number} of {where} do not follow each other inside it")
            if any(
                not flags & HAS_PAYLOAD or payload != number
                for _, flags, _, _, payload in (load, compute, store, tile)
            ):
                wrong.append(f"tile {number} of {where} has another number")
        if not rows[-1][1] & MARK:
            wrong.append(f"the mark of {where} is none")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example; 0 if a trace with the right events was written."""
    languages = [unit.id for unit in catalog.units("intrakernel.dsl")]
    parser = argparse.ArgumentParser(
        prog="python -m warplens.intrakernel.example", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument(
        "--dsl", choices=languages, help="the language of the kernel; default: the best that is here"
    )
    parser.add_argument(
        "--out", default=_OUT, metavar="FILE", help=f"the trace, for ui.perfetto.dev (default: {_OUT})"
    )
    chosen = parser.parse_args(arguments)
    there, absent = _choices(chosen.dsl)
    if not there:
        print("nothing here can run a kernel:", *absent, sep="\n  ", file=sys.stderr)
        print(_advice(chosen.dsl), file=sys.stderr)
        return CaptureError.exit_code
    for way, language, module in there:
        what = f"{language} ({way})"
        try:
            buffer = module.example(way)
            decoded = buffer.decode()
        except Exception as error:  # of whatever package in whatever version; the next way may do
            print(
                f"{what} does not run here: {error if isinstance(error, WarplensError) else repr(error)}",
                file=sys.stderr,
            )
            continue
        wrong = check(buffer, decoded)
        if wrong:
            print(f"{what} did not record the expected regions:", *wrong, sep="\n  ", file=sys.stderr)
            return 1
        try:
            write_trace(decoded, buffer.tags, chosen.out, name=f"example: {what}")
        except OSError as error:
            print(f"{chosen.out} cannot be written: {error}", file=sys.stderr)
            return 1
        tell(what, decoded, chosen.out)
        return 0
    return 1


def _advice(language: str | None) -> str:
    """Say what to install: what the language says itself, or what is the least."""
    if language is None:
        return "A C++ compiler (g++ or clang++) is enough, without a GPU; so is Triton (pip install triton)."
    return f"To install: {' '.join(catalog.find('intrakernel.dsl', language).sections['Install'].split())}"


def tell(what: str, decoded: Decoded, path: str) -> None:
    """Print what was recorded."""
    print(
        f"{what}: {counted(len(decoded.events), 'event')} of {counted(len(decoded.units), 'warp')} "
        f"in {(decoded.end - decoded.start) / 1000:.1f} us"
    )
    for tag, name in enumerate(EXAMPLE_TAGS):
        rows = decoded.events[decoded.events["tag"] == tag]
        if name == "done":
            print(f"  {name:8}{len(rows):4} marks")
        else:
            print(
                f"  {name:8}{len(rows):4} times, "
                f"{float((rows['end'] - rows['start']).mean()) / 1000:8.2f} us on average"
            )
    print(f"wrote {path}; open it in https://ui.perfetto.dev")


if __name__ == "__main__":
    sys.exit(main())
