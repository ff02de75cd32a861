"""A report of the CPU side, as tables: a program that loads and computes, and a thread that waits for a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warplens.storage.manifest import Manifest
from warplens.testing.timeline import timeline

ORIGIN = 1_000_000_000
TICK = 10_000  # ns between samples
PICTURE = "main   |[step1    ][step2     ]\nloader |!go\nmain   |" + " " * 100
MAIN, LOADER = 0, 1
# frame: parent, kind, function, module, file, line, first line
FRAMES: dict[int, tuple[int | None, str, str, str | None, str | None, int | None, int | None]] = {
    1: (None, "python", "<module>", None, "/app/train.py", 90, 1),
    2: (1, "python", "main", None, "/app/train.py", 80, 70),
    3: (2, "python", "load", None, "/app/train.py", 20, 10),
    4: (3, "native", "memcpy", "libc.so.6", None, None, None),
    5: (2, "python", "step", None, "/app/train.py", 50, 40),
    6: (5, "python", "Model.forward", None, "/app/model.py", 9, 5),
    7: (None, "python", "Thread.run", None, "/lib/threading.py", 900, 890),
    8: (7, "python", "fetch", None, "/app/loader.py", 12, 8),
    9: (2, "python", "load", None, "/app/train.py", 22, 10),
}
# us: begin, end, stack, on the CPU, thread
SAMPLES = [
    (0, 200, 3, True, MAIN),
    (200, 250, 4, True, MAIN),
    (250, 300, 9, True, MAIN),
    (300, 500, 5, False, MAIN),
    (500, 900, 6, True, MAIN),
    (900, 1000, 2, True, MAIN),
    (0, 600, 8, False, LOADER),
    (600, 640, 8, True, LOADER),
    (640, 1000, 8, False, LOADER),
]
STATES = [
    (0, 300, "running", MAIN),
    (300, 500, "blocked", MAIN),
    (500, 520, "runnable", MAIN),
    (520, 1000, "running", MAIN),
    (0, 590, "blocked", LOADER),
    (590, 600, "runnable", LOADER),
    (600, 640, "running", LOADER),
    (640, 1000, "blocked", LOADER),
]


def tables(samples: str = "python", app: str = "/app") -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table of the CPU side; `samples`: of which kind those are; `app`: where the program lies."""
    depths: dict[int | None, int] = {None: -1}
    frames = []
    for frame, (parent, kind, function, module, file, line, first_line) in sorted(FRAMES.items()):
        depths[frame] = depths[parent] + 1
        file = file.replace("/app", app) if file else None
        place = {
            "module": module,
            "file": file,
            "line": line,
            "first_line": first_line,
            "address": 4096 + frame if module else None,
        }
        place |= {"path": f"/usr/lib/{module}", "build_id": "ab12"} if module else {}
        frames.append(
            {
                "frame": frame,
                "process": 0,
                "parent": parent,
                "depth": depths[frame],
                "kind": kind,
                "function": function,
                **place,
            }
        )
    seen = []
    for begin, end, stack, on_cpu, thread in SAMPLES:
        count = (end - begin) * 1000 // TICK
        row = _row(
            begin,
            end - TICK // 1000,
            thread,
            kind=samples,
            count=count,
            weight=count * TICK,
            on_cpu=on_cpu,
            stack=stack,
        )
        seen.append({**row, "gil": on_cpu if samples == "python" else None})
    states = [
        _row(begin, end, thread, state=state, exact=True, cpu=0) for begin, end, state, thread in STATES
    ]
    calls = [
        _row(
            0,
            590,
            LOADER,
            name="recv",
            group="socket",
            result=100,
            fd=5,
            target="10.0.0.1:80",
            bytes=100,
            stack=8,
        ),
        _row(300, 500, MAIN, name="pthread_cond_wait", group="lock", result=0, object=4096, stack=5),
        _row(
            640,
            1000,
            LOADER,
            name="recv",
            group="socket",
            result=-1,
            error="EAGAIN",
            fd=5,
            target="10.0.0.1:80",
            stack=8,
        ),
        _row(10, 60, MAIN, name="fread", group="file", result=1, target="/data/a", bytes=10),
        _row(15, 55, MAIN, name="read", group="file", result=10, fd=3, target="/data/a", bytes=10),
    ]
    gil = [
        _row(0, 300, MAIN, state="hold", held=300_000, waited=0, holds=1, waits=0, interpreter=0),
        _row(300, 520, MAIN, state="wait", held=0, waited=220_000, holds=0, waits=1, interpreter=0),
        _row(300, 1000, LOADER, state="brief", held=100_000, waited=50_000, holds=30, waits=4, interpreter=0),
        _row(520, 1000, MAIN, state="hold", held=480_000, waited=0, holds=1, waits=0, interpreter=0),
    ]
    call = {"file": "/app/train.py", "clipped": False}
    python = [
        _row(0, 1000, MAIN, kind="function", name="main", line=70, depth=0, failed=False, **call),
        _row(10, 290, MAIN, kind="function", name="load", line=10, depth=1, parent=0, failed=False, **call),
        _row(400, 400, MAIN, kind="exception", name="ValueError", line=45, depth=1, parent=0, **call),
    ]
    imports = [
        _row(0, 90, MAIN, name="numpy", self=50_000, depth=0, failed=False),
        _row(10, 50, MAIN, name="numpy.core", self=40_000, depth=1, parent=0, failed=False),
    ]
    access = [_row(15, 55, MAIN, name="read", operation="read", path="/data/a", fd=3, bytes=10, asked=20)]
    collected = [_row(700, 800, MAIN, generation=2, collected=10, uncollectable=0)]
    found = {
        "samples": seen,
        "thread_states": states,
        "osrt": calls,
        "file_access": access,
        "gc": collected,
        "gil": gil,
    }
    found |= {"python_calls": python, "imports": imports}
    for rows in found.values():
        rows.sort(key=lambda row: (row["start"], -row["end"]))
        for number, row in enumerate(rows):
            row["id"] = number
    return {"frames": frames, **found}


def write(path: Path, samples: str = "python", app: str = "/app") -> Manifest:
    """Write the report."""
    return timeline(path, PICTURE, origin=ORIGIN, tick_ns=50_000, tables=tables(samples, app))


def write_program(folder: Path) -> Path:
    """Write the report, and beside it two files of the program: `line 1` to `line 100`, `model 1` to `model 12`."""
    (folder / "train.py").write_text("\n".join(f"line {number}" for number in range(1, 101)))
    (folder / "model.py").write_text("\n".join(f"model {number}" for number in range(1, 13)))
    write(folder / "run.warplens", app=str(folder))
    return folder / "run.warplens"


def _row(begin: int, end: int, thread: int, **more: Any) -> dict[str, Any]:
    return {
        "process": 0,
        "thread": thread,
        "start": ORIGIN + begin * 1000,
        "end": ORIGIN + end * 1000,
        **more,
    }
