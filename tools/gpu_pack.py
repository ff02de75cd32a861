"""Makes build/gpu: the files that a GPU machine without a network needs beside a checkout.

`make gpu-pack`; needs no GPU.

usage: PYTHON tools/gpu_pack.py [--python VERSION] [--headers VERSION=FOLDER] [--lacks NAME]… [--cubins ARCHITECTURE]…

Built libraries, for the case that nothing compiles there; wheels of packages that are missing there; kernels of CuTe DSL; `run.sh`,
which is all that a run needs. What cannot be made here is named, and the rest is made.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_headers
from gpu_build import MADE_OF, PACK, PACKAGE, ROOT, digest

LIMIT = 60 << 20  # bytes of the pack
ONCE = f"{sys.executable};-S;-E;{ROOT / 'tools' / 'compile_once.py'}"
# pip takes the numbers of manylinux by the letter.
GLIBC = ("_2_28", "_2_27", "_2_24", "_2_17", "2014", "2010", "1")
SCRIPT = """\
#!/bin/sh
# Runs what needs a GPU, with what lies beside this file: sh build/gpu/run.sh probe look truth
cd "$(dirname "$0")/../.." || exit 1
unset TRITON_INTERPRET NUMBA_ENABLE_CUDASIM
exec "${PYTHON:-python3}" tools/gpu.py --limit 560 "$@"
"""


def libraries(pack: Path) -> None:
    """Copy the built native half of this checkout, and write down of what sources it is."""
    shutil.rmtree(pack / "native", ignore_errors=True)
    (pack / "native" / "nvtx").mkdir(parents=True)
    shutil.copytree(PACKAGE / "_lib", pack / "native" / "_lib")
    for binding in (PACKAGE / "nvtx").glob("_binding*.so"):
        shutil.copy2(binding, pack / "native" / "nvtx")
    (pack / "pack.json").write_text(
        json.dumps({"native": digest(MADE_OF), "tree": digest()}) + "\n", encoding="utf-8"
    )
    (pack / "run.sh").write_text(SCRIPT, encoding="utf-8")


def binding(pack: Path, wanted: python_headers.Version, own: dict[python_headers.Version, Path]) -> str:
    """Build the binding for another Python, whose headers must be here; say what became of it."""
    machine = platform.machine()
    headers, missing = python_headers.find(machine, machine, own, python_headers.of_interpreters())
    found = next((one for one in headers if one.version == wanted), None)
    name = python_headers.named(wanted)
    if found is None:
        return f"no binding for Python {name}: {missing[wanted]} (--headers {name}=FOLDER)"
    made = ROOT / "build" / "gpu-binding"
    cmake = str(Path(sys.executable).with_name("cmake"))
    words = ["-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", "-DWARPLENS_PARTS=bindings"]
    words += [
        f"-DWARPLENS_PYTHONS={found.definition(machine)}",
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={ONCE}",
        f"-DCMAKE_C_COMPILER_LAUNCHER={ONCE}",
    ]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MAKEFLAGS": "",
    }
    for step in (
        ["-S", str(ROOT), "-B", str(made), *words],
        ["--build", str(made)],
        ["--install", str(made), "--prefix", str(made / "installed")],
    ):
        done = subprocess.run([cmake, *step], env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"no binding for Python {name}: {(done.stderr or done.stdout).strip()[-2000:]}"
    (file,) = (made / "installed" / "warplens" / "nvtx").glob(
        f"*{found.definition(machine).partition('=')[0]}.so"
    )
    shutil.copy2(file, pack / "native" / "nvtx")
    return f"binding for Python {name}"


def wheels(folder: Path, names: list[str], python: str) -> str:
    """Get a wheel of each package, of the version that is tested here, for the Python there."""
    shutil.rmtree(folder, ignore_errors=True)
    wanted = []
    for name in names:
        try:
            wanted.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            wanted.append(name)
    platforms = [
        word for number in GLIBC for word in ("--platform", f"manylinux{number}_{platform.machine()}")
    ]
    words = [
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--python-version",
        python,
        "--implementation",
        "cp",
        *platforms,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *words, "--dest", str(folder), *wanted],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return f"no wheels of {', '.join(wanted)}: {done.stderr.strip()[-2000:]}"
    return f"wheels of {', '.join(wanted)} for Python {python}"


def cubins(architectures: list[str]) -> str:
    """Compile the kernels of CuTe DSL, where its compiler is here."""
    done = subprocess.run(
        [sys.executable, "tools/cubins.py", *architectures],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.strip()
    old = ", those of an earlier pack stay" if (PACK / "cubins").is_dir() else ""
    return f"no kernels of CuTe DSL{old}: {done.stderr.strip()[-2000:]}"


def size(folder: Path) -> dict[Path, int]:
    """The bytes of each file in a folder."""
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def main() -> int:
    """Make the pack; 1 where it is too large."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--python", default="3.12", metavar="VERSION", help="the Python there (3.12)")
    parser.add_argument(
        "--headers",
        action="append",
        default=[],
        metavar="VERSION=FOLDER",
        help="headers of a Python that is not installed here",
    )
    parser.add_argument(
        "--lacks",
        action="append",
        default=[],
        metavar="NAME",
        help="a package that is missing there, beside duckdb",
    )
    parser.add_argument(
        "--cubins",
        action="append",
        default=[],
        metavar="ARCHITECTURE",
        help="compile kernels for it (sm_90a)",
    )
    words = parser.parse_args()
    PACK.mkdir(parents=True, exist_ok=True)
    libraries(PACK)
    major, _, minor = words.python.partition(".")
    try:
        print(binding(PACK, (int(major), int(minor)), python_headers.handed_over(words.headers)))
    except (python_headers.BadHeaders, ValueError) as bad:
        sys.exit(f"gpu-pack: {bad}")
    print(wheels(PACK / "wheels", ["duckdb", *words.lacks], words.python))
    print(cubins(words.cubins or ["sm_90a"]))
    sizes = size(PACK)
    total = sum(sizes.values())
    print(
        f"{PACK.relative_to(ROOT)}: {total / 2**20:.1f} MiB of at most {LIMIT >> 20}; there: sh build/gpu/run.sh probe look truth"
    )
    if total > LIMIT:
        largest = sorted(sizes, key=lambda path: -sizes[path])[:5]
        print(
            "gpu-pack: too large; the largest are",
            *(f"  {path.relative_to(PACK)} {sizes[path] / 2**20:.1f} MiB" for path in largest),
            sep="\n",
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
