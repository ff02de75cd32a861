"""Makes the development environment `.venv`: what pyproject.toml names for building and developing, and this checkout in place.

usage: PYTHON tools/setup.py VENV. Only the standard library, for it runs before anything is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_LIST = """
import sys
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip brings the same parser
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)
package = project["project"]
print(*project["build-system"]["requires"], *package["dependencies"], *package["optional-dependencies"]["dev"], sep="\\n")
"""

# Of the packages: what is left to Python, which compiles it when it is imported.
SELDOM = "/(tests|pip|pygments|setuptools|pkg_resources|mypyc?|playwright)/"

_COMMAND = """\
#!{python}
import sys

from warplens.cli.main import main

sys.exit(main())
"""


def run(*command: object) -> str:
    """Run a command; its failure ends the set-up with what it said."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nset-up failed: {' '.join(map(str, command))}")
    return done.stdout


def same_version(python: Path) -> bool:
    """Whether the environment's interpreter works and is of the version that runs this."""
    ask = [str(python), "-c", "import sys; print(sys.version_info[:2] == tuple(map(int, sys.argv[1:])))", *map(str, sys.version_info[:2])]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == "True"
    except (OSError, subprocess.CalledProcessError):
        return False


def main() -> None:
    """Make or refresh the environment named on the command line."""
    folder = Path(sys.argv[1])
    python = folder / "bin" / "python"
    if not same_version(python):
        print(f"making {folder} with Python {sys.version.split()[0]}", flush=True)
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
        shutil.rmtree(ROOT / "build" / "dev", ignore_errors=True)  # configured for another interpreter
    needs = run(python, "-c", _LIST, ROOT / "pyproject.toml").split("\n")
    print(f"installing {len(needs) - 1} packages into {folder}", flush=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--progress-bar", "off", "--no-compile"]
    run(*pip, *filter(None, needs))
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # On all CPUs, as pip does not, and without what is large and rarely imported; some files are not meant to compile.
    subprocess.run([python, "-m", "compileall", "-qq", "-j", "0", "-x", SELDOM, site], check=False)
    (site / "warplens-checkout.pth").write_text(f"{ROOT / 'src'}\n", encoding="utf-8")
    command = folder / "bin" / "warplens"
    interpreter = python.absolute()
    head = _COMMAND.format(python=interpreter)
    if " " in str(interpreter) or len(str(interpreter)) > 120:  # the kernel reads neither in a #! line
        head = head.replace(f"#!{interpreter}", f"#!/bin/sh\n'''exec' \"{interpreter}\" \"$0\" \"$@\"\n' '''")
    command.write_text(head, encoding="utf-8")
    command.chmod(0o755)


if __name__ == "__main__":
    main()
