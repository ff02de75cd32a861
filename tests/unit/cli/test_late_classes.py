"""Dataclasses that become such when they are first used behave as others."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from warplens.cli import late_classes


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(dataclasses, "dataclass", dataclasses.dataclass)  # restored afterwards
    late_classes.make_late()
    return dataclasses.dataclass


def _named(late: Any) -> tuple[type, type]:
    class Place:
        __module__ = late_classes.__name__
        file: str
        line: int = 0
        notes: list[str] = dataclasses.field(default_factory=list, compare=False)

    late(frozen=True, slots=True)(Place)

    class Call(Place):
        __module__ = late_classes.__name__
        length: int = 1

        def __post_init__(self) -> None:
            assert self.length

    late(frozen=True)(Call)
    return Place, Call


def test_a_class_is_made_with_its_first_object(late: Any) -> None:
    _, call = _named(late)
    assert "__eq__" not in call.__dict__
    one = call("a.py", length=3)
    assert (one.file, one.line, one.notes, one.length) == ("a.py", 0, [], 3)
    assert one == call("a.py", 0, ["x"], 3) != call("b.py", length=3)
    assert len({one, call("a.py", length=3)}) == 1
    assert repr(one).endswith("Call(file='a.py', line=0, notes=[], length=3)")
    assert dataclasses.replace(one, line=7).line == 7
    assert dataclasses.asdict(one)["length"] == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.line = 8


def test_the_fields_of_a_class_make_it_a_dataclass(late: Any) -> None:
    place, call = _named(late)
    assert [one.name for one in dataclasses.fields(call)] == ["file", "line", "notes", "length"]
    assert dataclasses.is_dataclass(place)
    with pytest.raises(TypeError, match="file"):
        place()


def test_classes_of_others_are_made_immediately(late: Any) -> None:
    @late
    class Other:
        name: str

    assert "__eq__" in Other.__dict__
