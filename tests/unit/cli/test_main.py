"""The entry point: which command is meant, and how errors are told."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.support.programs.launching import COMMAND, environment
from tests.support.thorough import few
from warplens import catalog
from warplens.cli.group import commands
from warplens.cli.main import main
from warplens.errors import WarplensError
from warplens.testing.timeline import timeline


@pytest.fixture(autouse=True)
def _imports_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])  # main() hides pandas


def _exit(*arguments: str) -> object:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


def _meant(*words: str) -> list[str]:
    context = click.Context(commands, info_name="warplens", **commands.context_settings)
    commands.parse_args(context, list(words))
    first: list[str] = getattr(context, "_protected_args", None) or getattr(
        context, "protected_args", []
    )  # before click 8.2
    return [*first, *context.args]


@pytest.mark.parametrize(
    "words",
    [
        ("--output=x", "python3", "demo.py"),
        ("sh", "-c", "exit 3"),
        ("-t", "cuda", "true"),
        ("--", "info"),
        ("/bin/sh", "x"),
    ],
)
def test_without_a_command_profile_is_meant(words: tuple[str, ...]) -> None:
    assert _meant(*words) == ["profile", *words]


@pytest.mark.parametrize("words", [("info", "x"), ("profile", "true"), ("doctor",)])
def test_commands_are_commands(words: tuple[str, ...]) -> None:
    assert _meant(*words) == list(words)


def test_no_words_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit() == 0
    out = capsys.readouterr().out
    assert "profile " in out
    assert "completion " in out


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit(option) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["-v", "-V", "--version"])
def test_version(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit(option) == 0
    assert capsys.readouterr().out.startswith("warplens 0.")


def test_a_typing_error_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit("profle", "x") == 2
    assert "warplens profile" in capsys.readouterr().err


def test_a_word_that_is_neither_command_nor_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit("zzzzzz") == 2
    captured = capsys.readouterr()
    assert "neither a command nor a program" in captured.err
    assert captured.out == ""


def test_errors_are_one_block_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit("info", "no-such-report") == 1
    captured = capsys.readouterr()
    first, then = captured.err.splitlines()
    assert first == "warplens: error: There is no report no-such-report."
    assert then.startswith("  Record one:")
    assert captured.out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WarplensError("x"), 1),
        (MemoryError("x"), 1),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (click.UsageError("x"), 2),
        (click.ClickException("x"), 1),
    ],
)
def test_exit_codes(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(commands, "main", fail)
    monkeypatch.setattr("os._exit", sys.exit)  # a command that runs out of memory ends at once
    assert _exit("doctor") == code


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.nsys-rep", "is no recording of Nsight Systems: it is empty."),
        ("x.sqlite", "is no SQLite file: it is empty."),
        ("x.txt", "is a file, neither a report"),
    ],
)
def test_files_of_other_tools(
    name: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).touch()
    assert _exit("info", str(tmp_path / name)) == 1
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_a_report_that_is_not_there_names_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.warplens").mkdir()
    assert _exit("info", str(tmp_path / "rum")) == 1
    assert "There is: run.warplens." in capsys.readouterr().err


def _redirected(words: str, where: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    line = f"{shlex.join(COMMAND)} {words} {where}"
    return subprocess.run(
        ["sh", "-c", line], cwd=cwd, env=environment(), capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("words", few(["--help", "stats run", "query run 'SELECT 1'"], 2))
def test_output_that_nobody_takes(words: str, tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main |[step ]")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        left = subprocess.run(
            [*COMMAND, *shlex.split(words)],
            cwd=tmp_path,
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (left.returncode, left.stderr) == (141, b"")  # as `| head` leaves others
    full = _redirected(words, ">/dev/full", tmp_path)
    assert (full.returncode, full.stderr) == (
        1,
        "warplens: error: cannot write the output: No space left on device.\n",
    )
    closed = _redirected(words, ">&-", tmp_path)
    assert (closed.returncode, closed.stderr) == (0, "")


@pytest.mark.parametrize("command", ["", *(unit.id for unit in catalog.units("cli.commands"))])
def test_help_has_examples_and_fits_80_columns(command: str) -> None:
    help = CliRunner().invoke(commands, [*command.split(), "--help"], terminal_width=80).output
    assert "warplens " in help.partition("Examples:" if command else "query and view it.")[2]
    assert max(map(len, help.splitlines())) <= 80


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit("completion", shell) == 0
    assert "_WARPLENS_COMPLETE" in capsys.readouterr().out


def test_completion_offers_commands_and_options() -> None:
    from click.shell_completion import ShellComplete

    complete = ShellComplete(commands, {}, "warplens", "_WARPLENS_COMPLETE")
    assert "profile" in [item.value for item in complete.get_completions([], "pro")]
    assert "--spool-dir" in [item.value for item in complete.get_completions(["profile"], "--sp")]
