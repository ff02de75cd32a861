"""Builds and loads floor.c, the cheapest possible C extension, and times loops of one statement."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LOOP = "loop"
R = "R"
STATEMENTS = {
    LOOP: "pass",
    R: "with null: pass",
    "with Null()": "with Null(): pass",
    "plain f()": "g()",
    "C noop()": "noop()",
    "nullcontext": "with nullcontext: pass",
    "@contextmanager": "with generator(): pass",
    "perf_counter_ns()": "perf_counter_ns()",
}
_ASK = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX')); print(sysconfig.get_path('include'))"


def build_floor(folder: Path, python: str) -> Path:
    """Compile floor.c for this interpreter; return the module."""
    asked = subprocess.run([python, "-c", _ASK], check=True, stdout=subprocess.PIPE, text=True)
    suffix, include = asked.stdout.split("\n")[:2]
    target = folder / f"floor{suffix}"
    subprocess.run(
        ["gcc", "-O2", "-fPIC", "-shared", f"-I{include}", str(HERE / "floor.c"), "-o", str(target)],
        check=True,
    )
    return target


def floor_names(path: str) -> dict[str, Any]:
    """The names that STATEMENTS use."""
    import contextlib
    import time

    specification = importlib.util.spec_from_file_location("floor", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)

    @contextlib.contextmanager
    def generator() -> Any:
        yield

    names: dict[str, Any] = {
        "null": module.Null(),
        "Null": module.Null,
        "noop": module.noop,
        "generator": generator,
    }
    names |= {"nullcontext": contextlib.nullcontext(), "perf_counter_ns": time.perf_counter_ns}
    exec("def g(): pass", names)
    return names


def loop(
    statement: str, names: dict[str, Any], before: str = "pass", after: str = "pass"
) -> Callable[[int], object]:
    """Return a function that runs the statement N times, with its names as globals."""
    namespace: dict[str, Any] = {}
    exec(f"def loop(count):\n {before}\n for i in range(count):\n  {statement}\n {after}", names, namespace)
    function: Callable[[int], object] = namespace["loop"]
    return function


def async_loop(
    statement: str, names: dict[str, Any], run: Callable[[Any], object]
) -> Callable[[int], object]:
    """The same within a coroutine, which `run` runs to its end."""
    namespace: dict[str, Any] = {}
    exec(f"async def loop(count):\n for i in range(count):\n  {statement}", names, namespace)
    coroutine = namespace["loop"]
    return lambda count: run(coroutine(count))
