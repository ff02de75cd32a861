"""Native samples and thread states, of real programs: what is in them, and what becomes of programs that make it hard."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import COMMAND, environment, warplens
from tests.support.thorough import few
from warplens.report import open as open_report

Target = Callable[..., Path]
pytestmark = [pytest.mark.require("native"), pytest.mark.require("gcc"), pytest.mark.timeout(300)]
CHAIN = ["innermost_work", "middle_work", "outer_work"]

# Hashes, compresses and counts, each under a function of its own.
MIXED = """
import hashlib, time, zlib
data = bytes(range(256)) * 400
def do_hash(): return hashlib.sha256(data).digest()
def do_zlib(): return zlib.compress(data, 6)
end = time.thread_time() + 1.5
while time.thread_time() < end:
    do_hash()
    do_zlib()
"""


@cache
def may_sample(*, kernel: bool = False) -> bool:
    """Whether perf events can be had here at all, or of the kernel; asked as anybody would."""
    ask = "import ctypes,os; a=bytearray(128); a[0:8]=(1).to_bytes(4,'little')+(128).to_bytes(4,'little'); a[8]=9;"
    ask += f"a[40]={0x41 if kernel else 0x61};b=(ctypes.c_char*128).from_buffer(a); n=298 if os.uname().machine=='x86_64' else 241;"
    ask += "raise SystemExit(ctypes.CDLL(None).syscall(n,b,0,-1,-1,0)<0)"
    return subprocess.run([sys.executable, "-c", ask], check=False).returncode == 0


def profile(folder: Path, *words: str | Path) -> Any:
    done = warplens("profile", "-q", "-o", "x", "--sample=process-tree", *words, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return open_report(folder / "x.warplens")


def stacks(report: Any, kind: str = "native") -> list[list[str]]:
    """The functions of each sample, innermost first."""
    frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
    found = []
    for sample in report.table("samples").to_pylist():
        names, at = [], sample["stack"]
        while sample["kind"] == kind and at is not None:
            names.append(frames[at]["function"])
            at = frames[at]["parent"]
        found.append(names)
    return found


def shows_addresses(*before: str) -> bool:
    """Whether the kernel says where its functions are, to what is run behind the words `before`."""
    ask = "raise SystemExit(not any(int(line.split()[0], 16) for line in open('/proc/kallsyms')))"
    return (
        subprocess.run([*before, sys.executable, "-c", ask], check=False, capture_output=True).returncode == 0
    )


def holds(stack: list[str], chain: list[str]) -> bool:
    return any(stack[at : at + len(chain)] == chain for at in range(len(stack)))


def states(report: Any) -> dict[str, int]:
    """How long all threads together were in each state, ns."""
    sums: dict[str, int] = {}
    for row in report.table("thread_states").to_pylist():
        sums[row["state"]] = sums.get(row["state"], 0) + row["end"] - row["start"]
    return sums


needs_perf = pytest.mark.skipif("not may_sample()", reason="the kernel gives no perf events here")


@needs_perf
@pytest.mark.skipif(platform.machine() != "x86_64", reason="stacks come from unwind tables there")
@pytest.mark.parametrize(
    "words", few(map(pytest.param, [("-fomit-frame-pointer",), ("-fno-omit-frame-pointer",)]))
)
def test_known_calls_are_among_the_samples(words: tuple[str, ...], target: Target, tmp_path: Path) -> None:
    with profile(tmp_path, target("perf_work", *words), "calls") as report:
        seen = stacks(report)
        assert any(holds(stack, CHAIN) and holds(stack, ["outer_work", "main"]) for stack in seen), seen[:5]


@needs_perf
def test_frame_pointers_do_where_the_program_has_them(target: Target, tmp_path: Path) -> None:
    words = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    with profile(tmp_path, "-b", "fp", target("perf_work", *words), "calls") as report:
        # A function that calls nobody may keep none, and then its caller is not seen either.
        assert any(
            stack[:1] == CHAIN[:1] and holds(stack, ["outer_work", "main"]) for stack in stacks(report)
        )


@needs_perf
def test_without_backtraces_a_sample_is_one_frame(target: Target, tmp_path: Path) -> None:
    with profile(tmp_path, "-b", "none", target("perf_work", "-O1"), "calls") as report:
        seen = [stack for stack in stacks(report) if stack]
        assert seen
        assert all(len(stack) == 1 for stack in seen)
        assert ["innermost_work"] in seen


@needs_perf
@pytest.mark.skipif(platform.machine() != "x86_64", reason="stacks come from unwind tables there")
def test_python_stands_among_the_native_frames(tmp_path: Path) -> None:
    (tmp_path / "mixed.py").write_text(MIXED)
    with profile(tmp_path, "--python-sampling=false", sys.executable, "mixed.py") as report:
        modules: dict[str, set[str]] = {
            "do_zlib": set(),
            "do_hash": set(),
        }  # what each function was seen to call, and what that called
        frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
        for row in frames.values():
            at = row
            while row["kind"] == "native" and (at := frames.get(at["parent"])) is not None:
                if at["kind"] == "python" and at["function"] in modules:
                    modules[at["function"]].add(row["module"] or "")
        assert any("zlib" in module or "libz" in module for module in modules["do_zlib"]), modules
        assert any(
            "hash" in module or "sha" in module or "crypto" in module for module in modules["do_hash"]
        ), modules
        # The way from the program's beginning is there too.
        assert any("do_zlib" in stack and "_start" in stack[-2:] for stack in stacks(report)) or any(
            "do_zlib" in stack and len(stack) > 5 for stack in stacks(report)
        )


@needs_perf
@pytest.mark.skipif(
    "not (may_sample(kernel=True) and shows_addresses())", reason="the kernel shows nothing of itself here"
)
@pytest.mark.parametrize("words", few(map(pytest.param, [(), ("-b", "fp")])))
def test_time_in_the_kernel_has_its_frames(words: tuple[str, ...], target: Target, tmp_path: Path) -> None:
    with profile(tmp_path, *words, target("perf_work", "-O1", "-fno-omit-frame-pointer"), "reads") as report:
        frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
        inside = []  # the functions of the kernel in each sample, innermost first
        for at in report.table("samples").column("stack").to_pylist():
            kernel = []
            while at is not None and frames[at]["kind"] == "kernel":
                kernel.append(frames[at]["function"])
                at = frames[at]["parent"]
            callers = []
            while at is not None:  # which are the program's alone
                assert frames[at]["kind"] != "kernel"
                callers.append(frames[at]["function"])
                at = frames[at]["parent"]
            if words:  # a C library without frame pointers hides who called read()
                reads = "main" in callers
            else:
                reads = "read_much" in callers and any(
                    "read" in name for name in callers[: callers.index("read_much")]
                )
            if kernel and reads:
                inside.append(kernel)
        assert inside
        assert any("read" in name for kernel in inside for name in kernel), inside[
            :5
        ]  # what they are called was found


@needs_perf
@pytest.mark.parametrize("mode", few(["auto", "fp", "none"]))
def test_addresses_that_the_kernel_hides_are_not_recorded(mode: str, target: Target, tmp_path: Path) -> None:
    """Even root, without the right to see addresses."""
    without = ("setpriv", "--bounding-set=-syslog")
    if (
        shutil.which(without[0]) is None
        or subprocess.run([*without, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("rights cannot be given up here")
    if shows_addresses(*without):
        pytest.skip("the kernel hides nothing here")
    command: list[str | Path] = [
        *without,
        *COMMAND,
        "profile",
        "--light",
        "-q",
        "-o",
        "x",
        "--sample=process-tree",
        "-b",
        mode,
        target("perf_work", "-O1"),
        "reads",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        rows = report.table("frames").to_pylist()
        assert not [row for row in rows if row["kind"] == "kernel" or (row["address"] or 0) >> 63]
        told = {row["code"] for row in report.table("diagnostics").to_pylist()}
        assert told & {"kernel-frames-hidden", "kernel-hidden"}
        if "kernel-hidden" not in told:  # then its time counts for who called it
            # Without unwind tables, a C library whose system calls are in a function of their own hides its caller.
            assert any("read" in name for stack in stacks(report) for name in stack) or (
                mode != "auto" and rows
            )


@needs_perf
def test_states_tell_who_slept_and_who_waited_for_a_cpu(target: Target, tmp_path: Path) -> None:
    with profile(tmp_path, target("perf_work", "-O1"), "states") as report:
        rows = report.table("thread_states").to_pylist()
        assert all(row["exact"] for row in rows)
        of: dict[int, dict[str, int]] = {}
        for row in rows:
            thread = of.setdefault(row["thread"], {})
            thread[row["state"]] = thread.get(row["state"], 0) + row["end"] - row["start"]
        naps = 20 * 5_000_000
        assert any(
            thread.get("blocked", 0) >= naps and thread.get("running", 0) < naps for thread in of.values()
        )
        # Two that want one CPU: while one runs, the other waits.
        busy = [thread for thread in of.values() if thread.get("running", 0) > 350_000_000]
        assert len(busy) == 2
        assert sum(thread.get("runnable", 0) for thread in busy) > 300_000_000


@needs_perf
@pytest.mark.parametrize("what", few(["libraries", "exec", "threads", "forks"], 2))
def test_programs_that_make_it_hard(what: str, target: Target, tmp_path: Path) -> None:
    with profile(tmp_path, target("perf_work", "-O1"), what) as report:
        assert any("innermost_work" in stack for stack in stacks(report))
        assert states(report)["running"] > 0


def test_without_perf_events_the_other_sources_record(target: Target, tmp_path: Path) -> None:
    program = target("perf_work", "-O1")
    done = warplens(
        "profile", "-q", "-o", "x", "--sample=process-tree", program, "deny", program, "states", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "done" in done.stdout
    with open_report(tmp_path / "x.warplens") as report:
        denied = [row for row in report.table("diagnostics").to_pylist() if "perf" in row["code"]]
        assert denied
        sampled = [row for row in report.table("thread_states").to_pylist() if not row["exact"]]
        assert {"running", "blocked"} <= {row["state"] for row in sampled}


@pytest.mark.parametrize("denied", [False, True])
def test_our_threads_do_not_keep_a_process_alive(denied: bool, target: Target, tmp_path: Path) -> None:
    """The main thread may leave before the others: the process ends with the last of its own threads."""
    program = target("perf_work", "-O1")
    words = (program, "deny", program, "leave") if denied else (program, "leave")
    with profile(tmp_path, *words) as report:
        assert states(report)["running"] > 0


def test_large_thread_locals_cost_no_record(target: Target, tmp_path: Path) -> None:
    with profile(tmp_path, target("perf_work", "-O1", "-DLARGE=1000000"), "states") as report:
        assert states(report)["running"] > 0
