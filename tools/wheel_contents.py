"""Checks which files a wheel contains, for `make wheels` and `make release-check`."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pythons import FREE_THREADED, Version, named

OLD_NAME = b"warp" + b"line"  # the former name of the product, in two parts: no file may hold it
MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of ELF
LIBRARIES = ("agent", "reader", "preload", "preload_cpu")


def _binding(version: Version, machine: str) -> str:
    return f"warplens/nvtx/_binding.cpython-{named(version).replace('.', '')}-{machine}-linux-gnu.so"


def complaints(wheel: Path, source: Path, machine: str, versions: Sequence[Version]) -> list[str]:
    """Say what is wrong with the contents of a wheel that was built from `source`; empty where nothing is.

    Bindings of free-threaded versions may be there, too.
    """
    bindings, also = ([_binding(version, machine) for version in some] for some in (versions, FREE_THREADED))
    wanted = {f"warplens/_lib/libwarplens_{name}.so" for name in LIBRARIES} | {
        *bindings,
        "warplens/viewer/_bundle/index.html",
    }
    wanted |= {
        f"warplens/_lib/include/{path.name}"
        for path in (source / "native" / "device").iterdir()
        if path.suffix in (".cuh", ".h")
    }
    package = source / "src"
    wanted |= {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.suffix in (".py", ".pyi", ".typed", ".cu")
    }
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        contents = {name: packed.read(name) for name in names}
    info = next((name.partition("/")[0] for name in names if name.endswith(".dist-info/METADATA")), "")
    wanted |= {f"{info}/licenses/{name}" for name in ("LICENSE", "LICENSE-THIRD-PARTY")}
    said = [f"it lacks {name}" for name in sorted(wanted - names)]
    for name in sorted(names):
        if not name.startswith(("warplens/", f"{info}/")) or re.search(r"\.(cpp|o|a|pyc)$|(^|/)tests/", name):
            said.append(f"{name} does not belong into it")
        if OLD_NAME in contents[name].lower() or OLD_NAME in name.lower().encode():
            said.append(f"{name} holds the former name of the product")
        if name.endswith(".so"):
            if int.from_bytes(contents[name][18:20], "little") != MACHINES[machine]:
                said.append(f"{name} is not made for {machine}")
            if name.startswith("warplens/nvtx/_binding") and name not in (*bindings, *also):
                said.append(f"{name} is a binding that was not asked for")
    return [f"{wheel.name}: {line}" for line in said]
