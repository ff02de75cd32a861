"""Makes build/gpu/cubins: the CuTe DSL kernels that `make gpu` runs on machines without CuTe DSL.

usage: PYTHON tools/cubins.py [ARCHITECTURE…]; the default is sm_90a. `make gpu-pack` runs it. Needs the environment that
`make test-dsl` makes, and no GPU. Take the folder along, or name another in WARPLENS_CUBINS; where it is not there, these tests are
skipped.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.dsl.languages import run  # noqa: E402  (tools are scripts beside the package)
from tests.support.optional_dependencies import cubins, missing  # noqa: E402

PROGRAMS = (
    "tests/dsl/programs/cute_cubin.py",
    "tests/dsl/programs/cute_nuggets.py",
    "benchmarks/_intrakernel_cute_kernels.py",
)


def main() -> int:
    """Compile for each architecture."""
    if reason := missing("cutlass-dsl"):
        print(reason, file=sys.stderr)
        return 1
    for arch in sys.argv[1:] or ["sm_90a"]:
        for program in PROGRAMS:
            folder = cubins(Path(program).stem, arch)
            folder.mkdir(parents=True, exist_ok=True)
            run("cutlass-dsl", ROOT / program, folder, CUTE_DSL_ARCH=arch)
            print(f"{folder}: {len(list(folder.glob('*.cubin')))} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
