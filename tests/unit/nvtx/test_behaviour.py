"""What a program sees of the library where no tool listens: the same with the binding and without."""

from __future__ import annotations

import copy
import pickle
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from warplens.nvtx import _absent, _binding

pytestmark = pytest.mark.require("native")


@pytest.fixture(params=[_binding, _absent], ids=["binding", "absent"])
def nvtx(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_with_block_gives_the_annotation_and_lets_exceptions_pass(nvtx: Any) -> None:
    annotation = nvtx.annotate("x")
    with annotation as entered:
        assert entered is annotation
    with pytest.raises(KeyError), annotation:
        raise KeyError
    assert annotation.__exit__(None, None, None) is False


def test_every_argument_goes_by_position_and_by_name(nvtx: Any) -> None:
    given = ("x", "red", "domain", "category", 1)
    names = ("message", "color", "domain", "category", "payload")
    by_position, by_name = nvtx.annotate(*given), nvtx.annotate(**dict(zip(names, given, strict=True)))
    assert by_position.__reduce__()[1] == by_name.__reduce__()[1] == given
    for send in (nvtx.mark, nvtx.push_range):
        assert send(*given) is None
        assert send(**dict(zip(names, given, strict=True))) is None
    nvtx.end_range(nvtx.start_range(*given))


def test_unknown_and_repeated_arguments_are_refused(nvtx: Any) -> None:
    for make in (nvtx.annotate, nvtx.mark, nvtx.push_range, nvtx.start_range):
        with pytest.raises(TypeError):
            make("x", colour="red")
        with pytest.raises(TypeError):
            make("x", message="y")
        with pytest.raises(TypeError):
            make("x", "red", "domain", "category", 1, 2)


def test_one_annotation_is_entered_again_and_nested(nvtx: Any) -> None:
    annotation = nvtx.annotate("x")
    with annotation, annotation, annotation:
        pass
    with annotation:
        pass


def test_an_exit_stack_takes_it(nvtx: Any) -> None:
    with ExitStack() as stack:
        annotation = nvtx.annotate("x")
        assert stack.enter_context(annotation) is annotation


def test_a_decorated_function_behaves_as_before(nvtx: Any) -> None:
    @nvtx.annotate()
    def function(a: int, *rest: int, b: int = 2, **more: int) -> tuple[Any, ...]:
        """Doc."""
        return a, rest, b, more

    assert function(1) == (1, (), 2, {})
    assert function(1, 5, b=3, c=4) == (1, (5,), 3, {"c": 4})
    assert function.__name__ == "function"
    assert function.__doc__ == "Doc."
    with pytest.raises(TypeError, match="missing 1 required positional"):
        function()


def test_methods_of_every_kind_are_decorated(nvtx: Any) -> None:
    class Thing:
        @nvtx.annotate("method")
        def method(self, value: int) -> tuple[Any, int]:
            return self, value

        @staticmethod
        @nvtx.annotate("static")
        def static(value: int) -> int:
            return value

        @classmethod
        @nvtx.annotate("class")
        def of_class(cls, value: int) -> tuple[Any, int]:
            return cls, value

        @property
        @nvtx.annotate("property")
        def value(self) -> int:
            return 3

    thing = Thing()
    assert thing.method(1) == (thing, 1)
    assert Thing.method(thing, value=2) == (thing, 2)
    assert thing.static(1) == Thing.static(1) == 1
    assert thing.of_class(1) == (Thing, 1)
    assert thing.value == 3
    bound = thing.method
    assert bound(4) == (thing, 4)


def test_an_annotation_pickles_and_copies_as_its_arguments(
    nvtx: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warplens.nvtx.annotate", nvtx.annotate)  # where pickle looks for it
    annotation = nvtx.annotate("x", color=0xFF00FF00, domain="d", category=3, payload=1.5)
    for other in (pickle.loads(pickle.dumps(annotation)), copy.copy(annotation), copy.deepcopy(annotation)):
        assert other.__reduce__()[1] == ("x", 0xFF00FF00, "d", 3, 1.5)


def test_subclasses_are_annotations(nvtx: Any) -> None:
    class Mine(nvtx.annotate):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__(name, domain="mine")
            self.extra = name

    with Mine("a") as entered:
        assert entered.extra == "a"
    assert Mine("a").__reduce__()[1][:3] == ("a", None, "mine")


def test_without_a_tool_no_range_opens(nvtx: Any) -> None:
    assert nvtx.attached() is False
    assert nvtx.push_range("x") is None
    assert nvtx.pop_range() is None
    assert nvtx.pop_range("domain") is None
    assert nvtx.start_range("x") is None
    nvtx.end_range(None)


def test_a_domain_is_the_same_for_the_same_name(nvtx: Any) -> None:
    assert nvtx.get_domain("d") is nvtx.get_domain("d") is nvtx.Domain("d")
    assert nvtx.get_domain() is nvtx.get_domain(None)
    assert nvtx.get_domain("d") is not nvtx.get_domain()
    assert nvtx.get_domain("d").name == "d"
    assert nvtx.get_domain().name is None
    assert copy.deepcopy(nvtx.get_domain("d")) is nvtx.get_domain("d")


def test_a_domain_takes_events(nvtx: Any) -> None:
    domain = nvtx.get_domain("events")
    attributes = domain.get_event_attributes("x", color="red", category="c", payload=1)
    for send in (domain.mark, domain.push_range):
        assert send(attributes) is None
        assert send(attributes=attributes, message="y") is None
        assert send(message="z", color=1, category=2, payload=3.0) is None
    assert domain.pop_range() is None
    domain.end_range(domain.start_range(attributes))
    domain.end_range(range_id=domain.start_range(message="x"))


def test_event_attributes_are_read_and_changed(nvtx: Any) -> None:
    domain = nvtx.get_domain("attributes")
    attributes = domain.get_event_attributes()
    assert (attributes.message, attributes.color, attributes.category, attributes.payload) == (
        None,
        None,
        0,
        None,
    )
    attributes.message = domain.get_registered_string("hello")
    attributes.color, attributes.category, attributes.payload = "red", 7, 1.5
    assert attributes.message.string == "hello"
    assert (
        attributes.message == domain.get_registered_string("hello") != domain.get_registered_string("other")
    )
    assert (attributes.color, attributes.category, attributes.payload) == ("red", 7, 1.5)
    domain.set_event_attributes(attributes, category="named", payload=None)
    assert (attributes.color, attributes.category, attributes.payload) == (
        "red",
        domain.get_category_id("named"),
        None,
    )


def test_categories_are_numbered_from_one_by_name(nvtx: Any) -> None:
    domain = nvtx.Domain("numbered")
    assert [domain.get_category_id(name) for name in ("a", "b", "a")] == [1, 2, 1]


def test_threads_share_one_annotation(nvtx: Any) -> None:
    annotation = nvtx.annotate("shared", category="c", domain="threads")
    calls: list[int] = []

    @annotation
    def work() -> None:
        calls.append(1)

    def run() -> None:
        for _ in range(200):
            with annotation:
                work()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 800


@pytest.mark.parametrize("message", ["", "nul\0inside", "lone\udc80surrogate", "ünïcode", "x" * 100_000])
def test_odd_messages_are_taken(nvtx: Any, message: str) -> None:
    with nvtx.annotate(message, domain=message):
        nvtx.mark(message, category=message)
