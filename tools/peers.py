"""Makes build/peers: an environment with the tools and libraries that benchmarks and tests compare with.

usage: PYTHON tools/peers.py [EXTRA…]; by default the extras `bench-peers` and `real-programs` of pyproject.toml (several
GB: PyTorch and CUDA libraries). Nothing else needs them; what is not there is skipped, and said.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "peers"
EXTRAS = ("bench-peers", "real-programs")

_LIST = """
import sys
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip brings the same parser
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    extras = tomllib.load(file)["project"]["optional-dependencies"]
print(*sorted({need for extra in sys.argv[2:] for need in extras[extra]}), sep="\\n")
"""


def main() -> int:
    """Make the environment, or bring it up to date."""
    python = FOLDER / "bin" / "python"
    if not python.exists():
        venv.EnvBuilder(with_pip=True).create(FOLDER)
    listed = subprocess.run(
        [python, "-c", _LIST, ROOT / "pyproject.toml", *(sys.argv[1:] or EXTRAS)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    needs = listed.stdout.split("\n")[:-1]
    print(f"installing into {FOLDER.relative_to(ROOT)}: {', '.join(needs)}", flush=True)
    return subprocess.run([python, "-m", "pip", "install", "--quiet", *needs], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
