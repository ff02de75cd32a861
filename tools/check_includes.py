"""Checks the includes in native/: layers are respected, and each file includes the headers it uses.

The second because tools/compile_once.py puts some headers of the standard library before every file: only builds without
it would notice that one was forgotten.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "native"
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Folder to the folders whose headers it may include; every folder may include its own and the C ABI in include/.
ALLOWED: dict[str, set[str]] = {
    "include": set(),
    "spool": set(),
    "drivers": set(),
    "preload": set(),
    "device": set(),
    "reader": set(),
    "agent/hooks": {"spool", "drivers", "agent"},
    "agent/sources": {"spool", "drivers", "agent", "agent/hooks"},
    "agent": {"spool", "drivers", "agent/hooks", "agent/sources"},  # it lists and starts the sources
    "bindings": {"drivers"},
    "compat": set(),
}
SEES_PYTHON = {"bindings"}
SEES_NVTX = {"drivers", "agent/sources", "bindings"}
# What of the standard library needs which header.
NEEDS = {
    "algorithm": "all_of any_of binary_search clamp copy copy_n fill find find_if lower_bound max min none_of remove_if reverse sort "
    "stable_sort unique upper_bound",
    "array": "array",
    "atomic": "atomic atomic_flag atomic_ref atomic_thread_fence atomic_signal_fence",
    "cstdio": "fprintf snprintf",
    "cstring": "memcmp memcpy memmove memset strcmp strlen strncmp",
    "memory": "make_shared make_unique shared_ptr unique_ptr",
    "mutex": "call_once lock_guard mutex once_flag scoped_lock unique_lock",
    "new": "bad_alloc nothrow",
    "string": "stoi stoull string to_string",
    "string_view": "string_view",
    "unordered_map": "unordered_map",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in NEEDS.items() for name in names.split()}
USED = re.compile(r"\bstd::(\w+)")
COMMENT = re.compile(r"//.*")
VENDOR = re.compile(r"^(cuda|cupti|nvml|nvperf|hip|rocm)[\w/]*\.h$")


def folder_of(path: Path) -> str:
    """Name the rule folder that a path under native/ belongs to; the longest one wins."""
    text = path.as_posix()
    return max((name for name in [*ALLOWED, "tests"] if text.startswith(f"{name}/")), key=len, default="")


def resolve(source: Path, quote: str, name: str) -> Path | None:
    """Find the included file below native/: in include/, from native/ itself or, where quoted, beside the source or its folder."""
    beside: tuple[Path, ...] = (
        (source.parent, ROOT / folder_of(source.relative_to(ROOT))) if quote == '"' else ()
    )
    for base in (*beside, ROOT, ROOT / "include"):
        if (base / name).is_file():
            return (base / name).resolve().relative_to(ROOT)
    return None


def part_of(file: Path) -> str:
    """The source that a file of agent/sources is part of: the folder, or the file itself (`os_calls`)."""
    inside = file.as_posix().partition("agent/sources/")[2]
    return inside.partition("/")[0].partition(".")[0]


def complaints(source: Path) -> list[str]:
    """Say what is wrong with the includes of one file."""
    here = folder_of(source.relative_to(ROOT))
    if here == "tests":  # tests look into everything
        return []
    if not here:
        return ["lies in a folder that tools/check_includes.py does not know: give it a place in ALLOWED"]
    found = []
    for quote, name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        target = resolve(source, quote, name)
        if target is None:
            if name == "Python.h" and here not in SEES_PYTHON:
                found.append("includes Python.h: only bindings may; the agent serves programs without Python")
            elif name.startswith("nvtx3/") and here not in SEES_NVTX:
                found.append(f"includes {name}: only {', '.join(sorted(SEES_NVTX))} see the NVTX headers")
            elif VENDOR.match(name):
                found.append(
                    f"includes {name}: declare the few things needed in drivers/, and load the library by name"
                )
            elif quote == '"':
                found.append(f'includes "{name}", which is not below native/')
            continue
        there = folder_of(target)
        if there not in {here, "include", *ALLOWED[here]}:
            found.append(f"includes {target}: {here} may not see {there}")
        elif here == "agent/sources" and there == here and part_of(target) != part_of(source):
            found.append(f"includes {target}: a source does not know another; share through agent/ or spool/")
    return found


@cache
def named(source: Path) -> frozenset[str]:
    """The headers that a file includes itself or by headers of ours."""
    found: set[str] = set()
    for quote, name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        target = resolve(source, quote, name)
        found |= {name} if target is None else named(ROOT / target)
    return frozenset(found)


def forgotten(source: Path) -> list[str]:
    """Say which headers of the standard library one source needs and does not include."""
    text = COMMENT.sub("", source.read_text(encoding="utf-8"))
    needed = {HEADER_OF[name]: name for name in USED.findall(text) if name in HEADER_OF}
    return [
        f"uses std::{name}: include <{header}>"
        for header, name in sorted(needed.items())
        if header not in named(source)
    ]


def main() -> int:
    """Print every complaint with its file; 1 if there is any."""
    files = sorted(path for path in ROOT.rglob("*") if path.suffix in SUFFIXES)
    lines = [
        f"native/{path.relative_to(ROOT)} {text}"
        for path in files
        for text in complaints(path) + forgotten(path)
    ]
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
