"""Calls everything that warplens.nvtx offers with anything: `nvtx_anything.py SEED ROUNDS THREADS`. Crashes are for sanitizers to see."""

from __future__ import annotations

import array
import ctypes
import decimal
import gc
import importlib
import inspect
import math
import random
import sys
import threading
import warnings
from collections import Counter
from typing import Any

import warplens.nvtx as nvtx

try:
    numpy: Any = importlib.import_module("numpy")
except ImportError:
    numpy = None

seed, rounds, others = (int(word) for word in sys.argv[1:])
warnings.simplefilter("ignore")
R = random.Random(seed)
pool: list[Any] = [nvtx.get_domain(), nvtx.get_domain("one"), nvtx.get_domain("two")]
attributes: list[Any] = []
done: Counter[str] = Counter()


class Raises:
    """Raises, whatever it is asked."""

    def _do(self, *_: object) -> Any:
        raise RuntimeError

    __len__ = __iter__ = __getitem__ = __index__ = __float__ = __str__ = __repr__ = __hash__ = __eq__ = (
        __getattr__
    ) = _do


class Changes:
    """Changes attributes that may be in use, whatever it is asked."""

    def _do(self) -> None:
        for found in attributes[-3:]:
            found.payload, found.message, found.category = [1.5], "m" * R.randrange(5000), str(R.random())
            found.color = R.choice(["red", None, 5])
        nvtx.mark("within", payload={"a": 1})
        gc.collect(0)

    def _number(self) -> int:
        self._do()
        return 3

    def _text(self) -> str:
        self._do()
        return "text"

    def keys(self) -> list[str]:
        return [self._text()]

    def __getitem__(self, key: object) -> int:
        if isinstance(key, int) and key > 5:  # NumPy reads sequences to their end, whatever their length says
            raise IndexError
        return self._number()

    def __float__(self) -> float:
        return float(self._number())

    def __eq__(self, other: object) -> bool:
        return bool(self._number())

    __index__ = __len__ = __hash__ = _number
    __repr__ = _text
    dtype = value = property(_text)


class Emptied(list[Any]):
    """Empties itself when iterated."""

    def __iter__(self) -> Any:
        self.clear()
        return iter([1])


class Structure(ctypes.Structure):
    """Has a buffer that is no number."""

    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


knot: list[Any] = []
knot += [1, knot, {"a": knot}]


# fmt: off
def leaf() -> Any:
    """One of everything."""
    found: list[Any] = [
        None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5, math.nan, math.inf, 1j, "", "text", "nul\0in",
        "\ud800", "x" * 5000,
        b"", b"b\0y", b"\xff", bytearray(b"ab"), memoryview(b"abcdef")[::2], memoryview(b""), memoryview(bytearray(8)).cast("B", (2, 4)),
        range(5), range(10**12), range(2**70), Raises(), Changes(), Emptied([1, 2]), knot, decimal.Decimal("1.5"), array.array("d", [1, 2]),
        array.array("u", "ab"), array.array("i"), Structure(1, 2), (Structure * 3)(), ctypes.c_int(3), (ctypes.c_char * 4)(), len, int,
        float,
        Raises, object(), ..., nvtx.uint64(3), nvtx.int32(-3), nvtx.float32(1.5), nvtx.float64(2), {1: 2}, {"a": 1, "b": "c"},
        {"a": 1j, "b": True},
        {str(i): i for i in range(70)}, {f"k{R.randrange(400)}": 1}, {1, 2}, frozenset("ab"), "red", (1, 0, 0), "nosuch",
    ]
    if numpy is not None:
        found += [
            numpy.float32(1), numpy.int8(-1), numpy.bool_(True), numpy.float16(2), numpy.longdouble(1), numpy.zeros(3),
            numpy.zeros((2, 3))[:, ::2],
            numpy.zeros((0, 3)), numpy.array(5), numpy.array("2020", "M8[s]"), numpy.array(["2020"] * 3, "M8[D]"),
            numpy.array([1, "a"], object),
            numpy.array(["a", "bc"]), numpy.zeros(2, "V3"), numpy.zeros(2, [("a", "i4")]), numpy.zeros(2, ">f8"), numpy.dtype("i4"),
            numpy.dtype([]), numpy.dtype("V0"), numpy.zeros((1,) * 10), numpy.broadcast_to(numpy.float64(2), (10**8,)),
            numpy.zeros(3, bool),
        ]
    return R.choice(found)


HINTS: dict[str, list[Any]] = {
    "message": ["a", "b", "nul\0", "\ud800", "x" * 5000, b"bytes", None], "color": ["red", None, 5, (1, 0, 0)],
    "domain": [None, "one", "nul\0"],
    "category": [None, "c", 3, "k\0"], "name": ["n", "n\0"], "id": [1, 2**40, -1], "scope": [None, "a/b", "s\0"],
    "kind": [None, "pointer", -1],
    "identifier": [1, -1], "description": [None, "d"], "dtype": [int, float, {"a": int, "b": nvtx.float32}, nvtx.uint64],
    "semantics": [None, nvtx.CounterSemantics("B"), nvtx.CounterSemantics(b"x\0", min=1, max=5)], "tid": [None, 1], "device": [1, 2],
    "stream": [1, 2**63], "event": [2, 3], "context": [3, 4],
}
# fmt: on
functions = [
    getattr(nvtx, name)
    for name in sorted(nvtx.__all__)
    if callable(getattr(nvtx, name)) and name not in ("Lock", "Profile", "look_again")
]


def thing(depth: int = 0) -> Any:
    """Anything, sometimes made of other things."""
    chance = R.random()
    if depth < 3 and chance < 0.2:
        made = [thing(depth + 1) for _ in range(R.randrange(5))]
        return made if chance < 0.1 else tuple(made)
    if depth < 3 and chance < 0.3:
        return {R.choice("abc"): thing(depth + 1) for _ in range(R.randrange(5))}
    return R.choice(pool) if chance < 0.4 else leaf()


def argument(name: str) -> Any:
    """Mostly what is wanted, else anything."""
    if name == "attributes" and attributes and R.random() < 0.8:
        return R.choice(attributes)
    return R.choice(HINTS[name]) if name in HINTS and R.random() < 0.8 else thing()


def call(function: Any) -> None:
    """Call it; errors are what wrong arguments are for, but SystemError is a mistake of ours."""
    try:
        parameters = inspect.signature(function).parameters.values()
        wanted = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    except (ValueError, TypeError):
        wanted = []
    given: list[Any] = [argument(p.name) for p in wanted if p.default is p.empty]
    named = {
        p.name: argument(p.name)
        for p in wanted
        if p.default is not p.empty and p.kind != p.POSITIONAL_ONLY and R.random() < 0.5
    }
    if not wanted or R.random() < 0.1:
        given = [thing() for _ in range(R.randrange(5))]
        named = {R.choice([*HINTS, "payload", "nonsense"]): thing() for _ in range(R.randrange(3))}
    try:
        result = function(*given, **named)
    except SystemError:
        raise
    except Exception:
        done["raised"] += 1
        return
    done["returned"] += 1
    if type(result).__module__.startswith("warplens"):
        pool.append(result)
    if type(result).__name__ == "EventAttributes":
        attributes.append(result)
        del attributes[:-20]


def one() -> None:
    """One call, or one other use of something that a call returned."""
    if R.random() < 0.4:
        call(R.choice(functions))
        return
    target = R.choice([*pool[-60:], *pool[:3] * 8])
    name = R.choice([name for name in dir(target) if name.startswith("__e") or not name.startswith("_")])
    try:
        if R.random() < 0.2 and type(target).__name__ in ("EventAttributes", "annotate"):
            setattr(target, name, thing())
        elif R.random() < 0.1:
            repr(target), hash(target), target == thing()
        else:
            found = getattr(target, name)
            if callable(found):
                call(found)
    except SystemError:
        raise
    except Exception:
        done["raised"] += 1
    if len(pool) > 350:
        del pool[5:200]


def run() -> None:
    """All rounds."""
    for _ in range(rounds):
        one()


threads = [threading.Thread(target=run) for _ in range(others)]
for thread in threads:
    thread.start()
run()
for thread in threads:
    thread.join()
del pool[3:], attributes[:]
gc.collect()
print("done", done["returned"])
