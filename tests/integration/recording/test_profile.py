"""`warplens profile` with real programs: what it accepts, where the report goes, what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, SRC, codes, environment, info, program, warplens
from tests.support.thorough import few

pytestmark = pytest.mark.require("native")

# Command lines as they stand in tutorials, with nsys replaced; the words below are what is said about them.
SEEN = (
    ("profile --trace=cuda,nvtx,osrt ./MyProgram", ""),
    ("profile --sample=cpu --trace=cuda,nvtx,osrt ./MyProgram", ""),
    ("profile --sample=cpu --trace=cuda,nvtx,osrt --cudabacktrace=all ./A", ""),
    ("profile -o myprofile --trace=cuda,nvtx,osrt ./MyProgram", ""),
    ("profile -o report python train.py", ""),
    ("profile --trace=cuda,nvtx -o report python train.py", ""),
    ("profile --duration=30 -o report python train.py", ""),
    ("profile --sample=cpu --backtrace=lbr python train.py", ""),
    ("profile --trace=cuda,mpi mpirun -n 4 ./MyProgram", "--trace mpi is"),
    ("profile --cudabacktrace=true --delay=1 --capture-range=cudaProfilerApi ./MyProgram", ""),
    ("profile --trace=cuda -o overview python train.py", ""),
    ("profile --trace=cuda,nvtx --sample=cpu -o detailed python train.py", ""),
    ("profile -c nvtx -p MESSAGE@DOMAIN ./MyProgram", ""),
    ("--output=baseline.out python3 demo.py", ""),
    ("profile --output=delimited.out --capture-range cudaProfilerApi python3 demo.py", ""),
    ("profile --output=apis.out --trace cuda,osrt,nvtx,cublas,cudnn python3 demo.py", ""),
    ("profile --cuda-memory-usage true python3 demo.py", ""),
    ("profile --cuda-memory-usage=false -w true -x true -s none --cpuctxsw=none -f true --stats=false python3 demo.py", ""),
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the programs that the command lines name."""
    for name in ("MyProgram", "A", "train.py", "demo.py"):
        program(tmp_path / name, "os.write(1, b'done\\n')")
    (tmp_path / "bin").mkdir()
    for name in ("python", "python3"):
        (tmp_path / "bin" / name).symlink_to(sys.executable)
    runner = tmp_path / "bin" / "mpirun"
    runner.write_text(
        '#!/bin/sh\n[ "$1" = -n ] || exit 9\ncount=$2; shift 2\nwhile [ $count -gt 0 ]; do "$@" & count=$((count-1)); done; wait\n'
    )
    runner.chmod(0o755)
    return tmp_path


# Each option once; other command lines have the same in other company.
ONCE = ("cudabacktrace=all", "duration", "trace=cuda,mpi", "delay", "-p MESSAGE", "apis.out", "cpuctxsw")
LINES = [
    pytest.param(
        line, said, marks=() if any(part in line for part in ONCE) else pytest.mark.exhaustive, id=line
    )
    for line, said in SEEN
]


@pytest.mark.parametrize(("line", "said"), LINES)
def test_command_lines_of_nsys_are_accepted(line: str, said: str, place: Path) -> None:
    done = warplens(
        *line.split(),
        cwd=place,
        env=environment(PATH=f"{place / 'bin'}:{os.environ['PATH']}", PYTHONHOME=sys.base_prefix),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n" * (4 if "mpirun" in line else 1)
    later = [text for text in done.stderr.splitlines() if "not built yet" in text]
    assert len(later) == (1 if said else 0), done.stderr
    assert not said or later[0].startswith(f"warplens: {said} not built yet")
    name = re.search(r"(?:-o |--output=)(\S+)", line)
    report = place / f"{name[1] if name else 'report1'}.warplens"
    rows = info(report)["tables"]["nvtx_ranges"]
    nothing = ("--trace=cuda -o", "cuda,mpi", "-c nvtx", "--capture-range")  # the programs have no such range
    assert rows == (0 if any(words in line for words in nothing) else 11)


def test_stats_of_an_nsys_report_say_in_one_line_that_it_cannot_be_read(tmp_path: Path) -> None:
    for present in (False, True):
        if present:
            (tmp_path / "overview.nsys-rep").write_bytes(b"\0" * 100)
        done = warplens("stats", "overview.nsys-rep", cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1 if present else 2)
        assert (
            "nsys export -t sqlite overview.nsys-rep" if present else "There is no report overview.nsys-rep"
        ) in done.stderr


def test_stats_of_what_profile_wrote_under_that_name(place: Path) -> None:
    assert warplens("profile", "-o", "overview.nsys-rep", "./MyProgram", cwd=place).returncode == 0
    for name in ("overview.nsys-rep", "overview", "overview.warplens"):
        done = warplens("stats", name, cwd=place)
        assert done.returncode == 0, done.stderr
        assert "inner" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("profile",), 2, "no program to run"),
        (("profile", "--trace=nvtx,cudaa", "true"), 2, "Did you mean cuda?"),
        (("profile", "--cuda-memory-usag", "true"), 2, "--cuda-memory-usage"),
        (("profile", "-e", "1A=x", "true"), 2, "NAME=VALUE"),
        (("profile", "no-such-program"), 127, "not found"),
        (("profile", "./demo.txt"), 126, "not executable"),
        (("profile", "-o", "%q{UNSET_VARIABLE}", "true"), 2, "UNSET_VARIABLE is not set"),
        (("profile", "./bad-interpreter"), 127, "interpreter"),
        (("profile", "--spool-dir=/proc", "true"), 1, "--spool-dir"),
    ],
)
def test_a_program_that_cannot_start_is_named_and_leaves_no_report(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "demo.txt").write_text("text")
    (tmp_path / "bad-interpreter").write_text("#!/no/such/interpreter\n")
    (tmp_path / "bad-interpreter").chmod(0o755)
    before = sorted(tmp_path.iterdir())
    done = warplens(*words, cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("code", few([3, 0, 255]))
def test_the_programs_exit_code_is_returned(code: int, tmp_path: Path) -> None:
    done = warplens("profile", "-o", "x", program(tmp_path / "p.py", f"sys.exit({code})"), cwd=tmp_path)
    assert done.returncode == code
    assert info(tmp_path / "x.warplens")["parts"][0]["exit_status"] == code
    assert (f"exit code {code}" in done.stderr) == (code != 0)


def test_a_script_without_interpreter_line_runs_in_the_shell(tmp_path: Path) -> None:
    (tmp_path / "script").write_text('echo "$1"; exit 4\n')
    (tmp_path / "script").chmod(0o755)
    done = warplens("profile", "./script", "word", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "word\n")


def test_input_and_output_are_the_programs_own(tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    done = subprocess.run(
        [*COMMAND, "profile", "--light", "-q", "cat"],
        cwd=tmp_path,
        env=environment(),
        input=content,
        capture_output=True,
        check=True,
    )
    assert done.stdout == content
    reader, writer = os.pipe()
    try:
        text = f"os.write({writer}, b'through'); print('out'); print('err', file=sys.stderr)"
        done = subprocess.run(
            [*COMMAND, "profile", "--light", "-q", program(tmp_path / "p.py", text)],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            check=True,
            pass_fds=(writer,),
        )
        assert (done.stdout, done.stderr, os.read(reader, 100)) == (b"out\n", b"err\n", b"through")
    finally:
        os.close(reader)
        os.close(writer)


def test_the_environment_is_passed_on_added_to_and_not_recorded(tmp_path: Path) -> None:
    text = "print(os.environ['SECRET'], os.environ['A'], os.environ['B'], os.environ['WARPLENS_NVTX_CHAIN'])"
    path = program(tmp_path / "p.py", text)
    env = environment(SECRET="hunter2-secret", A="old", NVTX_INJECTION64_PATH="/no/such/tool.so")
    done = warplens("profile", "--keep-raw", "-o", "x", "-e", "A=1,2,B=x=y", path, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hunter2-secret 1,2 x=y /no/such/tool.so\n"
    assert "Another NVTX tool, /no/such/tool.so, is configured too" in " ".join(done.stderr.split())
    for file in (tmp_path / "x.warplens").rglob("*"):
        assert file.is_dir() or b"hunter2" not in file.read_bytes(), file


@pytest.mark.parametrize("locale", few([{"LANG": "C"}, {}, {"LC_CTYPE": "POSIX"}, {"LC_CTYPE": "C.UTF-8"}]))
def test_the_locale_is_the_callers(locale: dict[str, str], tmp_path: Path) -> None:
    """Python changes LC_CTYPE of the C locale for itself; programs sort and print by it."""
    env = {
        name: value for name, value in environment().items() if name != "LANG" and not name.startswith("LC_")
    } | locale
    done = warplens("profile", "-q", "env", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith(("LANG=", "LC_")))
    assert lines == locale


def test_report_names(tmp_path: Path) -> None:
    path = program(tmp_path / "p.py")
    for _ in range(2):
        assert warplens("profile", "-q", path, cwd=tmp_path).returncode == 0
    assert (
        warplens(
            "profile", "-q", "-o", "run-%q{RANK}-%n-%%", path, cwd=tmp_path, env=environment(RANK="3")
        ).returncode
        == 0
    )
    assert warplens("profile", "-q", "-o", "ein Ordner/läuft 日本", path, cwd=tmp_path).returncode == 0
    assert {file.name for file in tmp_path.glob("*.warplens")} == {
        "report1.warplens",
        "report2.warplens",
        "run-3-1-%.warplens",
    }
    assert info(tmp_path / "ein Ordner" / "läuft 日本.warplens")["tables"]["nvtx_ranges"] == 11


def test_an_existing_report_is_kept_unless_forced(tmp_path: Path) -> None:
    path = program(tmp_path / "p.py", "print('ran')")
    assert warplens("profile", "-o", "x", path, cwd=tmp_path).returncode == 0
    refused = warplens("profile", "-o", "x", path, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "exists already" in refused.stderr
    first = info(tmp_path / "x.warplens")["parts"][0]["id"]
    assert warplens("profile", "-f", "-o", "x", path, cwd=tmp_path).returncode == 0
    parts = info(tmp_path / "x.warplens")["parts"]
    assert len(parts) == 1
    assert parts[0]["id"] != first


def test_ranks_of_a_job_share_a_report_and_another_job_does_not(tmp_path: Path) -> None:
    path = program(tmp_path / "p.py", "time.sleep(0.3)")
    job = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}
    ranks = [
        subprocess.Popen(
            [*COMMAND, "profile", "--light", "-o", "x", path],
            cwd=tmp_path,
            env=environment(**job, SLURM_PROCID=str(rank)),
            stderr=subprocess.PIPE,
        )
        for rank in range(3)
    ]
    for rank in ranks:
        _, err = rank.communicate(timeout=60)
        assert rank.returncode == 0, err
    facts = info(tmp_path / "x.warplens")
    assert len(facts["parts"]) == 3
    assert sorted(process["rank"] for process in facts["processes"] if process["recorded"]) == [0, 1, 2]
    assert facts["tables"]["nvtx_ranges"] == 33
    assert {part["job"] for part in facts["parts"]} == {"slurm:7.0"}
    other = warplens(
        "profile", "-o", "x", path, cwd=tmp_path, env=environment(SLURM_JOB_ID="8", SLURM_STEP_ID="0")
    )
    assert other.returncode == 1
    assert "not of this job" in other.stderr


def test_two_launchers_at_once_without_a_job_do_not_mix(tmp_path: Path) -> None:
    path = program(tmp_path / "p.py", "time.sleep(0.5)")
    for words, codes_wanted in ((("-o", "x"), [0, 1]), ((), [0, 0])):
        both = [
            subprocess.Popen(
                [*COMMAND, "profile", "--light", *words, path],
                cwd=tmp_path,
                env=environment(),
                stderr=subprocess.DEVNULL,
            )
            for _ in range(2)
        ]
        assert sorted(each.wait(60) for each in both) == codes_wanted
    assert {file.name for file in tmp_path.glob("*.warplens")} == {
        "x.warplens",
        "report1.warplens",
        "report2.warplens",
    }
    for file in tmp_path.glob("*.warplens"):
        assert info(file)["tables"]["nvtx_ranges"] == 11


def test_the_summary_says_what_was_recorded_and_what_next(tmp_path: Path) -> None:
    done = warplens("profile", "-o", "x", program(tmp_path / "p.py"), cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert any(line.startswith("Recorded  1 process, 1 thread, 11 ranges in ") for line in lines), done.stderr
    assert any(
        re.match(r"Sources +cuda; nvtx: \d+ ns a range here, .*% of the run", line) for line in lines
    ), done.stderr
    assert any(re.match(r"Longest .* 1 x  outer$", line) for line in lines), done.stderr
    assert any(re.match(r" .* 10 x  inner$", line) for line in lines), done.stderr
    assert "warplens stats x.warplens" in done.stderr
    assert max(map(len, lines)) < 80
    assert done.stdout == ""
    assert "\x1b" not in done.stderr


def test_quiet_says_nothing(tmp_path: Path) -> None:
    done = warplens("profile", "-q", "--wait=primary", program(tmp_path / "p.py"), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_program_without_nvtx_is_told_so(tmp_path: Path) -> None:
    done = warplens("profile", "-o", "x", "true", cwd=tmp_path)
    assert done.returncode == 0
    assert "No process of the program called NVTX or CUDA" in " ".join(done.stderr.split())
    assert codes(tmp_path / "x.warplens") == ["no-nvtx"]


def test_a_program_with_nvtx_switched_off_is_told_so(tmp_path: Path) -> None:
    done = warplens(
        "profile",
        "-o",
        "x",
        program(tmp_path / "p.py", "nvtx.mark('x')"),
        cwd=tmp_path,
        env=environment(NVTX_DISABLE="0"),
    )
    assert codes(tmp_path / "x.warplens") == ["no-nvtx"]
    assert "NVTX_DISABLE is set (to '0'" in done.stderr


@pytest.mark.parametrize(
    ("trace", "ours", "code"),
    [
        ("none", "False False", "nothing-traced"),
        ("cuda", "False True", "no-cuda"),
        ("nvtx", "True False", None),
    ],
)
def test_untraced_sources_keep_the_programs_own_tools(
    trace: str, ours: str, code: str | None, tmp_path: Path
) -> None:
    path = program(
        tmp_path / "p.py",
        "print(*('agent' in os.environ.get(f'{name}_INJECTION64_PATH', '') for name in ('NVTX', 'CUDA')))",
    )
    done = warplens("profile", "-o", "x", "-t", trace, path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{ours}\n")
    assert ("the report is empty" in " ".join(done.stderr.split())) == bool(code)
    assert codes(tmp_path / "x.warplens") == [code] * bool(code)


def test_info_says_what_a_report_holds(tmp_path: Path) -> None:
    path = program(tmp_path / "p.py", "nvtx.push_range('open'); os._exit(3)")
    assert warplens("profile", "-o", "x", path, cwd=tmp_path).returncode == 3
    text = warplens("info", "x", cwd=tmp_path)
    assert text.returncode == 0, text.stderr
    for words in ("x.warplens: ", "exit status 3", "recorded cuda, nvtx", "p.py", "Hosts"):
        assert words in text.stdout
    assert re.search(r"nvtx_ranges +12 rows", text.stdout)
    facts = json.loads(warplens("info", "x", "-f", "json", cwd=tmp_path).stdout)
    assert facts["tables"]["nvtx_ranges"] == 12
    assert facts["parts"][0]["exit_status"] == 3
    # the script's `#! /bin/sh` became Python
    assert [(process["primary"], process["recorded"]) for process in facts["processes"]] == [
        (True, True),
        (False, False),
    ]
    assert facts["end"] > facts["origin"]


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    assert warplens("profile", "-q", "-o", "x", program(tmp_path / "p.py"), cwd=tmp_path).returncode == 0
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, "info", "x"],
            cwd=tmp_path,
            env=environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode != 0


@pytest.mark.parametrize("redirection", few([">&- 2>&- <&-", "2>/dev/full", ">&-", "2>&-", "<&-"]))
def test_missing_streams_do_not_matter(redirection: str, tmp_path: Path) -> None:
    text = "open('ran', 'w').close(); sys.exit(3)"
    line = f'"$@" {redirection}'
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
        "-t",
        "nvtx,cuda",
        str(program(tmp_path / "p.py", text)),
    ]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "ran").exists()
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 11


def test_without_any_package_a_recording_is_left_for_another_machine(tmp_path: Path) -> None:
    bare = [sys.executable, "-S", "-m", "warplens"]  # no site-packages: what `pip install --no-deps` gives

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*bare, *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )

    path = program(tmp_path / "p.py", "sys.exit(3)")
    done = run(
        "profile",
        "--light",
        "-o",
        "x",
        "--spool-dir=elsewhere",
        "-e",
        "A=1",
        "--wait=primary",
        "--gpuctxsw",
        "true",
        str(path),
    )
    assert done.returncode == 3, done.stderr
    assert "--gpuctxsw is not built yet" in done.stderr
    assert "the report is not finished" in done.stderr
    refused = run("stats", "x")
    assert refused.returncode == 2
    assert (
        f"{shlex.quote(sys.executable)} -m pip install adbc_driver_manager adbc_driver_sqlite click "
        in refused.stderr
    )
    assert run("--help").stdout.startswith("Usage: warplens profile")
    assert run("profile", "--light", "--wait=never", "true").returncode == 2
    assert run("no-such-program").returncode == 127
    (tmp_path / "x.warplens").rename(tmp_path / "carried.warplens")
    facts = info(tmp_path / "carried.warplens")
    assert facts["tables"]["nvtx_ranges"] == 11
    assert facts["parts"][0]["exit_status"] == 3
    assert not (tmp_path / "carried.warplens" / "spool").exists()


def test_doctor_says_what_works(tmp_path: Path) -> None:
    done = warplens("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "Programs can be recorded here." in done.stdout
    checks = {
        check["name"]: check
        for check in json.loads(warplens("doctor", "-f", "json", cwd=tmp_path).stdout)["checks"]
    }
    assert checks["agent"]["state"] == "ok"
    assert {
        "clock",
        "nvtx",
        "spool",
        "reader",
        "perf",
        "thread states",
        "python stacks",
        "cuda",
        "cupti",
    } <= set(checks)


def test_no_heavy_module_is_loaded_before_the_program_runs(tmp_path: Path) -> None:
    text = """
import sys
from warplens.recording.launch import child
def stop(*arguments, **options):
    print(sorted(name for name in sys.modules if name in ("numpy", "pyarrow", "duckdb", "rich", "pandas")))
    raise SystemExit(0)
child.os.posix_spawn = stop
from warplens.cli.main import main
main(["profile", "--light", "-o", "x", "true"])
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "absent"),
    few([(("-q",), "duckdb pandas pyarrow.compute rich"), ((), "pandas pyarrow.compute rich")]),
)
def test_little_is_loaded_to_finish_a_short_run(words: tuple[str, ...], absent: str, tmp_path: Path) -> None:
    text = """
import os, sys
from warplens.cli.main import main
leave = os._exit
def note(code):  # the child that writes the report ends so
    print(*sorted(sys.modules), file=open("modules", "w"), flush=True)
    leave(code)
os._exit = note
main(["profile", "--light", *sys.argv[1:]])
"""
    command = [sys.executable, "-c", text, *words, "-o", "x", str(program(tmp_path / "p.py"))]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = set((tmp_path / "modules").read_text().split())
    assert "pyarrow" in loaded
    assert loaded.isdisjoint(absent.split())
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 11


def test_stats_at_the_end(tmp_path: Path) -> None:
    done = warplens("profile", "--stats=true", "-o", "x", program(tmp_path / "p.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "inner" in done.stdout


def test_stats_that_nobody_reads_leave_the_exit_code_alone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    path = program(tmp_path / "p.py", "raise SystemExit(7)\n")
    done = subprocess.run(
        [*COMMAND, "profile", "--light", "-q", "--stats", "-o", "x", path],
        cwd=tmp_path,
        env=environment(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (7, "")


def test_the_raw_spool_is_kept_on_request_only(tmp_path: Path) -> None:
    path = program(tmp_path / "p.py")
    assert warplens("profile", "-o", "kept", "--keep-raw", path, cwd=tmp_path).returncode == 0
    assert warplens("profile", "-o", "gone", path, cwd=tmp_path).returncode == 0
    assert list((tmp_path / "kept.warplens" / "raw").rglob("*.spool"))
    assert {file.name for file in (tmp_path / "gone.warplens").iterdir()} <= {"manifest.d", "tables", "index"}


def test_a_spool_elsewhere_is_removed_when_finished(tmp_path: Path) -> None:
    path = program(tmp_path / "p.py", "print(os.environ['WARPLENS_SPOOL'])")
    done = warplens("profile", "-o", "x", "--spool-dir", "spool dir", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path}/spool dir/warplens-")
    assert not list((tmp_path / "spool dir").iterdir())


def test_the_launched_process_is_the_primary_one(tmp_path: Path) -> None:
    child = program(tmp_path / "child.py")
    path = program(tmp_path / "p.py", f"import subprocess; subprocess.run([{str(child)!r}], check=True)")
    assert warplens("profile", "-o", "x", path, cwd=tmp_path).returncode == 0
    processes = info(tmp_path / "x.warplens")["processes"]
    recorded = [process for process in processes if process["recorded"]]
    assert [("child.py" in process["command"], process["primary"]) for process in recorded] == [
        (False, True),
        (True, False),
    ]
    by_key = {process["process"]: process for process in processes}
    shell = by_key[recorded[1]["parent"]]  # what the child was before its `exec`
    assert (shell["pid"], shell["parent"]) == (recorded[1]["pid"], recorded[0]["process"])


def test_an_ordinary_user_can_record(tmp_path: Path) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv to become another user")
    nobody = (
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env"] if os.geteuid() == 0 else []
    )
    paths = os.pathsep.join([str(SRC), *(path for path in sys.path if path.endswith("site-packages"))])
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": paths,
        "HOME": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    probe = "import warplens.cli.main, pyarrow, duckdb"
    pythons = [
        python
        for python in (sys.executable, f"/usr/bin/python{version}")
        if subprocess.run(
            [*nobody, python, "-c", probe], env=env, check=False, capture_output=True
        ).returncode
        == 0
    ]
    if not pythons:
        pytest.skip(f"another user can run no Python {version} here")
    python = pythons[0]
    place = Path("/tmp" if os.geteuid() == 0 else tmp_path) / f"warplens-test-{os.getpid()}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    try:
        path = program(place / "p.py")
        done = subprocess.run(
            [*nobody, python, "-m", "warplens", "profile", "--light", "-o", "x", python, path],
            cwd=place,
            env=env,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "11 ranges" in done.stderr
        assert (
            json.loads(next((place / "x.warplens" / "manifest.d").glob("*.json")).read_text())["tables"][
                "nvtx_ranges"
            ]["rows"]
            == 11
        )
        if nobody:
            place.chmod(0o755)
            done = subprocess.run(
                [*nobody, python, "-m", "warplens", "profile", "--light", "true"],
                cwd=place,
                env=env,
                check=False,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 1
            assert "Cannot create the report" in done.stderr
    finally:
        shutil.rmtree(place)
