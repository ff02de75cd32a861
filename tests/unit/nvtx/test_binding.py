"""What only the binding does: it checks its arguments, and frees what it made."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest

from warplens.nvtx import Domain, annotate, end_range, get_domain, mark, push_range, start_range

pytestmark = pytest.mark.require("native")


def test_wrong_types_are_refused_also_where_nobody_listens() -> None:
    for make in (annotate, mark, push_range, start_range):
        call: Any = make
        with pytest.raises(TypeError, match="message must be a str or None, not int"):
            call(5)
        with pytest.raises(TypeError, match="unknown color 'mauvish': use one of blue, "):
            call("x", color="mauvish")
        with pytest.raises(TypeError, match="category must be a str, an int or None, not float"):
            call("x", category=1.5)
        with pytest.raises(TypeError, match="domain must be a str or None, not int"):
            call("x", domain=5)
    with pytest.raises(TypeError, match="needs what start_range"):
        end_range(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"made by Domain\.get_event_attributes"):
        get_domain().mark("x")  # type: ignore[arg-type]


def test_a_bare_decorator_says_what_is_missing() -> None:
    def function() -> None: ...

    with pytest.raises(TypeError, match=r"needs parentheses: @annotate\(\)"):
        annotate(function)  # type: ignore[arg-type]


def test_a_failed_change_leaves_attributes_as_they_were() -> None:
    attributes = get_domain("kept").get_event_attributes("x", color="red", category=3)
    for name, value in (("color", "mauvish"), ("category", 1.5), ("message", 1.5)):
        with pytest.raises(TypeError):
            setattr(attributes, name, value)
    assert attributes.message is not None
    assert (attributes.message.string, attributes.color, attributes.category) == ("x", "red", 3)


def test_bytes_and_subclasses_of_str_are_texts() -> None:
    class Text(str):
        __slots__ = ()

        def __hash__(self) -> int:
            raise AssertionError("not ours to call")

        def __eq__(self, other: object) -> bool:
            raise AssertionError("not ours to call")

    text: Any = Text("x")
    encoded: Any = "ü".encode()
    assert annotate(text, domain=text, category=text).__reduce__()[1][:4] == ("x", None, "x", "x")
    assert type(annotate(text).__reduce__()[1][0]) is str
    assert annotate(encoded).__reduce__()[1][0] == "ü"


@pytest.mark.slow
def test_events_leak_no_reference() -> None:
    message, payload = "message of its own" + str(id(object())), float(id(object()))

    def count() -> tuple[int, int]:
        return sys.getrefcount(message), sys.getrefcount(payload)

    def use() -> None:
        for _ in range(100):
            with annotate(message, color="red", payload=payload):
                mark(message, payload=payload)
            annotate(message)(use)
            attributes = get_domain("leak").get_event_attributes(message, payload=payload)
            attributes.payload = payload
            with pytest.raises(TypeError):
                annotate(message, color="mauvish", payload=payload)

    use()
    gc.collect()
    before = count()
    use()
    gc.collect()
    assert count() == before


@pytest.mark.slow
def test_a_decorated_function_in_a_cycle_is_collected() -> None:
    class Owner: ...

    def make() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        owner = Owner()

        @annotate()
        def function() -> Owner:
            return owner

        owner.function = function  # type: ignore[attr-defined]
        return weakref.ref(owner), weakref.ref(function)

    alive = make()
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


def test_context_methods_are_methods() -> None:
    annotation: Any = annotate("x")
    enter, leave = annotation.__enter__, annotation.__exit__
    assert (enter.__self__, enter.__name__, leave.__name__) == (annotation, "__enter__", "__exit__")
    assert type(annotation).__enter__(annotation) is annotation
    assert type(annotation).__exit__(annotation, None, None, None) is False
    for wrong in (
        lambda: enter(1),
        lambda: leave(None, None, tb=None),
        type(annotation).__enter__,
        lambda: type(annotation).__exit__(5),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_domains_are_what_they_say() -> None:
    assert repr(Domain("d")) == "<Domain 'd'>"
    assert repr(annotate("x", payload=1)) == "annotate('x', None, None, None, 1)"
