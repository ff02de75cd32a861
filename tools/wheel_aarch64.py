"""Tests the aarch64 wheel under qemu, as far as possible without the hardware."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SYSTEM = Path("/usr/aarch64-linux-gnu")  # the C library of the cross compiler
NEEDED = ("qemu-aarch64", "aarch64-linux-gnu-gcc")
LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
  for (int i = 1; i < count; ++i)
    if (!dlopen(names[i], RTLD_NOW)) return fprintf(stderr, "%s\\n", dlerror()), 1;
  return 0;
}
"""
PROGRAM = """
import sys
import warplens.nvtx as nvtx
with nvtx.annotate("outer"):
    pass
print("%d.%d" % sys.version_info[:2], nvtx.enabled())
"""
READ = """
import sys
sys.path.insert(0, sys.argv[1])
import warplens
from warplens.convert.finish import finish
finish(sys.argv[2], sys.argv[3])
with warplens.open(sys.argv[3]) as report:
    print(report.table("nvtx_ranges").column("message").to_pylist().count("outer"))
"""


def _run(*command: object, **variables: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed under qemu: {' '.join(words)}")
    return done.stdout


def _record(folder: Path, name: str, package: Path, root: Path, *program: object) -> str:
    """Run a program that opens the range `outer` once, with the agent in it; what it printed.

    The report is made on this machine.
    """
    spool = folder / f"{name}.spool"
    spool.mkdir()
    agent = package / "warplens" / "_lib" / "libwarplens_agent.so"
    inside = {"NVTX_INJECTION64_PATH": str(agent), "WARPLENS_SPOOL": str(spool), "PYTHONPATH": str(package)}
    told = [word for variable, value in inside.items() for word in ("-E", f"{variable}={value}")]
    printed = _run("qemu-aarch64", "-L", root, *told, *program)
    ranges = _run(sys.executable, "-c", READ, ROOT / "src", spool, folder / f"{name}.warplens")
    if ranges.strip() != "1":
        sys.exit(f"{name} under qemu: its range was recorded {ranges.strip()} times, not once")
    return printed


def _nvtx_headers() -> Path:
    return next(
        Path(part) / "nvidia" / "cu13" / "include"
        for part in sys.path
        if (Path(part) / "nvidia/cu13/include/nvtx3").is_dir()
    )


def try_wheel(wheel: Path, folder: Path, root: Path | None) -> list[str]:
    """Load the libraries and record a program in C.

    With `root`, whose Python is for aarch64, one in Python too. What worked, in words.
    """
    print(f"{wheel.name}: not run on hardware")
    lacking = [name for name in NEEDED if shutil.which(name) is None]
    if lacking:
        print(f"{wheel.name}: not run under qemu either, {' and '.join(lacking)} not found")
        return []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    package = folder / "package"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(package)
    (folder / "load.c").write_text(LOADER, encoding="utf-8")
    _run("aarch64-linux-gnu-gcc", folder / "load.c", "-o", folder / "load", "-ldl")
    _run("qemu-aarch64", "-L", SYSTEM, folder / "load", *sorted((package / "warplens" / "_lib").glob("*.so")))
    source = ROOT / "tests" / "targets" / "nvtx" / "nvtx_core.c"
    _run(
        "aarch64-linux-gnu-gcc",
        "-O1",
        "-isystem",
        _nvtx_headers(),
        source,
        "-o",
        folder / "program",
        "-pthread",
        "-ldl",
    )
    _record(folder, "c", package, SYSTEM, folder / "program")
    worked = ["libraries", "a program in C"]
    for python in sorted(root.glob("usr/bin/python3.??") if root else []):
        printed = _record(folder, python.name, package, root or SYSTEM, python, "-S", "-c", PROGRAM)
        version, bound = printed.split()
        if bound != "True":
            sys.exit(f"{python} under qemu: the wheel's binding for {version} was not loaded")
        worked.append(f"Python {version}")
    print(f"{wheel.name}: works under qemu: {', '.join(worked)}")
    return worked
