"""The same signatures as PyPI nvtx; and the binding, its stub and the silent stand-in agree with one another."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import warplens.nvtx
from warplens.nvtx import _absent, _binding

pytestmark = pytest.mark.require("native")

FUNCTIONS = [
    "annotate",
    "mark",
    "push_range",
    "pop_range",
    "start_range",
    "end_range",
    "get_domain",
    "Domain",
    "enabled",
    "numpy_dtype",
]
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
    "get_counter",
    "get_timestamp",
]
ENUMS = [
    "BatchOrdering",
    "CounterInterpolation",
    "CounterNoValueReason",
    "CounterValueType",
    "EntryKind",
    "EventKind",
    "PayloadEntryType",
    "PredefinedScope",
    "TimestampType",
]
STUB = ast.parse((Path(warplens.nvtx.__file__).parent / "_binding.pyi").read_text())
INTERNAL = {
    "RangeId",
    "annotated_function",
    "emit_operators",
    "look_again",
    "mute",
    "stop_operators",
    "wrap",
}  # of the binding alone
CONTEXT = {"__enter__", "__exit__", "__call__", "__new__", "__init__", "__reduce__"}


def parameters(function: Any) -> list[tuple[str, object]]:
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.require("nvtx")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_what_pypi_nvtx_takes(name: str) -> None:
    import nvtx

    theirs, ours = parameters(getattr(nvtx, name)), parameters(getattr(warplens.nvtx, name))
    assert ours[: len(theirs)] == theirs
    more = list(inspect.signature(getattr(warplens.nvtx, name)).parameters.values())[len(theirs) :]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is None for p in more), (
        "what we add never gets in the way"
    )


@pytest.mark.require("nvtx")
@pytest.mark.parametrize("name", METHODS)
def test_domains_have_what_pypi_domains_have(name: str) -> None:
    import nvtx

    assert callable(getattr(nvtx.Domain, name))
    assert inspect.signature(getattr(warplens.nvtx.Domain, name)).parameters["self"] is not None


@pytest.mark.require("nvtx")
def test_every_public_name_of_pypi_nvtx_is_there() -> None:
    import nvtx

    modules = {"nvtx"}  # nvtx.nvtx, an inner module
    theirs = {name for name in dir(nvtx) if not name.startswith("_")} - modules
    assert theirs <= set(warplens.nvtx.__all__)
    counter = {name for name in dir(nvtx.Int64Counter) if not name.startswith("_")}
    assert counter <= set(dir(warplens.nvtx.Int64Counter))


@pytest.mark.require("nvtx")
@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_have_the_members_of_pypi_nvtx(name: str) -> None:
    import nvtx

    ours: Any = getattr(warplens.nvtx, name)
    assert {member.name: member.value for member in ours} == {
        member.name: member.value for member in getattr(nvtx, name)
    }


@pytest.mark.require("nvtx")
def test_semantics_are_those_of_pypi_nvtx() -> None:
    import nvtx

    assert parameters(warplens.nvtx.CounterSemantics)[0] == parameters(nvtx.CounterSemantics)[0]
    assert [name for name, _ in parameters(warplens.nvtx.CounterSemantics)] == [
        name for name, _ in parameters(nvtx.CounterSemantics)
    ]


def of_stub(function: ast.FunctionDef) -> list[tuple[str, str]]:
    """Name and kind of each parameter: `/` before, `*` behind the star."""
    arguments = function.args
    named = [(a.arg, "/") for a in arguments.posonlyargs] + [(a.arg, "") for a in arguments.args]
    return [*named, *((a.arg, "*") for a in arguments.kwonlyargs)]


def of_object(function: Any) -> list[tuple[str, str]]:
    kinds: dict[Any, str] = {inspect.Parameter.POSITIONAL_ONLY: "/", inspect.Parameter.KEYWORD_ONLY: "*"}
    return [(p.name, kinds.get(p.kind, "")) for p in inspect.signature(function).parameters.values()]


STUB_FUNCTIONS = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
STUB_METHODS = [
    (owner.name, node)
    for owner in STUB.body
    if isinstance(owner, ast.ClassDef)
    for node in owner.body
    if isinstance(node, ast.FunctionDef)
    and node.name not in CONTEXT
    and not any(
        isinstance(d, (ast.Name, ast.Attribute)) and ast.unparse(d) != "overload" for d in node.decorator_list
    )
]


@pytest.mark.parametrize("node", STUB_FUNCTIONS, ids=lambda node: node.name)
def test_functions_are_what_the_stub_says(node: ast.FunctionDef) -> None:
    assert of_object(getattr(_binding, node.name)) == of_stub(node)
    if node.name not in INTERNAL:
        assert of_object(getattr(_absent, node.name)) == of_stub(node)
        assert [p.default for p in inspect.signature(getattr(_absent, node.name)).parameters.values()] == [
            p.default for p in inspect.signature(getattr(_binding, node.name)).parameters.values()
        ]


@pytest.mark.parametrize(
    ("owner", "node"), STUB_METHODS, ids=lambda value: value if isinstance(value, str) else value.name
)
def test_methods_are_what_the_stub_says(owner: str, node: ast.FunctionDef) -> None:
    # Text signatures have their self before the slash that only positional ones need.
    bare = [(name, kind) for name, kind in of_stub(node) if name != "self"]
    for module in (_binding, _absent):
        if owner in INTERNAL and module is _absent:
            continue
        made = of_object(getattr(getattr(module, owner), node.name))
        assert [(name, kind) for name, kind in made if name != "self"] == bare, module.__name__


@pytest.mark.parametrize(
    ("owner", "node"), STUB_METHODS, ids=lambda value: value if isinstance(value, str) else value.name
)
def test_the_stand_in_has_the_defaults_of_the_stub(owner: str, node: ast.FunctionDef) -> None:
    if owner in INTERNAL:
        return
    wanted = [None] * (len(node.args.args) - len(node.args.defaults)) + [
        *node.args.defaults,
        *node.args.kw_defaults,
    ]
    names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
    made = inspect.signature(getattr(getattr(_absent, owner), node.name)).parameters
    for name, default in zip(names, wanted, strict=True):
        if default is None:
            assert made[name].default is inspect.Parameter.empty, name
        elif ast.unparse(default) != "...":
            assert made[name].default == ast.literal_eval(default), name


def test_all_three_have_the_same_names() -> None:
    stub = {node.name for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert stub == {name for name in vars(_binding) if not name.startswith("__")}
    for name in stub - INTERNAL:
        there, silent = getattr(_binding, name), getattr(_absent, name)
        assert there.__doc__, name
        assert silent.__doc__, name
        if isinstance(there, type):
            public = {member for member in vars(there) if not member.startswith("_")}
            assert public <= set(dir(silent)), name


def test_every_public_name_is_there() -> None:
    for name in warplens.nvtx.__all__:
        assert getattr(warplens.nvtx, name) is not None
        assert name in dir(warplens.nvtx)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        warplens.nvtx.nothing  # noqa: B018
