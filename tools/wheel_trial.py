"""Installs a wheel into an empty environment and uses it there: `wheel_trial.py WHEEL PYTHON FOLDER`.

What `make wheels` does for every interpreter, without network: PATH holds the environment alone, so there is no compiler either. A
program is recorded, the report is finished and summed up, and the page is served. FOLDER holds the wheels of the dependencies in
`dependencies`; the environment goes into `environment`. A wheel without a binding for the interpreter records too, and says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

PROGRAM = """
import warplens.nvtx as nvtx

for number in range(3):
    with nvtx.annotate("step", payload=number):
        sum(range(1000))
print(nvtx.enabled())
"""
UP = 0x8914, struct.pack("16sh14x", b"lo", 0x1)  # SIOCSIFFLAGS, IFF_UP


class Failed(Exception):
    """What did not work, and what it said."""


class Environment:
    """An empty environment of `python` in `folder`, whose commands know nothing of this machine."""

    def __init__(self, python: Path, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.bin = folder / "environment" / "bin"
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.variables = {
            "PATH": str(self.bin),
            "HOME": str(self.work),
            "LANG": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
        }
        self.run(python, "-m", "venv", self.bin.parent)

    def run(self, *command: object) -> str:
        """Run a command; Failed with all that it printed unless it exits with 0."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words, cwd=self.work, env=self.variables, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode != 0:
            raise Failed(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def installs(self, wheel: Path, dependencies: Path) -> None:
        """Install the wheel with its dependencies, and look for no other place."""
        pip = [
            self.bin / "python",
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-compile",
        ]
        self.run(*pip, "--no-index", "--find-links", dependencies, wheel)

    def records(self, has_binding: bool) -> None:
        """Record a program and ask for its ranges, or for the process where nothing names ranges."""
        (self.work / "program.py").write_text(PROGRAM, encoding="utf-8")
        printed = self.run(
            self.bin / "warplens", "profile", "--light", "-o", "run", self.bin / "python", "program.py"
        )
        _expect(
            printed.startswith(f"{has_binding}\n"), f"the binding was {'not ' * has_binding}loaded", printed
        )
        _expect(
            not list((self.work / "run.warplens").glob("pending.d/*")),
            "the report was not finished by profile",
            printed,
        )
        if has_binding:
            stats = self.run(self.bin / "warplens", "stats", "-r", "nvtx_sum", "-f", "csv", "run.warplens")
            _expect(
                re.search(r",3,.*step", stats) is not None,
                "stats show other ranges than were recorded",
                stats,
            )
        about = self.run(self.bin / "warplens", "info", "run.warplens")
        _expect("program.py" in about, "the report does not name the program", about)

    def doctor_names_the_binding(self, has_binding: bool) -> None:
        """Ask doctor, which exits with 0 where programs can be recorded."""
        checks = json.loads(self.run(self.bin / "warplens", "doctor", "-f", "json"))["checks"]
        states = [check["state"] for check in checks if check["name"] == "binding"]
        _expect(
            states == ["ok" if has_binding else "note"],
            "doctor is wrong about the binding",
            json.dumps(checks, indent=1),
        )

    def serves_the_page(self) -> None:
        """Get the page, its script and an answer from `warplens view`."""
        with self._viewing() as address:
            base = address.partition("/?")[0]
            opener = build_opener(HTTPCookieProcessor())
            page = opener.open(address, timeout=60).read().decode()
            script = re.search(r'src="\.?(/[^"]+\.js)"', page)
            _expect(script is not None, "the page names no script", page)
            assert script is not None
            _expect(
                len(opener.open(base + script[1], timeout=60).read()) > 10_000,
                "the script of the page is too short",
                page,
            )
            about = opener.open(f"{base}/api/1/meta", timeout=60).read().decode()
            _expect(json.loads(about)["title"] == "run", "the server shows another report", about)

    @contextlib.contextmanager
    def _viewing(self) -> Iterator[str]:
        words = [str(self.bin / "warplens"), "view", "--no-browser", "run.warplens"]
        with subprocess.Popen(
            words,
            cwd=self.work,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            assert server.stderr is not None
            try:
                address = server.stdout.readline().strip()
                _expect(address.startswith("http://127.0.0.1:"), "view printed no address", address)
                yield address
            except Failed as failed:
                server.terminate()
                raise Failed(f"{failed}\n{server.stderr.read()}") from None
            finally:
                server.terminate()


def _expect(holds: bool, otherwise: str, printed: str) -> None:
    if not holds:
        raise Failed(f"{otherwise}:\n{printed}")


def has_binding(wheel: Path, python: Path) -> bool:
    """Whether the wheel holds a binding that `python` loads."""
    ask = [str(python), "-I", "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"]
    suffix = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    with zipfile.ZipFile(wheel) as packed:
        return f"warplens/nvtx/_binding{suffix}" in packed.namelist()


def without_network() -> list[str]:
    """Words before a command that take its network away; none where that is not permitted."""
    for words in (["unshare", "-n"], ["unshare", "-r", "-n"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
        ):
            return words
    return []


def loopback() -> None:
    """Switch the loopback device on: a new network begins without it, and the page is served there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket, contextlib.suppress(PermissionError):
        fcntl.ioctl(any_socket, *UP)


def main(words: Sequence[str]) -> int:
    """Go through it; what fails is printed, with the interpreter."""
    wheel, python, folder = (Path(word).absolute() for word in words)
    loopback()
    bound = has_binding(wheel, python)
    try:
        environment = Environment(python, folder / "trial")
        environment.installs(wheel, folder / "dependencies")
        environment.records(bound)
        environment.doctor_names_the_binding(bound)
        environment.serves_the_page()
    except (Failed, OSError, subprocess.TimeoutExpired) as failed:
        print(f"{wheel.name} does not work with {python}: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
