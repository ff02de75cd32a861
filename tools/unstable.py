"""Makes build/unstable, a root file system of Debian unstable, and runs commands in it.

usage: PYTHON tools/unstable.py make [--again] [--with PACKAGE…] | run COMMAND… | pythons

It needs root, debootstrap and Debian's archive; `make` says what it lacks and exits with 3. Mirror, proxies and the settings of pip
are those of this machine. What a command mounts is in a separate namespace and goes with it, as its processes do. The checkout is
copied to /checkout there, so that what is built there stays there. Only the standard library.
"""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "unstable"
SYSTEM = FOLDER / "root"
BOOTED = FOLDER / "booted"  # debootstrap came to its end
STAMP = FOLDER / "made-of"  # the packages that were installed since
CHECKOUT = "/checkout"
LACKING = 3  # exit status: nothing is wrong, but there is no root file system to be had here
LONGEST = 1200  # seconds that one step of the making may take

# The packages that a new user installs, then those that the tests of recordings need.
# The CPythons of the archive come with them.
PACKAGES = ("python3", "gcc", "g++", "make", "libc6-dev", "ca-certificates", "binutils", "procps", "git")
OLDEST, NEWEST = 14, 15  # minor versions of CPython that are taken from here; a machine has the others
CERTIFICATES = "/etc/outside.crt"  # those that this machine's pip trusts

# The first process of a process namespace: its end is the end of all that it started.
_ENTER = """\
set -eu
root=$1 folder=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@" && status=0 || status=$?
exit $status
"""
_APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
_BOUND = ("setpriv", "--pdeathsig", "KILL")  # who is killed takes along what it started
# Settings of pip that lead to packages. Others, as folders of this machine, mean nothing there.
_PIP = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")


class Lacking(Exception):
    """What this machine lacks for a root file system."""


def _output(*command: str) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120
    )
    return done.stdout if done.returncode == 0 else ""


def mirror() -> str:
    """The archive that this machine's own apt asks for Debian's packages."""
    sites = _output("apt-get", "indextargets", "--format", "$(ORIGIN)\t$(LABEL)\t$(REPO_URI)").splitlines()
    found = [line.split("\t") for line in sites]
    for origin, label, site in (line for line in found if len(line) == 3):
        if (origin, label) == ("Debian", "Debian") and site.startswith(("http://", "https://", "file:/")):
            return site
    raise Lacking(
        "this machine's apt knows no archive of Debian (apt-get update, where its sources name one)"
    )


def check() -> None:
    """Lacking where no root file system can be made or entered here."""
    if os.geteuid() != 0:
        raise Lacking("it needs root")
    for program, package in (
        ("debootstrap", "debootstrap"),
        ("unshare", "util-linux"),
        ("setpriv", "util-linux"),
        ("chroot", "coreutils"),
        ("apt-get", "apt"),
    ):
        if shutil.which(program) is None:
            raise Lacking(f"there is no {program} (Debian: apt-get install {package})")
    if subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    ).returncode:
        raise Lacking("namespaces are refused here (a container?)")


def _namespace(*command: str) -> list[str]:
    return [*_BOUND, *_APART, "--", *command]


def _environment(extra: dict[str, str]) -> dict[str, str]:
    kept = {
        name: os.environ[name]
        for name in ("TERM", "WARPLENS_REQUIRE", "WARPLENS_THOROUGH", "CI")
        if name in os.environ
    }
    # Some processors need a setting for NumPy.
    kept |= {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    if (SYSTEM / CERTIFICATES.lstrip("/")).exists():
        kept["NODE_EXTRA_CA_CERTS"] = CERTIFICATES
    return (
        {
            "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
        }
        | kept
        | extra
    )


def inside(
    command: Sequence[str],
    *,
    folder: str = "/",
    environment: dict[str, str] | None = None,
    timeout: float | None = LONGEST,
    quiet: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command in the root file system, in namespaces that end with it."""
    words = _namespace("sh", "-c", _ENTER, "enter", str(SYSTEM), folder, *command)
    if quiet:
        return subprocess.run(
            words,
            env=_environment(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
        )
    return subprocess.run(
        words,
        env=_environment(environment or {}),
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=timeout,
    )


def _must(done: subprocess.CompletedProcess[str], what: str) -> str:
    if done.returncode != 0:
        raise Lacking(f"{what} failed:\n{(done.stdout or '')[-2000:]}")
    return done.stdout or ""


def _install(packages: Iterable[str]) -> None:
    command = [
        "apt-get",
        "install",
        "-qq",
        "-y",
        "--no-install-recommends",
        "-o",
        "Dpkg::Options::=--force-unsafe-io",
        *packages,
    ]
    _must(inside(command, quiet=True), f"apt-get install {' '.join(packages)}")


def _settings() -> None:
    """Take along how this machine reaches the network: names, proxies of apt, and where pip finds packages."""
    for name in ("resolv.conf", "hosts"):
        target = SYSTEM / "etc" / name
        target.unlink(missing_ok=True)
        shutil.copyfile(Path("/etc") / name, target)
    (SYSTEM / "etc/apt/apt.conf.d/50outside").write_text(
        _output("apt-config", "dump", "Acquire"), encoding="utf-8"
    )
    options: dict[str, str] = {}
    for line in _output(sys.executable, "-m", "pip", "config", "list").splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in ("global", "install", ":env:"):
            options[option] = value.strip("'\"").replace("\\n", "\n")
    lines = {name: options[name] for name in _PIP if name in options and "file:" not in options[name]}
    if (certificates := options.get("cert")) and Path(certificates).is_file():
        shutil.copyfile(certificates, SYSTEM / CERTIFICATES.lstrip("/"))
        lines["cert"] = CERTIFICATES
    config = configparser.RawConfigParser()
    config["global"] = lines
    with open(SYSTEM / "etc/pip.conf", "w", encoding="utf-8") as file:
        config.write(file)


def known(names: Iterable[str]) -> list[str]:
    """Those of these packages that the archive has."""
    there = set(inside(["apt-cache", "pkgnames"], quiet=True).stdout.split())
    return [name for name in names if name in there]


def offered() -> list[str]:
    """The minor versions of CPython that the archive has, as `3.15`."""
    names = inside(["apt-cache", "pkgnames", "python3."], quiet=True).stdout.split()
    found = sorted(int(match[1]) for name in names if (match := re.fullmatch(r"python3\.(\d+)", name)))
    return [f"3.{minor}" for minor in found if OLDEST <= minor <= NEWEST]


def made(packages: Iterable[str]) -> bool:
    """Whether the root file system is whole, and has these packages."""
    return STAMP.exists() and set(packages) <= set(STAMP.read_text(encoding="utf-8").split())


def make(packages: Sequence[str], *, again: bool = False) -> None:
    """Bring the root file system up to date; Lacking where that cannot be."""
    check()
    wanted = [*PACKAGES, *packages]
    if made(wanted) and not again:
        _settings()
        return
    if again or not BOOTED.exists():
        if any(letter.isspace() for letter in str(SYSTEM)):
            raise Lacking(
                f"debootstrap cannot work in a folder with a space in its path, and this is {SYSTEM}"
            )
        began = time.monotonic()
        for stamp in (STAMP, BOOTED):
            stamp.unlink(missing_ok=True)
        shutil.rmtree(SYSTEM, ignore_errors=True)
        SYSTEM.mkdir(parents=True)
        archive = mirror()
        print(f"making {SYSTEM.relative_to(ROOT)} with debootstrap", flush=True)
        command = ["debootstrap", "--variant=minbase", "unstable", str(SYSTEM), archive]
        with open(FOLDER / "debootstrap.log", "w", encoding="utf-8") as log:
            done = subprocess.run(
                _namespace(*command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=LONGEST,
            )
        if done.returncode != 0:
            raise Lacking(
                f"debootstrap failed:\n{(FOLDER / 'debootstrap.log').read_text(encoding='utf-8')[-2000:]}"
            )
        BOOTED.touch()
        print(f"made in {time.monotonic() - began:.0f} s", flush=True)
    _settings()
    _must(inside(["apt-get", "update", "-qq"], quiet=True), "apt-get update")
    pythons = [
        name
        for version in offered()
        for name in (f"python{version}", f"python{version}-venv", f"python{version}-dev")
    ]
    began = time.monotonic()
    wanted = [*wanted, *pythons]
    _install(wanted)
    print(f"installed {' '.join(wanted)} in {time.monotonic() - began:.0f} s", flush=True)
    known = set(STAMP.read_text(encoding="utf-8").split()) if STAMP.exists() else set()
    STAMP.write_text("\n".join(sorted(known | set(wanted))) + "\n", encoding="utf-8")


def sources() -> list[str]:
    """The files of the checkout: those that git knows, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        stdout=subprocess.PIPE,
        check=True,
    )
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def copy_checkout(to: str = CHECKOUT) -> None:
    """Copy the checkout into the root file system.

    Files that did not change keep their time, so that nothing is built anew for them.
    """
    target = SYSTEM / to.lstrip("/")
    names = sources()
    kept = {target / name for name in names}
    for name in names:
        source, copy = ROOT / name, target / name
        if (
            not copy.exists()
            or copy.read_bytes() != source.read_bytes()
            or copy.stat().st_mode != source.stat().st_mode
        ):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
            os.utime(copy)
    for area in ("src", "tests", "tools", "native", "docs", "web/src", "benchmarks"):
        for old in (target / area).rglob("*"):
            built = {"_lib", "_bundle", "__pycache__"} & set(old.parts) or old.suffix in (".so", ".pyc")
            if old.is_file() and old not in kept and not built:
                old.unlink()


def pythons() -> dict[str, str]:
    """The CPythons there: those of the archive, and those that were built and kept in build/pythons of the copied checkout."""
    listed = inside(["python3", "tools/pythons.py"], folder=CHECKOUT, quiet=True).stdout.splitlines()
    found = dict(line.split(" ", 1) for line in listed if re.fullmatch(r"3\.\d+t? /.*", line))
    return {name: path for name, path in found.items() if int(name.rstrip("t")[2:]) >= OLDEST}


def main() -> int:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    making = commands.add_parser("make", help="make it, or bring it up to date")
    making.add_argument("--again", action="store_true", help="from nothing")
    making.add_argument(
        "--with",
        dest="packages",
        nargs="*",
        default=[],
        metavar="PACKAGE",
        help="packages beside those that tests need",
    )
    running = commands.add_parser("run", help="run a command in a copy of the checkout there")
    running.add_argument("command", nargs=argparse.REMAINDER)
    commands.add_parser("pythons", help="list its CPythons, each with its path there")
    words = parser.parse_args()
    try:
        if words.what == "make":
            make(words.packages, again=words.again)
            return 0
        check()
    except Lacking as reason:
        print(f"no root file system of Debian's unstable: {reason}", file=sys.stderr)
        return LACKING
    if not STAMP.exists():
        print("build/unstable is not there: python tools/unstable.py make", file=sys.stderr)
        return LACKING
    copy_checkout()
    if words.what == "pythons":
        print(*(f"{name} {path}" for name, path in pythons().items()), sep="\n")
        return 0
    return inside(words.command, folder=CHECKOUT, timeout=None).returncode


if __name__ == "__main__":
    sys.exit(main())
