"""The torture suite: programs that multiply, and everything that can happen to them, at random moments (`make torture`).

Each round takes a program (`programs.py`) and a case (`cases.py`), both by chance, runs the program under `warplens profile`
while the case happens, and holds the program's output and exit code and the report to what the program noted itself
(`truth.py`): no closed range may be lost, no program harmed, nothing may hang. The seed is printed; with `--seed` the same
rounds come again, with `--only` one of them. What failed keeps its folder.

`--readers` plays damaged reports, spools, indexes, files of other tools and questions to the page instead (`tests/hostile/readers`):
whatever they hold, a reader answers or refuses in words, in little memory, and changes nothing beside them.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.hostile.readers.rounds import KINDS
from tests.hostile.readers.suite import Suite as Readers
from tests.support.optional_dependencies import missing
from tests.torture import programs
from tests.torture.cases import CASES, NEED_TMPFS, Case, Scene
from tests.torture.programs import Program
from tests.torture.running import Reference, Wrong, reference, stacks


@dataclass
class Suite:
    """The rounds of one seed."""

    seed: int
    folder: Path
    case: str | None
    shape: str | None
    failures: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._references: dict[str, Reference] = {}
        self._lock = threading.Lock()
        self._binary = programs.build(self.folder)
        self._shapes = [shape for shape in programs.shapes() if self.shape in (None, shape.name)]
        self._cases: dict[str, tuple[Case, int]] = {**CASES, **({} if missing("tmpfs") else NEED_TMPFS)}
        if self.case is not None:
            self._cases = {self.case: self._cases[self.case]}

    def round(self, number: int) -> None:
        """Do one round; keep its folder where it fails."""
        rng = random.Random(f"{self.seed}/{number}")
        names = list(self._cases)
        name = rng.choices(names, [self._cases[each][1] for each in names])[0]
        program = programs.choose(rng, self._binary, self._shapes)
        folder = self.folder / str(number)
        folder.mkdir()
        begin = time.monotonic()
        scene: Scene | None = None
        try:
            scene = Scene(program, self._reference(program), folder, rng)
            self._cases[name][0](scene)
        except Exception as error:
            what = str(error) if isinstance(error, Wrong) else traceback.format_exc()
            if "waited" in what:
                (folder / "stacks").write_text(stacks(folder), encoding="utf-8")
            with self._lock:
                self.failures.append(f"round {number}: {name} × {program}, in {folder}\n{what}")
                print(
                    f"FAILED {self.failures[-1]}\nagain: --seed {self.seed} --only {number}",
                    file=sys.stderr,
                    flush=True,
                )
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            for running in scene.all if scene is not None else ():
                running.kill_everything()
            with self._lock:
                self.done[name] += 1
                if sys.stdout.isatty():
                    print(
                        f"{number:5} {name:18} {program!s:24} {time.monotonic() - begin:5.1f} s", flush=True
                    )

    def _reference(self, program: Program) -> Reference:
        key = str(program)
        with self._lock:
            if key not in self._references:
                self._references[key] = reference(program, self.folder / f"alone-{len(self._references)}")
            return self._references[key]


def _programs(options: argparse.Namespace, seed: int, folder: Path, numbers: Sequence[int]) -> Suite:
    suite = Suite(seed, folder, options.case, options.program)
    begin = time.monotonic()

    def work(number: int) -> None:
        if time.monotonic() - begin < options.seconds:
            suite.round(number)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, numbers))
    return suite


def _read(options: argparse.Namespace, seed: int, folder: Path, numbers: Sequence[int]) -> Readers:
    suite = Readers(
        seed,
        folder,
        [options.kind] if options.kind else list(KINDS),
        lambda text: print(text, file=sys.stderr, flush=True),
    )
    suite.run(numbers, options.seconds, options.jobs)
    return suite


def main() -> int:
    """Run the rounds; 1 when one failed."""
    parser = argparse.ArgumentParser(
        prog="make torture ARGS=…", description=__doc__.partition("\n")[0] if __doc__ else None
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, help="the same rounds as that time")
    parser.add_argument("--only", type=int, metavar="ROUND", help="this round of the seed alone")
    parser.add_argument("--case", choices=[*CASES, *NEED_TMPFS], help="this case only")
    parser.add_argument(
        "--program", choices=[shape.name for shape in programs.SHAPES], help="this program only"
    )
    parser.add_argument("--jobs", type=int, default=2, help="rounds at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no round after so long")
    parser.add_argument(
        "--readers", action="store_true", help="damaged input for readers instead of programs"
    )
    parser.add_argument("--kind", choices=KINDS, help="this kind of input only")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    folder = Path(tempfile.mkdtemp(prefix="warplens-torture-"))
    print(f"torture: --seed {seed}, in {folder}", flush=True)
    begin = time.monotonic()
    numbers = [options.only] if options.only is not None else range(options.rounds)
    suite = (
        _read(options, seed, folder, numbers)
        if options.readers
        else _programs(options, seed, folder, numbers)
    )
    count = sum(suite.done.values())
    print(", ".join(f"{name} {times}" for name, times in sorted(suite.done.items())))
    print(f"{count} rounds in {time.monotonic() - begin:.0f} s, {len(suite.failures)} failed (--seed {seed})")
    if suite.failures:
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
