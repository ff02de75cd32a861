"""When to record, as it is typed, and what is refused before any program starts."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from warplens.cli.main import main
from warplens.cli.options.arguments import split
from warplens.cli.options.capture_arguments import ARGUMENTS, NAMES, capture_options
from warplens.cli.recording import OPTIONS
from warplens.errors import UsageError
from warplens.recording.options.capture import DEFAULTS, CaptureOptions


def _read(text: str) -> CaptureOptions:
    arguments = split([*text.split(), "prog"], NAMES)
    assert arguments.command == ["prog"]
    return capture_options(dict(option.split("=", 1) for option in arguments.options))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("--delay 1.5 -d30", {"delay": 1.5, "duration": 30.0}),
        ("-y=2 --duration=0", {"delay": 2.0}),
        ("-Y", {"start_later": True}),
        ("-Y true", {"start_later": True}),
        ("--start-later=false", {}),
        ("-c none", {}),
        ("-c cudaProfilerApi", {"capture_range": "cudaProfilerApi"}),
        ("--capture-range=cudaprofilerapi", {"capture_range": "cudaProfilerApi"}),
        ("-c nvtx -p MESSAGE@DOMAIN", {"capture_range": "nvtx", "nvtx_capture": "MESSAGE@DOMAIN"}),
        ("-c nvtx --nvtx-capture=x@*", {"capture_range": "nvtx", "nvtx_capture": "x@*"}),
        ("-p none", {}),
        ("--capture-range-end none", {"range_end": "none"}),
        ("--capture-range-end=stop-shutdown", {"range_end": "stop-shutdown"}),
        ("--capture-range-end repeat", {"range_end": "repeat"}),
        ("--capture-range-end repeat:4", {"range_end": "repeat", "range_count": 4}),
        ("--capture-range-end repeat:4:sync", {"range_end": "repeat", "range_count": 4}),
        ("--capture-range-end repeat:defer", {"range_end": "repeat"}),
        ("--capture-range-end repeat-shutdown:2:async", {"range_end": "repeat-shutdown", "range_count": 2}),
        ("--kill none", {}),
        ("--kill sigterm", {"kill": signal.SIGTERM}),
        ("--kill=SIGKILL", {"kill": signal.SIGKILL}),
        ("--kill 2", {"kill": 2}),
        ("--nvtx-domain-include default,NCCL", {"domains_included": ("", "NCCL")}),
        (r"--nvtx-domain-exclude=a\,b,\default,c\\", {"domains_excluded": ("a,b", "default", "c\\")}),
        ("--keep-last 10", {"keep_last": 10.0}),
        ("--max-size 500M", {"max_size": 500 << 20}),
        ("--max-size 1.5GiB", {"max_size": 3 << 29}),
        ("--max-size 2000000", {"max_size": 2_000_000}),
        ("--session-new one", {"session": "one"}),
    ],
)
def test_capture_arguments_become_options(text: str, values: dict[str, object]) -> None:
    options = _read(text)
    expected = {name: getattr(DEFAULTS, name) for name in CaptureOptions.__dataclass_fields__} | values
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--delay soon", "--delay soon: write a number of seconds"),
        ("--delay -1", "--delay -1"),
        ("--delay nan", "--delay nan"),
        ("--duration inf", "--duration inf"),
        ("--keep-last 0", "0.001 or more"),
        ("-c range", "write none, nvtx or cudaProfilerApi"),
        ("-c hotkey", "warplens has no hotkey"),
        ("-c nvtx", "which range"),
        ("-c nvtx -p none", "which range"),
        ("-p x", "add -c nvtx"),
        ("-c cudaProfilerApi -p x", "add -c nvtx"),
        ("-c nvtx -p @d", "the message of the range is missing"),
        ("-c nvtx -p a@b@c", r"with \@ for an @"),
        ("-c nvtx -p " + "x" * 5000, "take more than 4096 bytes"),
        ("--capture-range-end later", "write none, stop"),
        ("--capture-range-end stop:sync", "write none, stop"),
        ("--capture-range-end repeat:0", "from 1 to 8191"),
        ("--capture-range-end repeat:-1", "from 1 to 8191"),
        ("--capture-range-end repeat:x", "from 1 to 8191"),
        ("--capture-range-end repeat:2:later", "write none, stop"),
        ("--capture-range-end repeat-shutdown", "the number of ranges is missing"),
        ("--kill maybe", "write none, sigterm"),
        ("--kill 0", "write none, sigterm"),
        ("--kill 999", "write none, sigterm"),
        ("--nvtx-domain-include a --nvtx-domain-exclude b", "cannot be combined"),
        ("--nvtx-domain-include a,,b", "a name is missing"),
        ("--max-size lots", "write a number of bytes"),
        ("--max-size 1K", "too little"),
        ("--delay 1 -c nvtx -p x", "leave one out"),
        ("--delay 1 -Y", "leave one out"),
        ("--keep-last 1 -c cudaProfilerApi", "leave one out"),
    ],
)
def test_nonsense_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        _read(text)
    assert said in str(caught.value)


def test_nonsense_is_said_before_the_program_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["profile", "-c", "nvtx", "touch", "began"])
    assert caught.value.code == 2
    assert "which range" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_every_argument_is_an_option_of_profile() -> None:
    assert {name: OPTIONS[name] for argument in ARGUMENTS for name in argument.names} == NAMES
