"""The statements that benchmarks/annotate.py times, in groups that run in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from _floor import LOOP, async_loop, loop

OURS = "warplens"
PLAIN = "plain f()"
ASYNC_LOOP = "async loop"
ASYNC_PLAIN = "await plain f()"
GENERATOR = "plain generator"


@dataclass(frozen=True)
class Case:
    """A statement over `names()`; `less` is the floor that is taken off; `kind` says how it is looped."""

    what: str
    statement: str
    less: str = LOOP
    kind: str = "plain"
    before: str = "pass"
    after: str = "pass"
    only: str = ""


MAIN = (
    Case("with annotate('x')", "with n.annotate('x'): pass"),
    Case("with annotate(f'{i}')", "with n.annotate(f'item {i & 255}'): pass"),
    Case(
        "with annotate(all arguments)",
        "with n.annotate('x', color='red', domain='bench', category='cat', payload=3): pass",
    ),
    Case("with prebuilt annotate", "with prebuilt: pass"),
    Case("@annotate f()", "f()", PLAIN),
    Case("push_range('x'); pop_range()", "push('x'); pop()"),
    Case("push_range(all arguments); pop_range(domain)", "push('x', 'red', 'bench', 'cat', 3); pop('bench')"),
    Case("mark('x')", "mark('x')"),
    Case("start_range('x'); end_range()", "end(start('x'))"),
    Case("domain.push_range(attributes); pop_range()", "dpush(attributes); dpop()"),
    Case("domain.push_range(message='x'); pop_range()", "dpush(message='x'); dpop()"),
    Case("domain.start_range(attributes); end_range()", "dend(dstart(attributes))"),
    Case("domain.mark(attributes)", "dmark(attributes)"),
)
MORE = (
    Case("domain.mark(attributes, payload=3)", "dmark(attributes, payload=3)"),
    Case("domain.mark(attributes, payload=ndarray(8))", "dmark(attributes, payload=array)"),
    Case("with annotate('x', payload=3)", "with n.annotate('x', payload=3): pass"),
    Case("with annotate('x', payload=ndarray(8))", "with n.annotate('x', payload=array): pass"),
    Case("with annotate('x', payload=b'...')", "with n.annotate('x', payload=b'0123456789'): pass"),
    Case("with annotate('x', payload=str)", "with n.annotate('x', payload='0123456789'): pass", only=OURS),
    Case(
        "with annotate('x', payload=dict)",
        "with n.annotate('x', payload={'step': i, 'loss': 0.5}): pass",
        only=OURS,
    ),
    Case("counter(int).sample(1)", "sample_int(1)"),
    Case("counter(float).sample(0.5)", "sample_float(0.5)"),
    Case("f() under Profile(linenos=True)", "g()", PLAIN, before="lines.enable()", after="lines.disable()"),
    Case("f() under Profile(False, False)", "g()", PLAIN, before="bare.enable()", after="bare.disable()"),
)
ASYNC = (
    Case("in a coroutine: with annotate('x')", "with n.annotate('x'): pass", ASYNC_LOOP, "async"),
    Case("await @annotate f()", "await cf()", ASYNC_PLAIN, "async"),
    Case("@annotate generator, one value", "for _ in gf(): pass", GENERATOR),
)
FLOORS = (
    Case(ASYNC_LOOP, "pass", kind="async"),
    Case(ASYNC_PLAIN, "await cg()", kind="async"),
    Case(GENERATOR, "for _ in gg(): pass"),
)
_DEFINITIONS = """
def plain(): pass
def g(): pass
async def cg(): pass
def gg(): yield 1
"""


def names(library: Any) -> dict[str, Any]:
    """The names that the statements use, for one library."""
    import numpy

    domain = library.get_domain("bench")
    known = {
        "n": library,
        "prebuilt": library.annotate("x"),
        "attributes": domain.get_event_attributes(message="x"),
    }
    known |= {"push": library.push_range, "pop": library.pop_range, "mark": library.mark}
    known |= {"start": library.start_range, "end": library.end_range}
    known |= {"dpush": domain.push_range, "dpop": domain.pop_range, "dmark": domain.mark}
    known |= {"dstart": domain.start_range, "dend": domain.end_range, "array": numpy.arange(8.0)}
    if hasattr(domain, "get_counter"):
        known |= {
            "sample_int": domain.get_counter("int", int).sample,
            "sample_float": domain.get_counter("float", float).sample,
        }
    if hasattr(library, "Profile"):
        known |= {"lines": library.Profile(), "bare": library.Profile(linenos=False, annotate_cfuncs=False)}
    exec(_DEFINITIONS, known)
    known["f"], known["cf"], known["gf"] = (
        library.annotate("x")(known[name]) for name in ("plain", "cg", "gg")
    )
    return known


def runner() -> Callable[[Any], object]:
    """Runs coroutines one after the other in one event loop."""
    return asyncio.new_event_loop().run_until_complete


def candidate(case: Case, known: dict[str, Any], run: Callable[[Any], object]) -> Callable[[int], object]:
    """The function to time."""
    if case.kind == "async":
        return async_loop(case.statement, known, run)
    return loop(case.statement, known, case.before, case.after)
