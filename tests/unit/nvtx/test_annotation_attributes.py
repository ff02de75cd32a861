"""`annotate(...)` offers `domain` and `attributes`, as PyPI nvtx does."""

from __future__ import annotations

import gc
import sys
import weakref
from types import ModuleType
from typing import Any

import pytest

from tests.unit.nvtx.conftest import Record
from warplens import nvtx
from warplens.nvtx import _absent, _binding

pytestmark = pytest.mark.require("native")


@pytest.mark.parametrize("module", [_binding, _absent], ids=["binding", "absent"])
def test_an_annotation_shows_its_domain_and_attributes(module: ModuleType) -> None:
    annotation = module.annotate("step", "red", "shown", "input", 3)
    assert annotation.domain is module.get_domain("shown")
    assert annotation.attributes.message.string == "step"
    assert (annotation.attributes.color, annotation.attributes.payload) == ("red", 3)
    assert annotation.attributes.category == annotation.domain.get_category_id("input")
    assert module.annotate("step").domain is module.get_domain()
    for name in ("domain", "attributes"):
        with pytest.raises(AttributeError):
            setattr(annotation, name, None)


@pytest.mark.require("gcc")
def test_changed_attributes_apply_from_the_next_entry_on(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        annotation = nvtx.annotate("first", payload=1)
        with annotation:
            annotation.attributes.message = "second"
            annotation.attributes.payload = 2
        with annotation: pass
        annotation.domain.set_event_attributes(annotation.attributes, message="third")
        with annotation: pass
        annotation.domain.mark(annotation.attributes)
    """
    events = record(code, "push", "mark")
    assert [(event["event"], event["message"], event["payload"]) for event in events] == [
        ("push", "first", 1),
        ("push", "second", 2),
        ("push", "third", 2),
        ("mark", "third", 2),
    ]


def test_attributes_outlive_the_name_of_their_annotation() -> None:
    attributes = nvtx.annotate("kept", payload=[1]).attributes
    gc.collect()
    [nvtx.annotate(f"other {n}") for n in range(100)]
    assert attributes.message is not None
    assert (attributes.message.string, attributes.payload) == ("kept", [1])


def test_a_cycle_through_attributes_is_collected() -> None:
    class Payload:
        held: Any = None

    payload = Payload()
    annotation = nvtx.annotate("x", payload=payload)
    payload.held = annotation.attributes
    gone = weakref.ref(payload)
    del annotation, payload
    gc.collect()
    assert gone() is None


def test_showing_attributes_leaks_nothing() -> None:
    annotation = nvtx.annotate("x", payload=1)
    before = sys.getrefcount(annotation)
    for _ in range(1000):
        assert annotation.attributes is not None
        assert annotation.domain is not None
    assert sys.getrefcount(annotation) == before
