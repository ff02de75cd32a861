"""Builds the sdist and a wheel for each machine into dist/, and tests the wheels: `make wheels`.

A wheel holds the agent, the reader and the page, which no version of Python matters to, and a binding for each CPython whose headers are
here. It is `py3-none`: other Pythons record with it too, without `warplens.nvtx`. The wheel for aarch64 is made by a cross compiler.

usage: wheels.py [--headers 3.14=FOLDER] [--aarch64-root FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_headers
import wheel_aarch64
import wheel_trial
from pythons import FREE_THREADED, pythons
from wheel_contents import complaints

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheels"
MADE = (
    WORK / "made.json"
)  # what was built from which commit, and where it worked; read by tools/release_check.py
MANYLINUX = "manylinux_2_28"
HOST = platform.machine()
CROSS = {"aarch64": "aarch64-linux-gnu-"}
ONCE = f"{sys.executable};-S;-E;{ROOT / 'tools' / 'compile_once.py'}"


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command with .venv's programs first on PATH; its failure ends this with what it said."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": path,
        "CMAKE_C_COMPILER_LAUNCHER": ONCE,
        "CMAKE_CXX_COMPILER_LAUNCHER": ONCE,
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def build_sdist() -> Path:
    """Build the page and the sdist; return the folder of its sources, from which the wheels are built."""
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(WORK / "source", ignore_errors=True)
    print(run(sys.executable, "tools/web.py", "build", "--fetch"), end="")
    run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", DIST)
    (packed,) = DIST.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(WORK / "source", filter="data")
    (source,) = (WORK / "source").iterdir()
    return source


def build_wheel(source: Path, machine: str, headers: list[python_headers.Headers]) -> Path:
    """Build the wheel for `machine`, and see that the symbols it needs are those its tag allows.

    Return it.
    """
    defines = {"WARPLENS_PYTHONS": ";".join(one.definition(machine) for one in headers)}
    if machine != HOST:
        defines |= {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": machine}
        defines |= {"CMAKE_C_COMPILER": f"{CROSS[machine]}gcc", "CMAKE_CXX_COMPILER": f"{CROSS[machine]}g++"}
    words = [f"--config-setting=cmake.define.{name}={value}" for name, value in defines.items()]
    words += [
        f"--config-setting=wheel.tags=py3-none-{MANYLINUX}_{machine}",
        f"--config-setting=build-dir=build/{machine}",
    ]
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", DIST, *words, source)
    (wheel,) = DIST.glob(f"*_{machine}.whl")
    allowed = json.loads(run(sys.executable, "-m", "auditwheel", "show", "--json", wheel))["overall_tag"]
    print(f"{machine}: its symbols allow {allowed}")
    if not symbols_fit(allowed, machine):
        sys.exit(
            f"{wheel.name} is tagged {MANYLINUX}: see docs/decisions/0003-old-glibc.md, and `auditwheel show {wheel}`"
        )
    return wheel


def symbols_fit(allowed: str, machine: str) -> bool:
    """Whether `allowed`, what auditwheel says of the symbols, is manylinux of glibc 2.28 or older, and of the machine."""
    match = re.fullmatch(rf"manylinux_2_(\d+)_{machine}", allowed)
    return match is not None and int(match[1]) <= int(MANYLINUX.rpartition("_")[2])


def print_bindings(
    machine: str, headers: list[python_headers.Headers], missing: dict[python_headers.Version, str]
) -> None:
    """Say which Pythons the wheel has a binding for, and why it lacks others."""
    print(
        f"{machine}: bindings for CPython {', '.join(python_headers.named(one.version) for one in headers) or '(none)'}"
    )
    foreign = [python_headers.named(one.version) for one in headers if one.machine != machine]
    if foreign:
        print(
            f"{machine}: pyconfig.h of {HOST} was taken for {', '.join(foreign)} (docs/dev/releasing.md says what differs)"
        )
    for version, why in missing.items():
        print(
            f"{machine}: no binding for CPython {python_headers.named(version)}: {why} (--headers {python_headers.named(version)}=FOLDER)"
        )


def try_wheel(wheel: Path) -> list[str]:
    """Try the wheel with every CPython of this machine; the versions that it works with.

    One that it does not work with ends this.
    """
    alone = wheel_trial.without_network()
    if not alone:
        print("the network cannot be taken away here (unshare is refused): the trial goes on with it")
    worked = []
    for version, python in pythons().items():
        name = python_headers.named(version)
        if version in FREE_THREADED:
            continue  # not all dependencies of the reader have wheels for these; tests record their programs
        folder = WORK / "trial" / name
        dependencies = folder / "dependencies"
        run(python, "-m", "venv", "--clear", folder / "download")  # its own pip knows what this version needs
        words = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--dest", dependencies]
        run(folder / "download" / "bin" / "python", "-m", "pip", "download", *words, wheel)
        run(*alone, sys.executable, ROOT / "tools" / "wheel_trial.py", wheel, python, folder)
        has = wheel_trial.has_binding(wheel, python)
        print(f"{wheel.name}: works with {python}{'' if has else ', without a binding'}")
        worked.append(name)
    return worked


def main() -> None:
    """Build, check, try, and write down what was made."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--headers",
        action="append",
        default=[],
        metavar="VERSION=FOLDER",
        help="headers of a Python that is not installed",
    )
    parser.add_argument(
        "--aarch64-root",
        type=Path,
        metavar="FOLDER",
        help="a root file system with a Python of aarch64, to try bindings",
    )
    options = parser.parse_args()
    MADE.unlink(missing_ok=True)
    made: dict[str, dict[str, list[str]]] = {}
    source = build_sdist()
    try:
        own, installed = python_headers.handed_over(options.headers), python_headers.of_interpreters()
        for machine in [HOST, *(other for other in CROSS if other != HOST)]:
            if machine != HOST and shutil.which(f"{CROSS[machine]}g++") is None:
                print(f"{machine}: not built, {CROSS[machine]}g++ is not here")
                continue
            headers, missing = python_headers.find(machine, HOST, own, installed)
            print_bindings(machine, headers, missing)
            wheel = build_wheel(source, machine, headers)
            versions = [one.version for one in headers]
            if found := complaints(wheel, source, machine, versions):
                sys.exit("\n".join(found))
            if machine == HOST:
                worked = try_wheel(wheel)
            else:
                worked = wheel_aarch64.try_wheel(wheel, WORK / "trial" / machine, options.aarch64_root)
            made[wheel.name] = {
                "bindings": [python_headers.named(version) for version in versions],
                "worked": worked,
            }
    except python_headers.BadHeaders as bad:
        sys.exit(str(bad))
    files = sorted(DIST.iterdir())
    print(run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files), end="")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    MADE.write_text(
        json.dumps({"commit": commit, "files": digests, "wheels": made}, indent=1), encoding="utf-8"
    )
    for path in files:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1024:,.0f} KiB")


if __name__ == "__main__":
    main()
