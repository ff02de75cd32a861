"""Names frames that only pass a call on: wake-ups and switches of the kernel, calls within CPython, our own code.

Profiles fold them into their callers: `futex_wake` instead of `futex_wake → wake_up_q → try_to_wake_up → ttwu_do_activate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from warplens.arrays import BoolArray, Int64Array, distinct

Texts = Mapping[str, tuple[list[str], Int64Array]]  # column -> its texts, and the text number of each frame

_SUFFIX = r"(\.\w+)*"  # of the parts that a compiler makes of a function: `.cold`, `.isra.0`
_WAKES = re.compile(
    r"(try_to_wake_up|(__)?s?wake_up(_\w+)?|ttwu_\w+|\w+_wake_function|pollwake|ep_poll_callback|finish_task_switch"
    r"|(__|io_|preempt_)?schedule(_(preempt_disabled|common|irq|notrace|thunk|timeout|hrtimeout_range(_clock)?))?)"
    + _SUFFIX
)
_CALLS = re.compile(
    r"(_?Py\w*([Cc]all|Vectorcall)\w*|_?PyEval_\w+|(\w+_)?(vector|va)?call(_\w+)?|slot_\w+)" + _SUFFIX
)
_INTERPRETER = re.compile(r"(lib)?python[0-9.]*[a-z]*([.-].*)?")
_OURS = re.compile(r"libwarplens_\w+\.so.*")
_OUR_FILES = re.compile(r"(.*/)?(site-packages|dist-packages|src)/warplens/nvtx/[^/]+")


def wakes(texts: Texts) -> BoolArray:
    """Return which frames are wake-ups or switches of the kernel; what they call is part of them."""
    kinds, kind = texts["kind"]
    names, name = texts["function"]
    return _matching(names, name, _WAKES, some=kind == _number(kinds, "kernel"))


def calls(texts: Texts) -> BoolArray:
    """Return which frames are calls within CPython, or our own code: what they call is not."""
    names, name = texts["function"]
    modules, module = texts["module"]
    files, file = texts["file"]
    every = np.ones(len(name), bool)
    inside = _matching(modules, module, _INTERPRETER, some=every)
    ours = _matching(modules, module, _OURS, some=every) | _matching(files, file, _OUR_FILES, some=every)
    return _matching(names, name, _CALLS, some=inside) | ours


def _number(texts: list[str], text: str) -> int:
    return texts.index(text) if text in texts else len(texts)


def _matching(texts: list[str], code: Int64Array, pattern: re.Pattern[str], some: BoolArray) -> BoolArray:
    """Return which frames of `some` have a text that matches. Texts of other frames are not looked at."""
    asked = distinct(code[some & (code >= 0)])
    good = asked[[pattern.fullmatch(texts[number]) is not None for number in asked.tolist()]]
    return some & np.isin(code, good)
