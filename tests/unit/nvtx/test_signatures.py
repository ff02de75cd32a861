"""The same signatures as PyPI nvtx, and the same type information as the stub says."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import warpline.nvtx
from warpline.nvtx import _absent

pytestmark = pytest.mark.require("native")

FUNCTIONS = ["annotate", "mark", "push_range", "pop_range", "start_range", "end_range", "get_domain", "Domain", "enabled"]
METHODS = [
    "mark",
    "push_range",
    "pop_range",
    "start_range",
    "end_range",
    "get_registered_string",
    "get_category_id",
    "get_event_attributes",
    "set_event_attributes",
]


def parameters(function: Any) -> list[tuple[str, object]]:
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.require("nvtx")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_what_pypi_nvtx_takes(name: str) -> None:
    import nvtx

    assert parameters(getattr(warpline.nvtx, name)) == parameters(getattr(nvtx, name))


@pytest.mark.require("nvtx")
@pytest.mark.parametrize("name", METHODS)
def test_domains_have_what_pypi_domains_have(name: str) -> None:
    import nvtx

    assert callable(getattr(nvtx.Domain, name))
    assert inspect.signature(getattr(warpline.nvtx.Domain, name)).parameters["self"] is not None


@pytest.mark.parametrize("name", [*FUNCTIONS[:-2], "attached"])
def test_the_silent_stand_in_takes_the_same(name: str) -> None:
    assert parameters(getattr(warpline.nvtx, name)) == parameters(getattr(_absent, name))


def test_every_public_name_is_there() -> None:
    for name in warpline.nvtx.__all__:
        assert hasattr(warpline.nvtx, name)
    for name in (*FUNCTIONS[:-1], "attached"):
        assert getattr(_absent, name).__doc__
        assert getattr(warpline.nvtx, name).__doc__
