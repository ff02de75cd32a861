"""Makes the development environment `.venv`: the locked packages, and this checkout in place.

usage: PYTHON tools/setup.py VENV. Only the standard library, for it runs before anything is installed. A pinned version without a wheel
for this Python is replaced by another, built or left out, with a warning; VENV/unpinned.txt names what then is not as pinned.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "tools" / "requirements.lock"

_LIST = """
import sys
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip brings the same parser
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)
package = project["project"]
others = [*project["build-system"]["requires"], *package["optional-dependencies"]["dev"]]
print(*package["dependencies"], *(others if sys.argv[2] == "all" else ()), sep="\\n")
"""

# Of the packages: what is left to Python, which compiles it when it is imported.
SELDOM = "/(tests|pip|pygments|setuptools|pkg_resources|mypyc?|playwright)/"

_COMMAND = """\
#!{python}
import sys

from warplens.cli.main import main

if __name__ == "__main__":
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
    ask = [
        str(python),
        "-c",
        "import sys; print(sys.version_info[:2] == tuple(map(int, sys.argv[1:])))",
        *map(str, sys.version_info[:2]),
    ]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == "True"
    except (OSError, subprocess.CalledProcessError):
        return False


def needs(python: Path) -> list[str]:
    """What pyproject.toml names for building, running and developing."""
    return run(python, "-c", _LIST, ROOT / "pyproject.toml", "all").split("\n")[:-1]


def dependencies(python: Path) -> list[str]:
    """What pyproject.toml names for running: what a user gets."""
    return run(python, "-c", _LIST, ROOT / "pyproject.toml", "runtime").split("\n")[:-1]


def plain(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """The package that a requirement asks for."""
    found = re.match(r"[\w.-]+", requirement)
    return plain(found[0]) if found else requirement


def _got(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def install(python: Path) -> dict[str, str]:
    """Install what the lock file pins.

    The names of what could not be had in that version, each with what was done instead.
    """
    pip = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        "--no-compile",
    ]
    lines = [
        line for line in LOCK.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    pins = python.parents[1] / "pins.txt"
    lacking: list[str] = []
    while True:
        pins.write_text("\n".join(line for line in lines if name_of(line) not in lacking), encoding="utf-8")
        done = subprocess.run(
            [*pip, "--only-binary", ":all:", "--no-deps", "-r", pins],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            break
        found = re.search(r"No matching distribution found for ([\w.-]+?)==", done.stderr)
        if found is None or plain(found[1]) in lacking:
            sys.exit(
                f"{done.stdout}{done.stderr}\nset-up failed: pip did not install the packages of {LOCK.relative_to(ROOT)}"
            )
        lacking.append(plain(found[1]))
    asked = {name_of(need): need for need in needs(python)} if lacking else {}
    instead: dict[str, str] = {}
    for name in lacking:
        pin = next(line for line in lines if name_of(line) == name)
        if _got(*pip, "--only-binary", ":all:", "-c", str(pins), asked.get(name, name)):
            instead[name] = "the newest version that has one"
        elif not _got(*pip, "-c", str(pins), pin):
            instead[name] = "left out, as pip could not build it either"
        print(
            f"warning: {pin} has no wheel for this Python: {instead.get(name, 'built from its source')}",
            file=sys.stderr,
        )
    return instead


def remove_others(python: Path, instead: dict[str, str]) -> None:
    """Remove what an earlier lock file or the making of the environment brought, so that all machines have the same."""
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    there = [plain(line.partition("==")[0]) for line in run(*pip, "list", "--format=freeze").splitlines()]
    pinned = {
        name_of(line) for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    }
    # Requirements of a replaced package beyond the lock file stay.
    if (others := [name for name in there if name not in pinned]) and not instead:
        run(*pip, "uninstall", "--quiet", "--yes", *others)


def main() -> None:
    """Make or refresh the environment named on the command line."""
    folder = Path(sys.argv[1])
    python = folder / "bin" / "python"
    if not same_version(python):
        print(f"making {folder} with Python {sys.version.split()[0]}", flush=True)
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
        if folder.name == ".venv":
            shutil.rmtree(ROOT / "build" / "dev", ignore_errors=True)  # configured for another interpreter
    print(f"installing the packages of {LOCK.relative_to(ROOT)} into {folder}", flush=True)
    instead = install(python)
    (folder / "unpinned.txt").write_text(
        "".join(f"{name}: {what}\n" for name, what in instead.items()), encoding="utf-8"
    )
    remove_others(python, instead)
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
