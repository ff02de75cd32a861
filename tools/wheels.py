"""Builds sdist and wheel into dist/, holds the wheel to manylinux_2_28 and installs it once into an empty environment."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
FRESH = ROOT / "build" / "wheel-env"
PLATFORM = f"manylinux_2_28_{platform.machine()}"


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command with .venv's programs first on PATH; its failure ends this with what it said."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def build() -> Path:
    """Build the sdist, and the wheel from it; return the wheel, tagged for the machine it was built on."""
    shutil.rmtree(DIST, ignore_errors=True)
    print(run(sys.executable, "tools/web.py", "build", "--fetch"), end="")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST)
    (wheel,) = DIST.glob("*.whl")
    (source,) = DIST.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed, tarfile.open(source) as archive:
        for kind, names in (("wheel", packed.namelist()), ("sdist", archive.getnames())):
            if not any(name.endswith("warplens/viewer/_bundle/index.html") for name in names):
                sys.exit(f"the {kind} lacks the page of `warplens view`: see sdist.include in pyproject.toml")
    return wheel


def retag(wheel: Path) -> Path:
    """Check the symbols the wheel needs and give it the tag that promises them."""
    facts = json.loads(run(sys.executable, "-m", "auditwheel", "show", "--json", wheel))
    print(f"symbols: {facts['overall_tag']}")
    run(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "--wheel-dir", DIST, wheel)
    wheel.unlink()
    (tagged,) = DIST.glob(f"*{PLATFORM}*.whl")
    return tagged


def install(wheel: Path) -> None:
    """Install the wheel into an empty environment and start it there."""
    run(sys.executable, "-m", "venv", "--clear", FRESH)
    run(FRESH / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
    elsewhere = FRESH / "share"
    elsewhere.mkdir(exist_ok=True)
    print(run(FRESH / "bin" / "warplens", "--version", cwd=elsewhere), end="")
    print(run(FRESH / "bin" / "warplens", "doctor", cwd=elsewhere), end="")


def main() -> None:
    """Build, check, install."""
    wheel = build()
    if sys.platform == "linux":
        wheel = retag(wheel)
    install(wheel)
    for path in sorted(DIST.iterdir()):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1024:,.0f} KiB")


if __name__ == "__main__":
    main()
