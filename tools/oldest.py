"""Makes build/oldest: an environment with the oldest supported version of each package, for tests.

usage: PYTHON tools/oldest.py [VENV]. What the tests themselves need is of the lock file. Prints the interpreter's path.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from setup import LOCK, ROOT, dependencies, name_of

FOLDER = ROOT / "build" / "oldest"
# Of the lock file; of these packages none asks for a newer version of one that warplens runs with.
TESTING = (
    "hypothesis",
    "iniconfig",
    "packaging",
    "pluggy",
    "pygments",
    "pytest",
    "pytest-timeout",
    "sortedcontainers",
)
TESTING_ON_3_10 = ("exceptiongroup", "tomli", "typing-extensions")


def oldest(python: Path) -> list[str]:
    """The lower end of each range of pyproject.toml, as requirements."""
    ends = []
    for need in dependencies(python):
        if (found := re.search(r">=\s*([\w.]+)", need)) is None:
            sys.exit(f"{need} in pyproject.toml names no oldest version")
        ends.append(f"{name_of(need)}=={found[1]}")
    return ends


def main() -> int:
    """Make the environment, or leave it where it is of the same packages."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    python = folder / "bin" / "python"
    tests = [
        line
        for line in LOCK.read_text(encoding="utf-8").splitlines()
        if name_of(line) in (*TESTING, *TESTING_ON_3_10)
    ]
    wanted = [*oldest(Path(sys.executable)), *tests]
    stamp = folder / "made-of"
    digest = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
        pip = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
        ]
        if subprocess.run([*pip, *wanted], check=False).returncode:
            print(
                "pip did not install the oldest packages: raise the lower end that it names in pyproject.toml",
                file=sys.stderr,
            )
            return 1
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "warplens-checkout.pth").write_text(f"{ROOT / 'src'}\n", encoding="utf-8")
        stamp.write_text(digest)
    print(python)
    return 0


if __name__ == "__main__":
    sys.exit(main())
