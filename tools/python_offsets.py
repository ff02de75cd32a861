"""Writes layout_tables.inc of the agent: field offsets of CPython 3.10 to 3.15, from their headers.

``python tools/python_offsets.py PYTHON...`` asks each interpreter for its headers and replaces the row of its minor version;
``--print`` prints the row of one interpreter instead. Layouts stay as they are within a minor version.

A free-threaded build (3.14t) has other offsets, and so its own row.

From 3.13 on, CPython publishes most offsets at the beginning of `_PyRuntime`. A row has a second half for these versions: where
there to read each of them. What is published is believed rather than the row's first half.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).resolve().parent.parent / "native/agent/python/memory/layout_tables.inc"
HEAD = "// Written by tools/python_offsets.py from the headers of each version: do not edit.\n"
FOOT = "// clang-format on\n"

RUNTIME, INTERPRETER, THREAD, GIL = (
    "_PyRuntimeState",
    "PyInterpreterState",
    "PyThreadState",
    "struct _gil_runtime_state",
)
CHUNK, CODE = "_PyStackChunk", "PyCodeObject"

# Field, the versions that have it (t: free-threaded builds alone), and what it is: an offset (type, member), a size (type,), or a
# function of PROGRAM.
FIELDS: list[tuple[str, str, tuple[str, ...] | str]] = [
    ("runtime_initialized", "3.10-", (RUNTIME, "initialized")),
    ("runtime_finalizing", "3.10-", (RUNTIME, "_finalizing")),
    ("runtime_interpreters", "3.10-", (RUNTIME, "interpreters.head")),
    ("runtime_main", "3.10-", (RUNTIME, "interpreters.main")),
    ("runtime_stop", "3.14t-", (RUNTIME, "stoptheworld")),
    ("runtime_gil", "3.10-3.11", (RUNTIME, "ceval.gil")),
    ("interpreter_gil", "3.12-", (INTERPRETER, "ceval.gil")),
    ("interpreter_id", "3.10-", (INTERPRETER, "id")),
    ("interpreter_next", "3.10-", (INTERPRETER, "next")),
    ("interpreter_threads", "3.10-3.10", (INTERPRETER, "tstate_head")),
    ("interpreter_threads", "3.11-", (INTERPRETER, "threads.head")),
    ("interpreter_stop", "3.14t-", (INTERPRETER, "stoptheworld")),
    ("thread_next", "3.10-", (THREAD, "next")),
    ("thread_interpreter", "3.10-", (THREAD, "interp")),
    ("thread_exceptions", "3.10-", (THREAD, "exc_info")),
    ("thread_handle", "3.10-", (THREAD, "thread_id")),
    ("thread_native", "3.11-", (THREAD, "native_thread_id")),
    ("thread_state", "3.14t-", (THREAD, "state")),
    ("thread_chunk", "3.11-", (THREAD, "datastack_chunk")),
    ("thread_top", "3.11-", (THREAD, "datastack_top")),
    ("thread_frame", "3.10-3.10", (THREAD, "frame")),
    ("thread_frame", "3.13-", (THREAD, "current_frame")),
    ("thread_cframe", "3.11-3.12", (THREAD, "cframe")),
    ("cframe_frame", "3.11-3.12", ("_PyCFrame", "current_frame")),
    ("chunk_previous", "3.11-", (CHUNK, "previous")),
    ("chunk_size", "3.11-", (CHUNK, "size")),
    ("frame_code", "3.10-3.10", ("PyFrameObject", "f_code")),
    ("frame_instruction", "3.10-3.10", ("PyFrameObject", "f_lasti")),
    ("frame_previous", "3.10-3.10", ("PyFrameObject", "f_back")),
    ("frame_locals", "3.10-3.10", ("PyFrameObject", "f_localsplus")),
    ("frame_code", "3.11-3.12", ("_PyInterpreterFrame", "f_code")),
    ("frame_code", "3.13-", ("_PyInterpreterFrame", "f_executable")),
    ("frame_instruction", "3.11-3.12", ("_PyInterpreterFrame", "prev_instr")),
    ("frame_instruction", "3.13-", ("_PyInterpreterFrame", "instr_ptr")),
    ("frame_previous", "3.11-", ("_PyInterpreterFrame", "previous")),
    ("frame_owner", "3.11-", ("_PyInterpreterFrame", "owner")),
    ("frame_entry", "3.11-3.11", ("_PyInterpreterFrame", "is_entry")),
    ("frame_locals", "3.11-", ("_PyInterpreterFrame", "localsplus")),
    ("frame_copy", "3.14t-", ("_PyInterpreterFrame", "tlbc_index")),
    ("frame_globals", "3.11-3.13", ("_PyInterpreterFrame", "f_globals")),
    ("frame_depth", "3.11-3.13", ("_PyInterpreterFrame", "stacktop")),
    ("frame_top", "3.14-", ("_PyInterpreterFrame", "stackpointer")),
    ("generator_frame", "3.11-", ("PyGenObject", "gi_iframe")),
    ("generator_state", "3.11-", ("PyGenObject", "gi_frame_state")),
    ("gil_locked", "3.10-", (GIL, "locked")),
    ("gil_holder", "3.10-", (GIL, "last_holder")),
    ("gil_cond", "3.10-", (GIL, "cond")),
    ("gil_switch_cond", "3.10-", (GIL, "switch_cond")),
    ("code_name", "3.10-", (CODE, "co_name")),
    ("code_qualified_name", "3.11-", (CODE, "co_qualname")),
    ("code_file", "3.10-", (CODE, "co_filename")),
    ("code_first_line", "3.10-", (CODE, "co_firstlineno")),
    ("code_lines", "3.10-", (CODE, "co_linetable")),
    ("code_instructions", "3.11-", (CODE, "co_code_adaptive")),
    ("code_bytes", "3.10-3.10", (CODE, "co_code")),
    ("code_copies", "3.14t-", (CODE, "co_tlbc")),
    ("object_type", "3.10-", ("PyObject", "ob_type")),
    ("bytes_size", "3.10-", ("PyVarObject", "ob_size")),
    ("bytes_data", "3.10-", ("PyBytesObject", "ob_sval")),
    ("text_length", "3.10-", ("PyASCIIObject", "length")),
    ("text_state", "3.10-", ("PyASCIIObject", "state")),
    ("text_kind", "3.10-", "kind_bit"),
    ("text_ascii", "3.10-", ("PyASCIIObject",)),
    ("text_compact", "3.10-", ("PyCompactUnicodeObject",)),
]

# What is published: the field, and its member of _Py_DebugOffsets.
PUBLISHED: list[tuple[str, str, str]] = [
    ("runtime_finalizing", "3.13-", "runtime_state.finalizing"),
    ("runtime_interpreters", "3.13-", "runtime_state.interpreters_head"),
    ("interpreter_gil", "3.13-", "interpreter_state.ceval_gil"),
    ("interpreter_id", "3.13-", "interpreter_state.id"),
    ("interpreter_next", "3.13-", "interpreter_state.next"),
    ("interpreter_threads", "3.13-", "interpreter_state.threads_head"),
    ("thread_next", "3.13-", "thread_state.next"),
    ("thread_interpreter", "3.13-", "thread_state.interp"),
    ("thread_handle", "3.13-", "thread_state.thread_id"),
    ("thread_native", "3.13-", "thread_state.native_thread_id"),
    ("thread_chunk", "3.13-", "thread_state.datastack_chunk"),
    ("thread_frame", "3.13-", "thread_state.current_frame"),
    ("frame_code", "3.13-", "interpreter_frame.executable"),
    ("frame_instruction", "3.13-", "interpreter_frame.instr_ptr"),
    ("frame_previous", "3.13-", "interpreter_frame.previous"),
    ("frame_owner", "3.13-", "interpreter_frame.owner"),
    ("frame_locals", "3.13-", "interpreter_frame.localsplus"),
    ("frame_copy", "3.14t-", "interpreter_frame.tlbc_index"),
    ("frame_top", "3.14-", "interpreter_frame.stackpointer"),
    ("generator_frame", "3.14-", "gen_object.gi_iframe"),
    ("generator_state", "3.14-", "gen_object.gi_frame_state"),
    ("code_name", "3.13-", "code_object.name"),
    ("code_qualified_name", "3.13-", "code_object.qualname"),
    ("code_file", "3.13-", "code_object.filename"),
    ("code_first_line", "3.13-", "code_object.firstlineno"),
    ("code_lines", "3.13-", "code_object.linetable"),
    ("code_instructions", "3.13-", "code_object.co_code_adaptive"),
    ("code_copies", "3.14t-", "code_object.co_tlbc"),
    ("object_type", "3.13-", "pyobject.ob_type"),
    ("bytes_size", "3.13-", "bytes_object.ob_size"),
    ("bytes_data", "3.13-", "bytes_object.ob_sval"),
    ("text_length", "3.13-", "unicode_object.length"),
    ("text_state", "3.13-", "unicode_object.state"),
    ("text_ascii", "3.13-", "unicode_object.asciiobject_size"),
    ("text_compact", "3.15-", "unicode_object.compactunicodeobject_size"),
]

PROGRAM = """
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX < 0x030b0000
#undef _PyGC_FINALIZED
#endif
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#else
#include "frameobject.h"
#endif
#include "internal/pycore_gil.h"
#include <string.h>
/* The number of the lowest bit of `kind` in the state of a str. */
static size_t kind_bit(void) {
  PyASCIIObject text;
  unsigned bits;
  memset(&text, 0, sizeof(text));
  text.state.kind = 1;
  memcpy(&bits, &text.state, sizeof(bits));
  return (size_t)__builtin_ctz(bits);
}
int main(void) {
%s
  return 0;
}
"""


@dataclass(frozen=True, order=True)
class Version:
    """A minor version of CPython 3, free-threaded or not."""

    minor: int
    free_threaded: bool

    def head(self) -> str:
        """The first field of its layout."""
        return f".version = 0x03{self.minor:02x}"


def minor(version: str) -> int:
    """Return the 11 of 3.11."""
    return int(version.split(".")[1].rstrip("t"))


def holds(versions: str, of: Version) -> bool:
    """Tell whether a range of versions, 3.11-3.12 or 3.11- or 3.14t-, has a version in it."""
    first, last = versions.split("-")
    return minor(first) <= of.minor <= (minor(last) if last else of.minor) and (
        of.free_threaded or not first.endswith("t")
    )


def ask(python: str, code: str) -> str:
    """Return what a program prints under an interpreter."""
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def expression(what: tuple[str, ...] | str) -> str:
    """Return what a field is, in C."""
    if isinstance(what, str):
        return f"{what}()"
    return f"sizeof({what[0]})" if len(what) == 1 else f"offsetof({what[0]}, {what[1]})"


def offsets(fields: list[tuple[str, str]], include: str) -> str:
    """Return the initializers of a layout; raises CalledProcessError if the headers do not compile."""
    lines = [f'  printf("      .{name} = %zu,\\n", {value});' for name, value in fields]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "offsets.c"), Path(folder, "offsets")
        source.write_text(PROGRAM % "\n".join(lines))
        subprocess.run(
            ["cc", "-w", f"-I{include}", source, "-o", program], check=True, capture_output=True, text=True
        )
        return (
            subprocess.run([program], check=True, capture_output=True, text=True)
            .stdout.rstrip()
            .removesuffix(",")
        )


def row(python: str) -> tuple[Version, str]:
    """Return the version of an interpreter, and its row.

    Raises CalledProcessError if its headers do not compile.
    """
    code = "import sysconfig, sys; print(sysconfig.get_path('include')); print(sys.version_info[1]); print('t' in sys.abiflags)"
    include, number, free_threaded = ask(python, code).splitlines()
    its = Version(int(number), free_threaded == "True")
    layout = [(name, expression(what)) for name, versions, what in FIELDS if holds(versions, its)]
    published = [
        (name, f"offsetof(_Py_DebugOffsets, {member})")
        for name, versions, member in PUBLISHED
        if holds(versions, its)
    ]
    parts = [f"{{{its.head()},\n{offsets(layout, include)}}}"]
    if published:
        parts.append(f"{{{its.head()},\n{offsets(published, include)}}}")
    if its.free_threaded:
        parts.append("true")
    return its, f"    {{{(',' + chr(10) + '     ').join(parts)}}},\n"


def rows_there() -> dict[Version, str]:
    """Return the rows that were written before, by version."""
    rows = re.split(r"(?m)^(?=    \{\{)", TABLES.read_text().removesuffix(FOOT))[1:]
    return {Version(int(text.split("0x03", 1)[1][:2], 16), text.endswith("true},\n")): text for text in rows}


def main() -> None:
    """Write the tables, or print one row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    rows = dict(row(python) for python in options.pythons)
    if options.print:
        print(*rows.values(), sep="", end="")
    else:
        TABLES.write_text(
            HEAD
            + "// clang-format off\n"
            + "".join(text for _, text in sorted((rows_there() | rows).items()))
            + FOOT
        )


if __name__ == "__main__":
    main()
