"""Compares native/drivers/torch.h with PyTorch's wheels; writes the matching versions to torch_abi.h.

`python tools/torch_abi.py [VERSION…]`, e.g. `2.6.0 2.13.0`; without, the last release of every minor version that PyPI has from 2.6 on.
Wheels of aarch64 are read, which have no CUDA in them and are a tenth as large: headers and C++ names are those of x86-64. They are
fetched one by one into build/torch_abi and removed again. Needs g++, readelf and pip.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "torch_abi"
TABLE = ROOT / "native" / "drivers" / "torch_abi.h"
OLDEST = (2, 6)
LIBRARY = "torch/lib/libtorch_cpu.so"
HEADERS = ("ATen/", "c10/", "torch/headeronly/")

_BEGINS = "RecordFunction6before"

# With -fno-access-control: the members are private.
PROGRAM = """
#include <cstddef>
#include <ATen/record_function.h>
#include "drivers/torch.h"
using Theirs = at::RecordFunctionCallback;
using Ours = warplens::TorchCallback;
#define SAME(ours, theirs) static_assert((ours) == (theirs), #theirs)
SAME(warplens::kTorchCallbackSize, sizeof(Theirs));
SAME(offsetof(Ours, start), offsetof(Theirs, start_));
SAME(offsetof(Ours, end), offsetof(Theirs, end_));
SAME(offsetof(Ours, sampling), offsetof(Theirs, sampling_prob_));
SAME(offsetof(Ours, scopes), offsetof(Theirs, scopes_));
SAME(offsetof(Ours, needs_inputs), offsetof(Theirs, needs_inputs_));
SAME(offsetof(Ours, needs_ids), offsetof(Theirs, needs_ids_));
SAME(warplens::kTorchScopes, static_cast<size_t>(at::RecordScope::NUM_SCOPES));
SAME(static_cast<int>(warplens::TorchScope::backward), static_cast<int>(at::RecordScope::BACKWARD_FUNCTION));
SAME(static_cast<int>(warplens::TorchScope::torchscript), static_cast<int>(at::RecordScope::TORCHSCRIPT_FUNCTION));
SAME(static_cast<int>(warplens::TorchScope::custom_class), static_cast<int>(at::RecordScope::CUSTOM_CLASS));
SAME(static_cast<int>(warplens::TorchScope::user), static_cast<int>(at::RecordScope::USER_SCOPE));
template <typename Record>
constexpr bool same_name() {
  if constexpr (requires { typename Record::FunctionDescriptor; }) {
    return sizeof(warplens::TorchName) == sizeof(typename Record::FunctionDescriptor);
  }
  return true;
}
static_assert(same_name<at::RecordFunction>(), "FunctionDescriptor");
extern "C" const size_t sequence_at = offsetof(at::RecordFunction, sequence_nr_);
"""
HEAD = """// Written by `make torch-abi` from the headers of PyTorch's wheels: the versions whose observers are as torch.h says.
#pragma once

#include "torch.h"

namespace warplens {

inline constexpr TorchAbi kTorchAbis[] = {
"""
TAIL = """};

}  // namespace warplens
"""


def versions() -> list[str]:
    """The last release of each minor version on PyPI, from the oldest that counts."""
    words = [sys.executable, "-m", "pip", "index", "versions", "torch"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    line = next(line for line in text.splitlines() if line.startswith("Available versions:"))
    last: dict[tuple[int, int], tuple[int, str]] = {}
    for version in re.findall(r"\d+\.\d+\.\d+", line):
        major, minor, patch = map(int, version.split("."))
        if (major, minor) >= OLDEST:
            last[major, minor] = max(last.get((major, minor), (-1, "")), (patch, version))
    return [version for _, (_, version) in sorted(last.items())]


def fetch(version: str) -> Path:
    """The wheel of a version for aarch64; CalledProcessError if PyPI has none."""
    folder = PLACE / version
    shutil.rmtree(folder, ignore_errors=True)
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    words += ["-d", str(folder), "--python-version", "3.11", "--platform", "manylinux_2_28_aarch64"]
    words += ["--platform", "manylinux2014_aarch64"]
    subprocess.run([*words, f"torch=={version}"], check=True)
    return next(folder.glob("*.whl"))


def symbols() -> list[str]:
    """The names that the agent looks up; those that it can do without are left out."""
    text = (ROOT / "native" / "agent" / "sources" / "torch" / "library.cpp").read_text()
    joined = re.sub(r'"\s+"', "", text)
    return [name for name in re.findall(r'"(_ZN\w+)"', joined) if "profiler" not in name]


def compare(version: str, wheel: Path) -> list[int]:
    """Check the names and layouts of one version; return where its records have their sequence number: now, and with old strings.

    SystemExit where it differs.
    """
    folder = PLACE / version
    with zipfile.ZipFile(wheel) as archive:
        wanted = [
            name
            for name in archive.namelist()
            if name == LIBRARY or name.startswith(tuple(f"torch/include/{prefix}" for prefix in HEADERS))
        ]
        archive.extractall(folder, wanted)
    table = subprocess.run(
        ["readelf", "--wide", "--dyn-syms", str(folder / LIBRARY)], check=True, capture_output=True, text=True
    ).stdout
    exported = {line.split()[-1] for line in table.splitlines() if line.strip() and " UND " not in line}
    lacking = [name for name in symbols() if name not in exported]
    if len([name for name in lacking if _BEGINS in name]) < len(
        [name for name in symbols() if _BEGINS in name]
    ):
        lacking = [name for name in lacking if _BEGINS not in name]  # one of them is enough
    if lacking:
        sys.exit(f"PyTorch {version} does not export {', '.join(lacking)}")
    source = folder / "check.cpp"
    source.write_text(PROGRAM)
    places = []
    for strings in (1, 0):
        words = ["g++", "-std=c++20", "-fno-access-control", "-w", "-S", "-o", "-", str(source)]
        words += [f"-D_GLIBCXX_USE_CXX11_ABI={strings}", "-I", str(folder / "torch" / "include")]
        done = subprocess.run(
            [*words, "-I", str(ROOT / "native")], capture_output=True, text=True, check=False
        )
        place = re.search(r"sequence_at:\s+\.quad\s+(\d+)", done.stdout)
        if done.returncode or place is None:
            sys.exit(f"PyTorch {version} differs from native/drivers/torch.h:\n{done.stderr}")
        places.append(int(place[1]))
    return places


def main() -> None:
    """Compare all versions, and write the table of those that fit."""
    asked = sys.argv[1:] or versions()
    rows = ""
    for version in asked:
        now, old = compare(version, fetch(version))
        print(f"PyTorch {version}: its sequence number lies at {now}, with old strings at {old}")
        major, minor = version.split(".")[:2]
        rows += f"    {{{major}, {minor}, {now}, {old}}},\n"
        shutil.rmtree(PLACE / version)
    if not sys.argv[1:]:
        TABLE.write_text(HEAD + rows + TAIL)


if __name__ == "__main__":
    main()
