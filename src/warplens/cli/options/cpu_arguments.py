"""The CPU options: as they are typed, and their meaning.

Without click.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from warplens.cli.options.argument import Argument
from warplens.errors import UsageError
from warplens.recording.options.cpu import Backtrace, CpuOptions
from warplens.recording.options.python_functions import read_functions

ARGUMENTS = (
    Argument(
        ("-s", "--sample"),
        "WHAT",
        "Sample CPU activity: process-tree or cpu (native and Python stacks, and when threads ran), "
        "none.  "
        "[default: process-tree with fewer samples per second; programs without Python only after "
        "half a second]",
    ),
    Argument(
        ("-b", "--backtrace"),
        "HOW",
        "Unwinding of native stacks: fp (frame pointers), dwarf (unwind tables), auto, lbr (as "
        "auto), none.  [default: auto]",
    ),
    Argument(
        ("--sampling-frequency",),
        "HZ",
        "Native samples per second and CPU, 10 to 8000.  [default: 100; with -s 1000, or 250 if a "
        "CPU has no counters]",
    ),
    Argument(
        ("--cpuctxsw",),
        "WHAT",
        "Record when threads ran, waited for a CPU or were blocked: process-tree or none.  "
        "[default: as --sample]",
    ),
    Argument(
        ("--python-sampling",),
        "WHETHER",
        "Sample the Python stacks of all threads: true or false.  [default: as --sample]",
    ),
    Argument(
        ("--python-sampling-frequency",),
        "HZ",
        "Python samples per second and thread, 1 to 2000.  [default: 200; with -s or --python-sampling 1000]",
    ),
    Argument(
        ("--python-sampling-opcodes",),
        "WHETHER",
        "Record the bytecode instruction with each Python sample (CPython 3.11 or later): true or "
        "false.  [default: false]",
    ),
    Argument(("--osrt-threshold",), "NS", "With -t osrt: do not record shorter calls, ns.  [default: 1000]"),
    Argument(
        ("--osrt-backtrace-threshold",),
        "NS",
        "With -t osrt: record the stacks of longer calls, ns.  [default: 80000]",
    ),
    Argument(
        ("--osrt-backtrace-depth",),
        "FRAMES",
        "With -t osrt: maximum number of frames of such a stack.  [default: 24]",
    ),
    Argument(("--osrt-file-access",), "", "Record all file calls with their bytes, even short ones."),
    Argument(
        ("--gil-threshold",),
        "NS",
        "With -t gil: sum up shorter holds and waits instead of recording each, ns.  [default: 10000]",
    ),
    Argument(
        ("--torch-inputs",),
        "",
        "With -t torch: record the shapes and types of operator inputs.",
    ),
    Argument(
        ("--python-functions-trace",),
        "FILE",
        "Record the calls of the Python functions that FILE names, in the JSON of nsys.",
    ),
)
_ASKED = (
    "--sample",
    "--cpuctxsw",
    "--python-sampling",
    "--python-sampling-opcodes",
)  # who chooses hears what does not work
_NOTHING = CpuOptions()
UNASKED = CpuOptions(
    sample=True, native_hz=100, states=True, python_sample=True, python_hz=200, python_only=True
)
_PLACES = ("process-tree", "cpu", "none", "system-wide")


def cpu_options(given: Mapping[str, str], unasked: CpuOptions = _NOTHING) -> CpuOptions:
    """Return what `given` says, which maps long names to texts (`true` and `false` for flags).

    UsageError for nonsense.

    `unasked`: what is recorded where `given` does not choose samples or states.
    """
    base = _NOTHING if any(name in given for name in _ASKED) else unasked
    sample = _place("--sample", given["--sample"]) if "--sample" in given else base.sample
    opcodes = _truth("--python-sampling-opcodes", given.get("--python-sampling-opcodes", "false"))
    python_sample = (
        _truth("--python-sampling", given["--python-sampling"])
        if "--python-sampling" in given
        else sample or opcodes
    )
    if opcodes and not python_sample:
        raise UsageError(
            "--python-sampling-opcodes=true needs Python samples: leave out --python-sampling=false."
        )
    states = _place("--cpuctxsw", given["--cpuctxsw"]) if "--cpuctxsw" in given else sample
    return CpuOptions(
        sample=sample,
        backtrace=_backtrace(given.get("--backtrace", "auto")),
        native_hz=_number("--sampling-frequency", given, 10, most=8000, base=base.native_hz, unit="Hz"),
        states=states,
        python_sample=python_sample,
        python_hz=_number("--python-sampling-frequency", given, 1, most=2000, base=base.python_hz, unit="Hz"),
        python_opcodes=opcodes,
        os_threshold_ns=_number(
            "--osrt-threshold", given, 0, most=10**12, base=base.os_threshold_ns, unit="ns"
        ),
        os_backtrace_ns=_number(
            "--osrt-backtrace-threshold", given, 0, most=10**12, base=base.os_backtrace_ns, unit="ns"
        ),
        os_backtrace_depth=_number(
            "--osrt-backtrace-depth", given, 1, most=512, base=base.os_backtrace_depth, unit="frames"
        ),
        file_access=given.get("--osrt-file-access") == "true",
        python_only=base.python_only,
        torch_inputs=given.get("--torch-inputs") == "true",
        gil_threshold_ns=_number(
            "--gil-threshold", given, 0, most=10**9, base=base.gil_threshold_ns, unit="ns"
        ),
        functions=_file(given["--python-functions-trace"]) if "--python-functions-trace" in given else None,
    )


def instead_of_asked(given: Mapping[str, str]) -> str | None:
    """Return what to say where something else is done than asked; None if it is not."""
    if given.get("--backtrace", "").lower() != "lbr":
        return None
    return "-b lbr: warplens does not read branch records; it unwinds by tables, as with -b dwarf."


def _place(name: str, text: str) -> bool:
    if text.lower() not in _PLACES:
        raise UsageError(f"{name} {text}: write process-tree or none.")
    if text.lower() == "system-wide":
        raise UsageError(
            f"{name} system-wide: warplens records only the program and its child processes; write "
            "process-tree."
        )
    return text.lower() != "none"


def _backtrace(text: str) -> Backtrace:
    if text.lower() == "lbr":
        return "auto"
    for known in get_args(Backtrace):
        if text.lower() == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(f"-b {text}: write auto, fp, dwarf, lbr or none.")


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{name} {text}: write true or false.")
    return text.lower() == "true"


def _number(name: str, given: Mapping[str, str], least: int, most: int, base: int, unit: str) -> int:
    text = given.get(name)
    if text is None:
        return base
    if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
        raise UsageError(f"{name} {text}: write a number of {unit} from {least} to {most}.")
    return int(text)


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise UsageError(f"--python-functions-trace {text}: no such file.")
    read_functions(Path(text))
    return Path(text)
