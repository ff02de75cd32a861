"""The stub in every process of a tree: what it writes down, that nothing gets away, and that no program notices."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.support.programs.launching import until
from tests.support.programs.process_register import (
    AGENT,
    STUB,
    Outcome,
    alone,
    followed,
    new_spool,
    read_notes,
)

Target = Callable[..., Path]
pytestmark = [pytest.mark.require("native", "gcc")]

TRUE = shutil.which("true") or "/bin/true"


def same(one: Outcome, other: Outcome) -> bool:
    """Say whether the program did the same both times."""
    return (one.status, one.stdout, one.stderr) == (other.status, other.stdout, other.stderr)


# How often each kind of note is written: program, fork, exec, exit, waited
WAYS = {
    "execs": (12, 11, 11, 12, 11),
    "spawns": (5, 0, 0, 5, 4),
    "vforks": (3, 0, 4, 4, 3),  # a child that fails says what it was to become, and why not
    "failures": (1, 1, 2, 2, 1),
    "waits": (1, 7, 0, 7, 8),
    "cancelled": (1, 1, 0, 1, 1),
    "closed": (2, 1, 1, 2, 1),
    "many": (3, 1, 1, 3, 2),
    "small": (3, 1, 1, 3, 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_c(way: str, tmp_path: Path, target: Target) -> None:
    program = target("tree")
    went = followed(tmp_path, program, way, TRUE)
    assert same(went, alone(tmp_path, program, way, TRUE))
    assert tuple(went.count(kind) for kind in ("program", "fork", "exec", "exit", "waited")) == WAYS[way]
    assert went.count("foreign") == 0
    assert len(went.started("true")) == WAYS[way][0] - 1


def test_how_processes_end(tmp_path: Path, target: Target) -> None:
    went = followed(tmp_path, target("tree"), "waits")
    ends: dict[int, list[tuple[str, int]]] = {note.pid: [] for note in went.of("fork", "exit", "waited")}
    for note in went.of("exit", "waited"):
        ends[note.pid].append((note.kind, note.status))
    assert ends.pop(went.pid) == [("exit", 0)]
    assert list(ends.values()) == [
        [("exit", 1), ("waited", 1)],
        [("waited", 137)],
        [("exit", 3), ("waited", 3)],
        [("exit", 4), ("waited", 4)],
        [("exit", 5), ("waited", 5)],
        [("waited", 143)],
        [("exit", 7), ("waited", 7)],
        [("exit", 8), ("waited", 8)],
    ]


def test_an_exec_that_fails_is_taken_back(tmp_path: Path, target: Target) -> None:
    went = followed(tmp_path, target("tree"), "failures", TRUE)
    # what is not there leaves no trace; what is there, and is refused (E2BIG), leaves two
    assert went.about(went.pid) == [("program", 0), ("exec", 0), ("exec", 7), ("exit", 0)]


def test_the_c_librarys_own_shells(tmp_path: Path, target: Target) -> None:
    went = followed(tmp_path, target("tree"), "shells")
    assert same(went, alone(tmp_path, target("tree"), "shells"))
    # Newer C libraries pass "--" before the command.
    assert [[text for text in note.texts[1:] if text != "--"] for note in went.started("sh")] == [
        ["sh", "-c", f"{word}exit {code}"] for word, code in (("", 3), ("cat; ", 4), ("", 5))
    ]
    assert len(went.started("cat")) == 1


def test_a_program_that_writes_over_its_variables(tmp_path: Path, target: Target) -> None:
    went = followed(tmp_path, target("tree"), "renamed", "name")
    assert went.status == 6
    assert went.about(went.pid) == [("program", 0), ("exec", 0), ("program", 0), ("exit", 6)]


def test_a_program_that_may_write_no_file(tmp_path: Path, target: Target) -> None:
    """The system would send a signal to it, not tell us."""
    went = followed(tmp_path, target("tree"), "limited")
    assert same(went, alone(tmp_path, target("tree"), "limited"))
    assert went.status == 9


def test_threads_that_fork_and_vfork_at_once(tmp_path: Path, target: Target) -> None:
    went = followed(tmp_path, target("tree"), "storm", TRUE, "25")
    assert (went.status, went.stdout) == (0, "200\n")
    assert went.count("fork") == 100
    assert len(went.started("true")) == 100
    assert went.count("waited") == 200


def test_a_daemon(tmp_path: Path, target: Target) -> None:
    went = followed(tmp_path, target("tree"), "daemon", tmp_path / "ready")
    spool = tmp_path / "spool"
    until(lambda: any(note.status == 11 for note in read_notes(spool)), "the daemon's end")
    notes = read_notes(spool)
    first, second = (note.pid for note in notes if note.kind == "fork")
    assert [(note.pid, note.ppid) for note in notes if note.kind == "fork"] == [
        (first, went.pid),
        (second, first),
    ]
    assert [note.pid for note in notes if note.status == 11] == [second]  # whichever of the two ended last


def test_without_a_register_nothing_is_done(tmp_path: Path, target: Target) -> None:
    program = target("told")
    spool = tmp_path / "nothing here"
    bare = alone(tmp_path, "/bin/sh", "-c", f"env -i {program}")
    told = f"LD_PRELOAD={STUB}\nNVTX_INJECTION64_PATH=(none)\nCUDA_INJECTION64_PATH=(none)\nWARPLENS_SPOOL={spool}\n"
    for variables, expected in (
        ({"WARPLENS_SPOOL": str(spool)}, told),
        ({"WARPLENS_SPOOL": ""}, told.replace(str(spool), "")),
        ({"WARPLENS_SPOOL": "spool"}, told.replace(str(spool), "spool")),
    ):
        went = alone(tmp_path, program, LD_PRELOAD=str(STUB), **variables)
        assert (went.status, went.stdout, went.stderr) == (7, expected, "on stderr\n")
        assert same(
            alone(tmp_path, "/bin/sh", "-c", f"env -i {program}", LD_PRELOAD=str(STUB), **variables), bare
        )
    assert not spool.exists()
    assert not (tmp_path / "spool").exists()


def test_a_register_that_goes_away(tmp_path: Path) -> None:
    spool = new_spool(tmp_path)
    script = f"/bin/true; rm -r {spool}; /bin/true; env -i /bin/echo end; exit 4"
    went = alone(tmp_path, "/bin/sh", "-c", script, LD_PRELOAD=str(STUB), WARPLENS_SPOOL=str(spool))
    assert (went.status, went.stdout, went.stderr) == (4, "end\n", "")


# Variables


def variables_told(went: Outcome) -> dict[str, str]:
    """What `told` printed."""
    lines = [line.partition("=") for line in went.stdout.splitlines()]
    return {name: value for name, _, value in lines}


@pytest.mark.parametrize("named", [("NVTX",), ("CUDA",), ("NVTX", "CUDA")])
def test_a_program_without_variables_gets_ours_alone(named: tuple[str, ...], tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    tools: dict[str, Any] = {f"{name}_INJECTION64_PATH": str(AGENT) for name in named}
    went = followed(tmp_path, "/usr/bin/env", "-i", "A=1", "/usr/bin/env", WARPLENS_OTHER="x y", **tools)
    given = {
        "A": "1",
        "LD_PRELOAD": str(STUB),
        **tools,
        "WARPLENS_OTHER": "x y",
        "WARPLENS_SPOOL": str(spool),
    }
    assert variables_told(went) == given


def test_an_environment_with_the_stub_stays_unchanged(tmp_path: Path) -> None:
    order = [
        "A=1",
        f"LD_PRELOAD=:{STUB} libm.so.6",
        "B=2",
        "LD_PRELOADED=",
        f"WARPLENS_SPOOL={tmp_path / 'spool'}",
        "C=3",
    ]
    went = followed(tmp_path, "/usr/bin/env", "-i", *order, "/usr/bin/env")
    assert went.stdout.splitlines() == order


@pytest.mark.parametrize("others", ["libm.so.6", "libm.so.6 librt.so.1", "libm.so.6:"])
def test_other_preloaded_libraries_stay_and_come_first(others: str, tmp_path: Path) -> None:
    went = followed(tmp_path, "/usr/bin/env", "-i", f"LD_PRELOAD={others}", "/usr/bin/env")
    assert f"LD_PRELOAD={others}:{STUB}" in went.stdout.splitlines()
    assert went.stderr == ""


@pytest.mark.parametrize("name", ["NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH"])
def test_another_tools_library_is_not_put_back(name: str, tmp_path: Path) -> None:
    other: dict[str, Any] = {name: "/somebody/else.so"}
    went = followed(tmp_path, "/usr/bin/env", "-i", "/usr/bin/env", **other)
    assert name not in went.stdout
    ours: dict[str, Any] = {name: str(AGENT)}
    kept = followed(
        mkdir(tmp_path / "kept"), "/usr/bin/env", f"{name}=/somebody/else.so", "/usr/bin/env", **ours
    )
    assert f"{name}=/somebody/else.so" in kept.stdout.splitlines()


def test_the_child_of_another_recording_is_left_to_it(tmp_path: Path) -> None:
    went = followed(
        tmp_path, "/usr/bin/env", "-i", "WARPLENS_SPOOL=/elsewhere", "/usr/bin/env", WARPLENS_OTHER="1"
    )
    assert went.stdout == "WARPLENS_SPOOL=/elsewhere\n"


def test_a_program_can_leave(tmp_path: Path, target: Target) -> None:
    went = followed(
        tmp_path,
        *("/usr/bin/env", "WARPLENS_FOLLOW=0", target("told")),
        NVTX_INJECTION64_PATH=str(AGENT),
        WARPLENS_NVTX_CHAIN="/somebody/else.so",
        CUDA_INJECTION64_PATH=str(AGENT),
        WARPLENS_CUDA_CHAIN="/yet/another.so",
    )
    assert variables_told(went) == {
        "LD_PRELOAD": "(none)",
        "NVTX_INJECTION64_PATH": "/somebody/else.so",
        "CUDA_INJECTION64_PATH": "/yet/another.so",
        "WARPLENS_SPOOL": "(none)",
    }
    assert went.count("program") == 1
    stays = followed(mkdir(tmp_path / "stays"), "/usr/bin/env", "-i", "/usr/bin/env", WARPLENS_FOLLOW="0")
    assert (stays.stdout, stays.notes) == ("", [])


def mkdir(path: Path) -> Path:
    """Make the directory and return it."""
    path.mkdir()
    return path


def test_ranks(tmp_path: Path) -> None:
    went = followed(tmp_path, TRUE, OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_LOCAL_RANK="1", RANK="9")
    assert {(note.rank, note.local_rank) for note in went.notes} == {(3, 1)}
    elastic = followed(mkdir(tmp_path / "elastic"), TRUE, SLURM_PROCID="0", RANK="5", LOCAL_RANK="2")
    assert {(note.rank, note.local_rank) for note in elastic.notes} == {(5, 2)}
    none = followed(mkdir(tmp_path / "none"), TRUE, SLURM_PROCID="many", SLURM_LOCALID="99999999999")
    assert {(note.rank, note.local_rank) for note in none.notes} == {(-1, -1)}


def test_names_of_all_kinds(tmp_path: Path, target: Target) -> None:
    program = tmp_path / "ein Prögramm: 1"
    shutil.copy(target("told"), program)
    odd = os.fsdecode(b"\xff\xfe")
    went = followed(tmp_path, program, "", "two words", "ünïcode", odd)
    assert went.of("program")[0].texts == (str(program), str(program), "", "two words", "ünïcode", odd)
    words = [f"{number:0100}" for number in range(700)]
    long = followed(mkdir(tmp_path / "long"), TRUE, *words).of("program")[0]
    assert long.cut
    assert list(long.texts[2:]) == words[: len(long.texts) - 2]
    assert len(long.texts) > 600
    many = followed(mkdir(tmp_path / "many"), TRUE, *["x"] * 5000).of("program")[0]
    assert many.cut
    assert len(many.texts) > 900


def test_the_interpreter_of_a_script_is_the_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 5\n")
    script.chmod(0o755)
    went = followed(tmp_path, script, "word")
    assert went.status == 5
    [started] = went.of("program")
    assert started.texts == (os.path.realpath("/bin/sh"), "/bin/sh", str(script), "word")


def test_a_text_without_a_first_line_runs_in_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("exit 5\n")
    script.chmod(0o755)
    went = followed(tmp_path, "/usr/bin/env", "-i", script)
    assert went.status == 5
    assert [note.texts[1] for note in went.of("program")] == ["/usr/bin/env", "/bin/sh"]


# Shells and Python


def test_a_pipeline(tmp_path: Path) -> None:
    script = "printf 'b\\na\\n' | sort | cat; (exit 3); env -i /bin/true; /bin/sh -c 'kill -9 $$'; exit 2"
    went = followed(tmp_path, "/bin/sh", "-c", script)
    bare = alone(tmp_path, "/bin/sh", "-c", script)
    assert (went.status, went.stdout) == (2, bare.stdout)
    assert {Path(note.texts[0]).name for note in went.of("program")} >= {"sort", "cat", "env", "true"}
    assert 137 in [note.status for note in went.of("waited")]
    assert went.about(went.pid)[-1] == ("exit", 2)


PYTHON = """
import json, multiprocessing, os, signal, subprocess, sys, threading

def work(way):
    if way == "exit":
        os._exit(3)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    started = []
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        for way in ("end", "exit", "kill"):
            process = context.Process(target=work, args=(way,))
            process.start()
            process.join()
            started.append((process.pid, process.exitcode))
    for options in ({"env": {}}, {"env": {}, "close_fds": False}, {"start_new_session": True}, {"preexec_fn": os.getpid}):
        process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(4)"], **options)
        started.append((process.pid, process.wait()))
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 5"], {})
    started.append((pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    for function, words in (
        (os.execv, ("/bin/sh", ["sh", "-c", "exit 6"])),
        (os.execve, ("/bin/sh", ["sh", "-c", "exit 6"], {})),
        (os.execvpe, ("sh", ["sh", "-c", "exit 6"], {"PATH": "/none:/bin"})),
    ):
        pid = os.fork()
        if pid == 0:
            function(*words)
        started.append((pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    os.environ.clear()
    pid = os.spawnvp(os.P_NOWAIT, "sh", ["sh", "-c", "exit 7"])
    started.append((pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    print(json.dumps(started))
"""


def test_all_that_python_starts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PYTHON)
    went = followed(tmp_path, sys.executable, script)
    assert (went.status, went.stderr) == (0, "")
    started = json.loads(went.stdout)
    codes = [code for _, code in started]
    assert codes == [0, 3, -9] * 3 + [4] * 4 + [5] + [6] * 3 + [7]
    for pid, code in started:
        ends = [note for note in went.of("exit", "waited") if note.pid == pid]
        told = {note.status for note in ends}
        if code >= 0:
            assert told == {code}
        elif ends:  # the fork server tells nobody how its children end
            assert told == {137}
        assert any(note.pid == pid for note in went.of("program", "fork"))


def test_a_thousand_short_children(tmp_path: Path) -> None:
    went = followed(
        tmp_path, "/bin/sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true $i; i=$((i+1)); done"
    )
    assert [note.texts[2] for note in went.started("true")] == list(map(str, range(1000)))
    assert went.count("exit") == 1001
    assert went.count("waited") == 1000


# Programs that cannot be followed


FOREIGN = {
    "32 bits": (1, "gcc", "-m32"),
    "another machine": (1, "aarch64-linux-gnu-gcc", "-static"),
    "musl": (2, "musl-gcc", ""),
    "musl, static": (3, "musl-gcc", "-static"),
    "static": (3, "gcc", "-static"),
    "static and relocatable": (3, "gcc", "-static-pie"),
    "address sanitizer": (5, "gcc", "-fsanitize=address"),
    "thread sanitizer": (5, "gcc", "-fsanitize=thread"),
    "leak sanitizer": (5, "gcc", "-fsanitize=leak"),
}
NEEDS = {
    "32 bits": "multilib",
    "another machine": "aarch64",
    "musl": "musl",
    "musl, static": "musl",
    "address sanitizer": "sanitizers",
}
NEEDS |= {"thread sanitizer": "sanitizers", "leak sanitizer": "sanitizers"}
WITHOUT_AGENT = ("32 bits", "another machine", "musl")
STARTERS = {
    "sh": ("/bin/sh", "-c", '"$0"; exit $?'),
    "env": ("/usr/bin/env",),
    "python": (
        sys.executable,
        "-c",
        "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], close_fds=False).returncode)",
    ),
}


@pytest.mark.parametrize("starter", STARTERS)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.require(NEEDS[kind]) if kind in NEEDS else ()) for kind in FOREIGN],
)
def test_foreign_programs_run_unharmed(kind: str, starter: str, tmp_path: Path, target: Target) -> None:
    reason, compiler, word = FOREIGN[kind]
    program = target("told", *word.split(), compiler=compiler)
    others = "" if reason == 5 else "libm.so.6"  # a sanitizer does not want theirs either
    agent: dict[str, Any] = {"NVTX_INJECTION64_PATH": str(AGENT), "CUDA_INJECTION64_PATH": str(AGENT)}
    went = followed(tmp_path, *STARTERS[starter], program, LD_PRELOAD=f"{others}:{STUB}".strip(":"), **agent)
    bare = alone(tmp_path, *STARTERS[starter], program)
    assert (went.status, went.stderr) == (bare.status, bare.stderr)
    runs = bare.status == 7  # one for another machine may, with an emulator
    if runs:
        told = variables_told(went)
        assert told["LD_PRELOAD"] == (others or "(none)")
        assert {told[name] for name in agent} == {"(none)" if kind in WITHOUT_AGENT else str(AGENT)}
    elif starter == "python":  # nothing was started
        assert went.count("foreign") == 0
        return
    [foreign] = went.of("foreign")
    assert (foreign.status, foreign.texts[:2]) == (reason, (str(program), str(program)))
    if runs and starter != "env":
        assert [note.status for note in went.of("waited") if note.pid == foreign.pid] == [7]


@pytest.mark.require("multilib")
@pytest.mark.parametrize(
    "variables",
    [{}, {"WARPLENS_SPOOL": "/not/there"}, {"WARPLENS_SPOOL": "/not/there", "WARPLENS_FOLLOW": "0"}],
)
def test_foreign_programs_run_unharmed_without_a_recording(
    variables: dict[str, str], tmp_path: Path, target: Target
) -> None:
    """A daemon that outlives its recording still has us in LD_PRELOAD."""
    program = target("told", "-m32")
    for starter in STARTERS.values():
        went = alone(tmp_path, *starter, program, LD_PRELOAD=f"libm.so.6:{STUB}", **variables)
        assert (went.status, went.stderr) == (7, "on stderr\n")
        assert variables_told(went)["LD_PRELOAD"] == "libm.so.6"


@pytest.mark.require("aarch64")
def test_an_emulator_does_not_hand_us_on(tmp_path: Path, target: Target) -> None:
    program = target("told", compiler="aarch64-linux-gnu-gcc")
    command = ["/bin/sh", "-c", f"qemu-aarch64 -L /usr/aarch64-linux-gnu {program}; exit $?"]
    went = followed(tmp_path, *command)
    assert (went.status, went.stderr) == (7, "on stderr\n")
    assert [note.status for note in went.of("foreign")] == [1]


def test_a_program_that_gains_rights(tmp_path: Path, target: Target, public: Path) -> None:
    program = public / "told"
    shutil.copy(target("told"), program)
    os.chown(program, 1000, 1000)
    program.chmod(0o4755)
    went = followed(tmp_path, "/bin/sh", "-c", f"{program}; exit $?")
    assert (went.status, went.stderr) == (7, "on stderr\n")
    assert [note.status for note in went.of("foreign")] == [4]
    program.chmod(0o0755)
    plain = followed(mkdir(tmp_path / "plain"), "/bin/sh", "-c", f"{program}; exit $?")
    assert plain.count("foreign") == 0


def test_scripts_lead_to_their_interpreters(tmp_path: Path, target: Target) -> None:
    interpreter = tmp_path / "static"
    shutil.copy(target("told", "-static"), interpreter)
    last = interpreter
    for number in range(5):
        script = tmp_path / f"script{number}"
        script.write_text(f"#! {last} word\n")
        script.chmod(0o755)
        went = followed(mkdir(tmp_path / str(number)), "/bin/sh", "-c", f"{script} 2>&1; exit $?")
        bare = alone(tmp_path, "/bin/sh", "-c", f"{script} 2>&1; exit $?")
        assert went.status == bare.status
        if number < 4:
            [foreign] = went.of("foreign")
            assert (foreign.status, foreign.texts[:2]) == (3, (str(interpreter), str(script)))
        last = script


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that other users can reach, unlike tmp_path."""
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as another user")
    folder = Path(mkdtemp(prefix="warplens-tree-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


AS_USER = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups")


def test_as_another_user(public: Path) -> None:
    stub = public / "stub.so"
    shutil.copy(STUB, stub)
    stub.chmod(0o644)
    spool = new_spool(public)
    for path in (spool, spool / "processes.log"):
        os.chown(path, 1000, 1000)
    went = followed(
        public, *AS_USER, "/bin/sh", "-c", "/bin/true; env -i /bin/true; exit 3", stub=stub, spool=spool
    )
    assert (went.status, went.stderr) == (3, "")
    assert len(went.started("true")) == 2


def test_a_program_that_drops_its_rights(tmp_path: Path, public: Path) -> None:
    """It can neither reach the register nor load us from there any more, and the loader must not complain."""
    stub = public / "private" / "stub.so"
    stub.parent.mkdir(mode=0o700)
    shutil.copy(STUB, stub)
    script = f"import os; os.setuid(1000); os.execv('/bin/sh', ['sh', '-c', '{TRUE}; exit 3'])"
    went = followed(tmp_path, sys.executable, "-c", script, stub=stub)
    assert (went.status, went.stderr) == (3, "")
    assert went.count("program") == 1


@pytest.mark.parametrize("words", [[], ["libseccomp"]], ids=["prctl", "libseccomp"])
def test_a_program_in_a_sandbox_makes_no_calls_for_us(
    words: list[str], tmp_path: Path, target: Target
) -> None:
    """It may die of a system call that it does not know of."""
    if alone(tmp_path, target("sandbox"), *words).status == 6:
        pytest.skip("this kernel has no seccomp")
    went = followed(tmp_path, target("sandbox"), *words)
    assert (went.status, went.stdout, went.stderr) == (5, "inside\n", "")
    assert went.about(went.pid) == [("program", 0)]


def test_a_program_without_new_rights_is_followed(tmp_path: Path) -> None:
    went = followed(tmp_path, "setpriv", "--no-new-privs", "/usr/bin/env", "-i", TRUE)
    assert [Path(note.texts[0]).name for note in went.of("program")] == ["setpriv", "env", "true"]


def test_ldd_does_not_list_the_stub(tmp_path: Path) -> None:
    for number, command in enumerate((["ldd", TRUE], ["env", "LD_TRACE_LOADED_OBJECTS=1", TRUE])):
        went = followed(mkdir(tmp_path / str(number)), *command)
        libraries = [line.split()[0] for line in went.stdout.splitlines()]
        assert libraries == [line.split()[0] for line in alone(tmp_path, *command).stdout.splitlines()]
        assert "libc.so.6" in libraries
