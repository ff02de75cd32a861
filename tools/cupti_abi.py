"""Compares native/drivers/cupti.h and the tests' fake CUPTI with the headers of CUPTI wheels from PyPI.

`python tools/cupti_abi.py [VERSION…]`, e.g. `12.4 13.0`; without, every minor version that PyPI has from 11.8 on. The wheels are kept
below build/cupti_abi and never become part of anything: their licence allows to use them, not to pass them on. Needs g++ and pip.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from cupti_facts import CONSTANTS, OWN, RECORDS, STRUCTURES
from cupti_fake_check import CHECKS, check

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "cupti_abi"
# Package of CUPTI, and of the headers of CUDA that its own include; by major version.
PACKAGES = {
    11: ("nvidia-cuda-cupti-cu11", "nvidia-cuda-runtime-cu11"),
    12: ("nvidia-cuda-cupti-cu12", "nvidia-cuda-runtime-cu12"),
    13: ("nvidia-cuda-cupti", "nvidia-cuda-runtime"),
}
# The headers of CUDA ask for macros of the compiler nvcc; a plain compiler needs none of them.
HOST_DEFINES = "".join(
    f"#define {name}\n"
    for name in (
        *(
            "CUDARTAPI",
            "CUDARTAPI_CDECL",
            "CUDA_CB",
            "__host__",
            "__device__",
            "__device_builtin__",
            "__cudart_builtin__",
        ),
        *("__device_builtin_texture_type__", "__device_builtin_surface_type__", "__CUDA_DEPRECATED"),
    )
)
HOST_DEFINES += "".join(
    f"#define {name}(n) __attribute__((aligned(n)))\n" for name in ("__align__", "__builtin_align__")
)

PROLOGUE = """
#include <cstddef>
#include <cstdio>
#include <cupti.h>
#include "drivers/cupti.h"
static int g_wrong = 0, g_seen = 0;
static void place(const char *what, size_t ours, size_t our_size, size_t real, size_t real_size) {
  ++g_seen;
  if (ours != real || our_size != real_size) {
    ++g_wrong;
    std::printf("%s: %zu bytes at %zu; NVIDIA: %zu bytes at %zu\\n", what, our_size, ours, real_size, real);
  }
}
static void number(const char *what, long long ours, long long real) {
  ++g_seen;
  if (ours != real) {
    ++g_wrong;
    std::printf("%s is %lld; NVIDIA: %lld\\n", what, ours, real);
  }
}
static void absent(const char *what, unsigned since) {
  if (CUPTI_API_VERSION >= since) {
    ++g_wrong;
    std::printf("%s should exist since CUPTI %u, but is not in %u\\n", what, since, unsigned{CUPTI_API_VERSION});
  }
}
template <typename> struct Signature;
template <typename R, typename... A> struct Signature<R (*)(A...)> {
  static constexpr size_t count = sizeof...(A), result = sizeof(R);
  static constexpr size_t sizes[] = {0, sizeof(A)...};
};
template <typename Ours, typename Real> static void function(const char *what) {
  ++g_seen;
  bool same = Signature<Ours>::count == Signature<Real>::count && Signature<Ours>::result == Signature<Real>::result;
  for (size_t at = 0; same && at <= Signature<Ours>::count; ++at) {
    same = Signature<Ours>::sizes[at] == Signature<Real>::sizes[at];
  }
  if (!same) {
    ++g_wrong;
    std::printf("%s has other parameters\\n", what);
  }
}
#define PLACE(Ours, field, Real, name, since)                                                                        \\
  []<typename R>(R *) {                                                                                              \\
    if constexpr (requires(R r) { r.name; }) {                                                                       \\
      R *r = nullptr;                                                                                                \\
      Ours *o = nullptr;                                                                                             \\
      place(#Ours "." #field, offsetof(Ours, field), sizeof(o->field), offsetof(R, name), sizeof(r->name));          \\
    } else {                                                                                                         \\
      absent(#Ours "." #field, since);                                                                               \\
    }                                                                                                                \\
  }(static_cast<Real *>(nullptr));
int main() {
"""
EPILOGUE = """
  std::printf("%d declarations compared, %d differ\\n", g_seen, g_wrong);
  return g_wrong != 0;
}
"""


def pip(*words: str) -> str:
    """Run pip; its output. SystemExit with what it says when it fails."""
    done = subprocess.run([sys.executable, "-m", "pip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"pip {' '.join(words)}\n{done.stderr}")
    return done.stdout


def offered() -> dict[str, str]:
    """Of each minor version from 11.8 on, the newest wheel of CUPTI that PyPI has."""
    found: dict[str, str] = {}
    for cupti, _ in PACKAGES.values():
        line = next(
            line
            for line in pip("index", "versions", cupti).splitlines()
            if line.startswith("Available versions:")
        )
        for version in line.partition(":")[2].split(","):
            number = version.strip()
            minor = ".".join(number.split(".")[:2])
            if tuple(map(int, minor.split("."))) >= (11, 8):
                found.setdefault(minor, number)  # newest first
    return dict(sorted(found.items(), key=lambda item: tuple(map(int, item[0].split(".")))))


def headers(package: str, version: str) -> Path:
    """Download a wheel unless it is there, and return the folder of its headers."""
    folder = PLACE / f"{package}-{version.replace('*', 'x')}"
    if not folder.exists():
        platforms = [
            word
            for glibc in ("2_28", "2_27", "2_25", "2_17")
            for word in ("--platform", f"manylinux_{glibc}_x86_64")
        ]
        wheels = folder.with_suffix(".wheels")
        pip("download", "-q", f"{package}=={version}", "--no-deps", "--only-binary", ":all:", *platforms,
            *("--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64", "-d", str(wheels)))  # fmt: skip
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as packed:
            packed.extractall(
                folder, [name for name in packed.namelist() if name.endswith(".h") or "/libcupti.so" in name]
            )
    return next(path.parent for path in folder.rglob("*.h") if path.name in {"cupti.h", "cuda.h"})


def newest(text: str, record: str) -> str | None:
    """The newest structure of a record that a header declares."""
    numbers = [
        int(number or 1) for number in re.findall(rf"^\}} CUpti_Activity{record}(\d*);", text, re.MULTILINE)
    ]
    return f"CUpti_Activity{record}{max(numbers) if max(numbers) > 1 else ''}" if numbers else None


def fields(words: str) -> Iterator[tuple[str, str, str]]:
    """Ours, NVIDIA's name, and since when it is there (0: always)."""
    for word in words.split():
        pair, _, since = word.partition("@")
        ours, _, real = pair.partition("=")
        yield ours, real or ours, since or "0"


def comparison(include: Path) -> str:
    """A program that compares our declarations with these headers."""
    text = "\n".join(
        path.read_text(encoding="utf-8", errors="replace") for path in sorted(include.glob("cupti*.h"))
    )
    lines = []
    for ours, (record, words) in RECORDS.items():
        real = newest(text, record)
        lines += (
            [f"  PLACE({ours}, {a}, {real}, {b}, {since})" for a, b, since in fields(words)] if real else []
        )
    for ours, (real, words) in STRUCTURES.items():
        if re.search(rf"^\}} {real};", text, re.MULTILINE):
            lines += [f"  PLACE({ours}, {a}, {real}, {b}, {since})" for a, b, since in fields(words)]
            if all(since == "0" for _, _, since in fields(words)):
                lines.append(f'  place("{ours}", 0, sizeof({ours}), 0, sizeof({real}));')
    lines += [f'  number("{a}", {a}, {b});' for a, b in CONSTANTS.items() if re.search(rf"\b{b}\b", text)]
    ours_text = (ROOT / "native" / "drivers" / "cupti_functions.h").read_text(encoding="utf-8")
    for member, name in re.findall(r"^\s*X\((\w+), (\w+),", ours_text, re.MULTILINE):
        if re.search(rf"\b{name}\s*\(", text):
            lines.append(f'  function<decltype(CuptiFunctions::{member}), decltype(&{name})>("{name}");')
    return PROLOGUE + "\n".join(lines) + EPILOGUE


def run_program(source: str, name: str, *include: Path) -> bool:
    """Compile and run; whether all is well."""
    stub = PLACE / "stub" / "crt"
    stub.mkdir(parents=True, exist_ok=True)
    (stub / "host_defines.h").write_text(HOST_DEFINES, encoding="utf-8")
    path = PLACE / f"{name}.cpp"
    path.write_text(source, encoding="utf-8")
    words = [f"-I{folder}" for folder in (ROOT / "native", *include, stub.parent)]
    # NVIDIA's functions are only looked at, never called; `&` of one would ask the linker for it.
    command = ["g++", "-std=c++20", "-w", "-O0", *words, str(path), "-o", str(PLACE / name)]
    if subprocess.run(command, check=False).returncode:
        return False
    return subprocess.run([str(PLACE / name)], check=False).returncode == 0


def unnamed() -> list[str]:
    """Constants of ours that nothing here is compared with."""
    text = (ROOT / "native" / "drivers" / "cupti.h").read_text(encoding="utf-8")
    own = re.findall(r"\b(kCupti(?!Since)\w+) = (?!kCupti)", text)
    versions = {name for name in own if re.fullmatch(r"kCupti1\d\d(u\d)?", name)}
    return sorted(set(own) - set(CONSTANTS) - OWN - versions)


def main(words: list[str]) -> int:
    """Compare with the wheels of these minor versions; 1 when something differs."""
    PLACE.mkdir(parents=True, exist_ok=True)
    wrong = 0
    if lacking := unnamed():
        print("not compared, for want of a line in tools/cupti_facts.py: " + " ".join(lacking))
        wrong += 1
    every = offered()
    for minor in words or every:
        cupti, cuda = PACKAGES[int(minor.split(".", maxsplit=1)[0])]
        include = headers(cupti, every[minor])
        others = headers(cuda, f"{minor}.*")
        print(f"CUPTI {every[minor]}: ", end="", flush=True)
        wrong += not run_program(comparison(include), f"compare-{minor}", include, others)
        text = (include / "cupti_activity.h").read_text(encoding="utf-8", errors="replace")
        structures = {name: real for name in CHECKS if (real := newest(text, name))}
        wrong += not check(minor, structures, [f"-I{folder}" for folder in (include, others, PLACE / "stub")])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
