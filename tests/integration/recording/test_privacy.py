"""What a recording keeps to itself: no environment, files for their owner only, no file at a place that others may have prepared."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment, info, program, until, warplens
from tests.support.thorough import few
from warplens.report import open as open_report

Target = Callable[..., Path]

pytestmark = pytest.mark.require("native")

# Secrets come with the environment, are set while the program runs, and go on to children of every kind.
SECRETIVE = """
import subprocess
os.environ["LATER_SECRET"] = sys.stdin.readline().strip()
subprocess.run(["/bin/sh", "-c", "true"], check=True)
if os.fork() == 0:
    with nvtx.annotate("child"):
        os._exit(0)
os.wait()
with nvtx.annotate("with names"):
    nvtx.mark("mark", payload={"a": 1})
    subprocess.run([sys.executable, "-c", "from warplens import nvtx; nvtx.mark('of another program')"], check=True)
"""
READY = """
open("ready", "w").write(str(os.getpid()))
"""


def files(folder: Path) -> Iterator[Path]:
    """All files below a folder."""
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def holders(folder: Path, secrets: list[str]) -> list[str]:
    """The files below the folder that hold one of the secrets, as bytes."""
    return [
        str(path) for path in files(folder) if any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


def told(report: Path) -> str:
    """Every value of every table, as text: what is in Parquet is compressed."""
    with open_report(report) as opened:
        return "\n".join(str(opened.table(name).to_pylist()) for name in opened.tables)


def test_no_value_of_the_environment_is_in_spool_or_report(tmp_path: Path) -> None:
    secrets = [f"secret-{uuid.uuid4()}" for _ in range(3)]
    env = environment(MY_SECRET=secrets[0], WARPLENS_RUNTIME_DIR=str(tmp_path / "run"))
    path = program(tmp_path / "p.py", SECRETIVE + READY + "os.kill(os.getpid(), signal.SIGSTOP)")
    words = ["profile", "--light", "-o", "x", "-e", f"GIVEN={secrets[1]}", "--keep-raw", str(path)]
    launcher = subprocess.Popen(
        [*COMMAND, *words],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdin is not None
    launcher.stdin.write(secrets[2] + "\n")
    launcher.stdin.flush()
    until(lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text(), "the program")
    report = tmp_path / "x.warplens"
    assert any(path.suffix == ".spool" for path in files(report))
    assert holders(tmp_path, secrets) == []  # while it runs
    stopped = warplens("stop", cwd=tmp_path, env=env)
    assert stopped.returncode == 0, stopped.stderr
    with pytest.warns(UserWarning, match="still recording"):
        snapshot = told(report)
    assert "with names" in snapshot
    assert not any(secret in snapshot for secret in secrets)
    assert holders(tmp_path, secrets) == []
    launcher.kill()
    os.kill(int((tmp_path / "ready").read_text()), signal.SIGKILL)
    launcher.communicate(timeout=60)
    assert holders(tmp_path, secrets) == []  # as a crash leaves it
    assert info(report)["tables"]["nvtx_ranges"] == 13
    assert list(report.glob("raw/*/*.spool"))
    assert holders(tmp_path, secrets) == []
    text = told(report)
    assert "with names" in text
    assert not any(secret in text for secret in secrets)
    for name in ("MY_SECRET", "LATER_SECRET"):  # the names are nobody's business either
        assert name not in text


def test_only_the_owner_reads_a_spool(tmp_path: Path) -> None:
    """Whatever the umask: what is recorded may be private, and who can write the control page steers the program."""
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o777)
    path = program(
        tmp_path / "p.py", "import subprocess; subprocess.run(['true'])\n" + READY + "time.sleep(30)"
    )
    line = 'umask 0; exec "$@"'
    words = [
        "sh",
        "-c",
        line,
        "sh",
        *COMMAND,
        "profile",
        "--light",
        "-o",
        "x",
        "--spool-dir",
        str(temporary),
        str(path),
    ]
    launcher = subprocess.Popen(
        words, cwd=tmp_path, env=environment(TMPDIR=str(temporary)), stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text(), "the program")
        until(
            lambda: list(temporary.glob("*/*.spool")) and list(temporary.glob("*/clocks.jsonl")), "the spool"
        )
        for folder in temporary.iterdir():
            if "spool" in folder.name or list(folder.glob("*.spool")):
                assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
        # what lies in a directory that only its owner may enter is safe; what is executable there may be entered by all, not changed
        for folder in (path for path in temporary.rglob("*") if path.is_dir()):
            assert not stat.S_IMODE(folder.stat().st_mode) & 0o022, folder
        for file in files(temporary):
            mode = stat.S_IMODE(file.stat().st_mode)
            assert not mode & 0o022 or stat.S_IMODE(file.parent.stat().st_mode) == 0o700, (file, oct(mode))
        for file in temporary.glob("*/*.spool"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for file in temporary.glob("*/control"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        launcher.terminate()
        launcher.wait(timeout=60)
    assert list(temporary.iterdir()) == []


HOOK = """
import os, sys
log = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def hook(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)) and (args[2] or 0) & os.O_CREAT:
        name = os.path.abspath(os.fsdecode(args[0]))
        os.write(log, f"{args[2]} {os.path.islink(name)} {name}\\n".encode())
sys.addaudithook(hook)
"""


def test_files_in_shared_folders_are_always_new(tmp_path: Path) -> None:
    """In a directory that all may write, what the launcher creates must be new; deeper down, the directory is its own."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(HOOK)
    env = environment(TMPDIR=str(shared), AUDIT_LOG=str(tmp_path / "audit"))
    env["PYTHONPATH"] = f"{hooks}{os.pathsep}{env['PYTHONPATH']}"
    done = warplens(
        "profile", "-o", "x", "--spool-dir", shared, program(tmp_path / "p.py"), cwd=tmp_path, env=env
    )
    assert done.returncode == 0, done.stderr
    created = [line.split(" ", 2) for line in (tmp_path / "audit").read_text().splitlines()]
    assert any(name.startswith(str(shared)) for _, _, name in created)
    for flags, link, name in created:
        if Path(name).parent == shared:
            assert int(flags) & os.O_EXCL, name
            assert link == "False", name


def test_a_prepared_spool_directory_is_not_used(tmp_path: Path) -> None:
    """Somebody guessed the name of our directory, or of our report's: it is not written to."""
    shared, mine = tmp_path / "shared", tmp_path / "mine"
    shared.mkdir()
    mine.mkdir()
    text = """
import os, sys
sys.path.insert(0, os.environ["PYTHONPATH"])
from pathlib import Path
from warplens.handover import pending
shared, target = sys.argv[1:3]
os.symlink(target, f"{shared}/warplens-{pending.own_id()}")  # exec keeps pid and start: this is what the launcher would take
os.execv(sys.executable, [sys.executable, "-m", "warplens", "profile", "--light", "-o", "x", "--spool-dir", shared, *sys.argv[3:]])
"""
    done = subprocess.run(
        [sys.executable, "-c", text, str(shared), str(mine), str(program(tmp_path / "p.py"))],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert list(mine.iterdir()) == []
    assert (done.returncode == 0) == (tmp_path / "x.warplens").exists(), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("keep_raw", few([False, True]), ids=["drop", "keep"])
@pytest.mark.parametrize("force", [False, True], ids=["open", "overwrite"])
def test_a_note_from_others_moves_and_removes_nothing_outside_the_report(
    force: bool, keep_raw: bool, tmp_path: Path
) -> None:
    """A report may come from anybody. Its note names a directory of mine, with files whose names the agent also uses."""
    mine = tmp_path / "mine"
    mine.mkdir()
    contents = {
        "control": "Source: mine\n",
        "launch.json": "{}",
        "clocks.jsonl": "{}\n",
        "a.spool": "not a spool",
        "processes.log": "log",
    }
    for name, text in contents.items():
        (mine / name).write_text(text)
    report = tmp_path / "x.warplens"
    (report / "pending.d").mkdir(parents=True)
    note = {
        "id": "n",
        "spool": str(mine),
        "host": socket.gethostname(),
        "boot_id": "b",
        "pid": 0,
        "start_ticks": 0,
        "keep_raw": keep_raw,
    }
    (report / "pending.d" / "n.json").write_text(json.dumps(note))
    done = (
        warplens("profile", "-f", "-o", "x", "true", cwd=tmp_path)
        if force
        else warplens("info", "x", cwd=tmp_path)
    )
    assert "Traceback" not in done.stderr
    assert {path.name: path.read_text() for path in mine.iterdir()} == contents


@pytest.mark.parametrize("name", few(["../escaped", "/abs", "..", "a/b"], 2))
def test_a_note_cannot_name_files_elsewhere(name: str, tmp_path: Path) -> None:
    report = tmp_path / "deep" / "x.warplens"
    (report / "pending.d").mkdir(parents=True)
    spool = tmp_path / "spool"
    spool.mkdir()
    note = {
        "id": name,
        "spool": str(spool),
        "host": socket.gethostname(),
        "boot_id": "b",
        "pid": 0,
        "start_ticks": 0,
    }
    (report / "pending.d" / "n.json").write_text(json.dumps(note))
    before = sorted(tmp_path.rglob("*"))
    done = warplens("info", report, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert [
        path for path in sorted(tmp_path.rglob("*")) if path not in before and report not in path.parents
    ] == []
    assert not Path("/abs.json").exists()


@pytest.mark.require("gcc")
def test_a_link_in_the_place_of_a_file_of_the_spool_is_not_followed(tmp_path: Path, target: Target) -> None:
    """In a spool directory that others can write to, the agent writes no file that it has not made."""
    spool, mine = tmp_path / "spool", tmp_path / "mine"
    spool.mkdir()
    mine.write_text("mine")
    text = """
import os, sys, socket
from warplens.handover import pending
os.symlink(sys.argv[1], os.path.join(os.environ["WARPLENS_SPOOL"], pending.own_id() + ".spool"))
os.execv(sys.argv[2], sys.argv[2:])
"""
    agent = Path(__file__).resolve().parents[3] / "src" / "warplens" / "_lib" / "libwarplens_agent.so"
    env = environment(WARPLENS_SPOOL=str(spool), NVTX_INJECTION64_PATH=str(agent))
    done = subprocess.run(
        [sys.executable, "-c", text, str(mine), str(target("nvtx_fork")), "fork"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "child 0\n", "")
    assert mine.read_text() == "mine"
