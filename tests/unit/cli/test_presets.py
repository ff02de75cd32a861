"""One word for several options of a recording, and the headings of its help."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from warplens.cli.commands.profile import command
from warplens.cli.options.arguments import split
from warplens.cli.options.presets import PRESETS
from warplens.cli.recording import OPTIONS
from warplens.errors import UsageError


def _last(*words: str) -> dict[str, str]:
    return dict(option.split("=", 1) for option in split([*words, "true"], OPTIONS).options)


def test_a_preset_is_the_options_that_it_stands_for() -> None:
    assert _last("--light") == {"--trace": "cuda,nvtx", "--sample": "none"}


@pytest.mark.parametrize("words", [("--light", "-t", "nvtx"), ("-t", "nvtx", "--light")])
def test_options_beside_a_preset_take_precedence(words: tuple[str, ...]) -> None:
    assert _last(*words) == {"--trace": "nvtx", "--sample": "none"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_understood_and_help_says_what_it_stands_for(name: str) -> None:
    assert split([name, "true"], OPTIONS).command == ["true"]
    text = "".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert f"Standsfor:{PRESETS[name][0].replace(' ', '')}" in text


def test_a_preset_takes_no_value() -> None:
    with pytest.raises(UsageError, match=r"--cpu takes no value: it stands for -t"):
        split(["--cpu=yes", "true"], OPTIONS)


def test_help_lists_each_option_once_under_headings_the_common_ones_first() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    heads = [
        line.rstrip(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")
    ]
    assert heads.index("Data to record") < heads.index("The report") < heads.index("CPU details")
    for name in ("--output", "--sample", "--cuda-memory-usage", "--keep-last"):
        lines = [
            line
            for line in text.splitlines()
            if line.lstrip().startswith(("-", name)) and name in line.split("  ")[1]
        ]
        assert len(lines) == 1, name


def test_an_unknown_option_proposes_only_what_looks_like_it() -> None:
    with pytest.raises(UsageError) as unlike:
        split(["--flamegraph", "true"], OPTIONS)
    assert "Did you mean" not in str(unlike.value)
    with pytest.raises(UsageError, match="warplens launch PROGRAM"):
        split(["--pid", "12"], OPTIONS)
    with pytest.raises(UsageError, match="Did you mean --sampling-frequency"):
        split(["--sampling-freqency", "true"], OPTIONS)
