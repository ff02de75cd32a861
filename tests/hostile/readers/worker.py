"""Plays rounds in one process, which has so much memory: `python -m tests.hostile.readers.worker SEED KINDS FOLDER MEMORY SECONDS`.

Numbers of rounds come in by lines; for each, a line of JSON goes out when it begins and one when it is over.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.hostile.readers import rounds, templates
from tests.hostile.readers.asking import Wrong
from warplens.cli.light import import_lightly


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def _warm(made: Path, folder: Path) -> None:
    """Load what readers load, so that the limit is for what they read."""
    for number, kind in enumerate(("manifest", "tables", "index", "imports", "questions")):
        place = folder / f"warm-{number}"
        with contextlib.suppress(Wrong):  # it comes again as a round
            rounds.play(made, place, kind, random.Random(number))
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    """Play what is asked for."""
    seed, kinds, folder, memory, seconds = (
        int(sys.argv[1]),
        sys.argv[2].split(","),
        Path(sys.argv[3]),
        int(sys.argv[4]),
        float(sys.argv[5]),
    )
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    import_lightly()
    made = folder / "templates"
    made.mkdir(parents=True)
    templates.make(made)
    _warm(made, folder)
    most = _address_space() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    answers.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        number = int(line)
        name, chance = rounds.choose(seed, number, kinds)
        place = folder / str(number)
        answers.write(json.dumps({"begin": number, "kind": name}) + "\n")
        faulthandler.dump_traceback_later(seconds, exit=True)
        begun, wrong = time.monotonic(), None
        try:
            rounds.play(made, place, name, chance)
        except Wrong as error:
            wrong = (
                f"{error}\n{''.join(traceback.format_exception(error.__cause__)) if error.__cause__ else ''}"
            )
        except BaseException:
            wrong = traceback.format_exc()
        faulthandler.cancel_dump_traceback_later()
        tempfile.tempdir = None
        if wrong is None:
            shutil.rmtree(place, ignore_errors=True)
        answers.write(
            json.dumps({"end": number, "kind": name, "wrong": wrong, "seconds": time.monotonic() - begun})
            + "\n"
        )


if __name__ == "__main__":
    main()
