"""Makes build/dsl: one environment per in-kernel language, with pinned versions, for the tests in tests/dsl.

usage: PYTHON tools/dsl.py [GROUP…] [--list] [--again]; the default is every language in its newest version; `all` adds the older
releases of the CuTe DSL. None needs a GPU or a driver. Tests find the environments by themselves
(tests/support/optional_dependencies.py), and are skipped where theirs is not there. `--again` makes the
named environments from nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "dsl"

NVDISASM = "nvidia-cuda-nvdisasm==13.5.37"
CUTE = "4.8.1"
OLDER_CUTE = ("4.7.1", "4.6.3", "4.5.3")  # 4.5.3 is the first that compiles without a driver

GROUPS: dict[str, tuple[str, ...]] = {
    # Assembler and interpreter are in the wheel; the interpreter needs no torch for the arrays of our tests.
    "triton": ("triton==3.9.0", "numpy", NVDISASM),
    # numba-cuda compiles with NVVM; NVRTC for its runtime's half, nvJitLink makes machine code of PTX.
    "numba": (
        "numba-cuda==0.30.4",
        "cuda-bindings==13.5.0",
        "nvidia-nvvm==13.5.37",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-nvjitlink==13.5.37",
        NVDISASM,
    ),
    "cute": (f"nvidia-cutlass-dsl=={CUTE}", "numpy", NVDISASM),
    # What compiles CUDA C++ at run time, and reads machine code.
    "cuda": ("cuda-bindings==13.5.0", "cuda-core==1.2.2", "numpy", "nvidia-cuda-nvrtc==13.5.37", NVDISASM),
    **{f"cute-{release}": (f"nvidia-cutlass-dsl=={release}", "numpy", NVDISASM) for release in OLDER_CUTE},
}
DEFAULT = ("triton", "numba", "cute", "cuda")


def make(group: str, *, again: bool) -> bool:
    """Bring the environment of `group` up to date; True where it is."""
    folder = FOLDER / group
    needs = GROUPS[group]
    # Written last: an environment whose making was cut off is made again.
    stamp = folder / "made-of"
    wanted = hashlib.sha256("\n".join(needs).encode()).hexdigest()
    if not again and stamp.exists() and stamp.read_text() == wanted:
        print(f"{group}: is there")
        return True
    print(f"{group}: installing {', '.join(needs)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.EnvBuilder(with_pip=True).create(folder)
    if subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *needs], check=False
    ).returncode:
        print(f"{group}: pip failed; its tests will be skipped", file=sys.stderr)
        return False
    stamp.write_text(wanted)
    return True


def main() -> int:
    """Make the environments that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "groups",
        nargs="*",
        metavar="GROUP",
        help=f"{', '.join(GROUPS)}, or all; the default is {' '.join(DEFAULT)}",
        default=DEFAULT,
    )
    parser.add_argument("--list", action="store_true", help="show what each group holds, and make nothing")
    parser.add_argument("--again", action="store_true", help="make them from nothing")
    words = parser.parse_args()
    groups = dict.fromkeys(
        name for group in words.groups for name in (GROUPS if group == "all" else (group,))
    )
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are: {', '.join(GROUPS)}, all")
    if words.list:
        for group in groups:
            print(f"{group}: {', '.join(GROUPS[group])}")
        return 0
    made = [make(group, again=words.again) for group in groups]
    return 0 if all(made) else 1


if __name__ == "__main__":
    sys.exit(main())
