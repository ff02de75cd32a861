"""Builds the native half with each installed compiler: g++ 12+, and clang 16+ with libstdc++ and libc++.

usage: PYTHON tools/compilers.py [--list] [--werror] [NAME…]; NAME is one of those that --list shows, as g++-14 or clang++-19-libc++.
Each has its folder in build/compilers. Prints a line for each; exits with 1 where one failed. `--werror` turns warnings into errors, as
CI does. `make compilers` does it here, and in Debian's unstable (tools/unstable.py), which has most of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import unstable

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "compilers"
OLDEST = {"g++": 12, "clang++": 16}
NEWER = 40  # no compiler has such a number yet
LIMIT_S = 1800
# Their packages in Debian's unstable, which has some of them. Of libc++ one version can be installed.
GCC, CLANG, LIBCXX = "g++-{}", "clang-{}", ("libc++-{}-dev", "libc++abi-{}-dev")


@dataclass(frozen=True)
class Compiler:
    """A compiler, with the standard library that it takes."""

    cxx: str
    cc: str
    library: str  # empty: its own choice, libstdc++ on Linux
    version: str

    @property
    def name(self) -> str:
        """What the command line calls it."""
        return Path(self.cxx).name + (f"-{self.library}" if self.library else "")


def _version(cxx: str) -> str:
    done = subprocess.run(
        [cxx, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=False
    )
    return done.stdout.split()[-1] if done.returncode == 0 and done.stdout.split() else ""


def _works(cxx: str, words: list[str]) -> bool:
    text = "#include <vector>\nint main() { return int(std::vector<int>().size()); }\n"
    done = subprocess.run(
        [cxx, "-xc++", "-std=c++20", *words, "-", "-o", os.devnull],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0


def compilers() -> list[Compiler]:
    """Those of PATH, each version once."""
    found: dict[tuple[str, str], Compiler] = {}
    for kind, oldest in OLDEST.items():
        names = [*(f"{kind}-{number}" for number in range(oldest, NEWER)), kind]
        for cxx in filter(None, map(shutil.which, names)):
            version = _version(cxx)
            cc = str(
                Path(cxx).with_name(
                    Path(cxx).name.replace("g++", "gcc")
                    if kind == "g++"
                    else Path(cxx).name.replace("++", "")
                )
            )
            number = re.match(r"\d+", version)
            if number is None or int(number[0]) < oldest or not Path(cc).exists():
                continue
            for library in ("", "libc++") if kind == "clang++" else ("",):
                if _works(cxx, [f"-stdlib={library}"] if library else []):
                    found.setdefault((kind + library, version), Compiler(cxx, cc, library, version))
    return list(found.values())


def build(compiler: Compiler, *, werror: bool) -> str:
    """Build everything with one compiler; what it said where that failed."""
    folder = FOLDER / compiler.name
    programs = Path(sys.executable).parent
    once = f"{sys.executable};-S;-E;{ROOT / 'tools' / 'compile_once.py'}"
    words = {
        "CMAKE_C_COMPILER": compiler.cc,
        "CMAKE_CXX_COMPILER": compiler.cxx,
        "CMAKE_C_COMPILER_LAUNCHER": once,
        "CMAKE_CXX_COMPILER_LAUNCHER": once,
        "CMAKE_CXX_FLAGS": f"-stdlib={compiler.library}" if compiler.library else "",
        "CMAKE_MAKE_PROGRAM": programs / "ninja",
        "Python_EXECUTABLE": sys.executable,
        "WARPLENS_WERROR": "ON" if werror else "OFF",
        "WARPLENS_NATIVE_TESTS": "ON",
    }
    shutil.rmtree(folder, ignore_errors=True)
    made = [
        str(programs / "cmake"),
        "-S",
        str(ROOT),
        "-B",
        str(folder),
        "-G",
        "Ninja",
        *(f"-D{name}={value}" for name, value in words.items()),
    ]
    for command in (made, [str(programs / "cmake"), "--build", str(folder), "--", "-k", "0"]):
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=LIMIT_S,
        )
        (folder.with_suffix(".log")).write_text(done.stdout, encoding="utf-8")
        if done.returncode != 0:
            return done.stdout
    return ""


def in_unstable(words: list[str]) -> int:
    """Do the same in Debian's unstable, with the compilers that it has."""
    try:
        unstable.make(())
        numbers = range(min(OLDEST.values()), NEWER)
        packages = unstable.known(template.format(number) for template in (GCC, CLANG) for number in numbers)
        libraries = [
            found
            for number in numbers
            if len(found := unstable.known(name.format(number) for name in LIBCXX)) == len(LIBCXX)
        ]
        unstable.make([*packages, *(libraries[-1] if libraries else ())])
        unstable.copy_checkout()
        name, python = list(unstable.pythons().items())[-1]
    except unstable.Lacking as reason:
        print(f"no compilers of Debian's unstable: {reason}", file=sys.stderr)
        return unstable.LACKING
    folder = f"build/recorded/{name}"
    made = unstable.inside(
        ["make", "native", f"PYTHON={python}", f"VENV={folder}/venv", f"BUILD={folder}/native"],
        folder=unstable.CHECKOUT,
        quiet=True,
    )
    if made.returncode != 0:
        print(made.stdout[-4000:])
        return 1
    limit = LIMIT_S * NEWER
    return unstable.inside(
        [f"{folder}/venv/bin/python", "tools/compilers.py", *words], folder=unstable.CHECKOUT, timeout=limit
    ).returncode


def main() -> int:
    """Build with those that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="say what is here, and build nothing")
    parser.add_argument("--werror", action="store_true", help="turn warnings into errors")
    parser.add_argument(
        "--unstable", action="store_true", help="with the compilers of Debian's unstable instead"
    )
    words = parser.parse_args()
    if words.unstable:
        return in_unstable([word for word in sys.argv[1:] if word != "--unstable"])
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = 0
    for compiler in compilers():
        if words.names and compiler.name not in words.names:
            continue
        if words.list:
            print(f"{compiler.name} {compiler.version}")
            continue
        began = time.monotonic()
        said = build(compiler, werror=words.werror)
        failed += bool(said)
        print(
            f"{compiler.name} {compiler.version}: {'failed' if said else 'built'} in {time.monotonic() - began:.0f} s",
            flush=True,
        )
        for line in list(dict.fromkeys(re.findall(r".*(?:error|warning): .*", said)))[:20]:
            print(f"  {line}")
        if said and not re.search(r"(error|warning): ", said):
            print(said[-2000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
