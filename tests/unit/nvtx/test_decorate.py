"""A decorated function looks and pickles like the function, whatever kind of function it is."""

from __future__ import annotations

import abc
import asyncio
import copy
import functools
import inspect
import pickle
import subprocess
import sys
import typing
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from tests.unit.nvtx.conftest import environment
from warplens.nvtx import annotate

pytestmark = pytest.mark.require("native")


@annotate("at module level", color="red")
def module_function(a: int, b: str = "b") -> str:
    """Doc."""
    return b * a


def test_a_decorated_function_looks_like_the_function() -> None:
    function: Any = module_function
    inner = function.__wrapped__
    assert inspect.isfunction(inner)
    for name in (
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__annotations__",
        "__code__",
        "__defaults__",
        "__dict__",
    ):
        if name != "__dict__":
            assert getattr(function, name) == getattr(inner, name)
    assert inspect.signature(function) == inspect.signature(inner)
    assert typing.get_type_hints(function) == typing.get_type_hints(inner)
    assert inspect.unwrap(function) is inner
    assert inspect.isroutine(function)
    assert inspect.getdoc(function) == "Doc."
    assert inspect.getsource(function).startswith("@annotate(")
    assert callable(function)
    assert repr(function).startswith("<annotated <function module_function at ")


def test_a_decorated_function_takes_and_shows_attributes() -> None:
    def plain() -> None: ...

    plain.before = 1  # type: ignore[attr-defined]
    function: Any = annotate()(plain)
    plain.later = 2  # type: ignore[attr-defined]
    function.own = 3
    assert (function.before, function.later, function.own) == (1, 2, 3)
    assert not hasattr(plain, "own")
    with pytest.raises(AttributeError):
        _ = function.missing


def test_a_decorated_function_pickles_by_reference() -> None:
    assert pickle.loads(pickle.dumps(module_function)) is module_function
    assert copy.copy(module_function) is copy.deepcopy(module_function) is module_function
    assert cloudpickle.loads(cloudpickle.dumps(module_function)) is module_function

    @annotate()
    def local() -> None: ...

    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(local)


def test_cloudpickle_takes_nested_functions_by_value() -> None:
    factor = 3

    @annotate("nested", payload=1)
    def nested(x: int) -> int:
        return factor * x

    other: Any = cloudpickle.loads(cloudpickle.dumps(nested))
    assert other is not nested
    assert other(2) == 6
    assert other.__annotation__.__reduce__()[1] == ("nested", None, None, None, 1)
    assert other.__name__ == "nested"


@pytest.mark.slow
def test_functions_of_main_travel_to_worker_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, warplens.nvtx as nvtx\n"
        "@nvtx.annotate()\n"
        "def work(x): return x + 1\n"
        "if __name__ == '__main__':\n"
        "    import cloudpickle, subprocess, sys\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(work, [1, 2]))\n"
        "    code = 'import pickle, sys; print(pickle.load(sys.stdin.buffer)(5))'\n"
        "    done = subprocess.run([sys.executable, '-c', code], input=cloudpickle.dumps(work), stdout=subprocess.PIPE, check=True)\n"
        "    print(done.stdout.decode())\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["[2,", "3]", "6"], done.stderr


def test_static_and_class_methods_may_come_before() -> None:
    class Thing:
        @annotate()
        @staticmethod
        def static(x: int) -> int:
            return x

        @annotate()
        @classmethod
        def of_class(cls) -> Any:
            return cls

    assert Thing.static(1) == Thing().static(1) == 1
    assert Thing.of_class() is Thing().of_class() is Thing


def test_abstract_methods_stay_abstract() -> None:
    class Base(abc.ABC):
        @annotate()
        @abc.abstractmethod
        def method(self) -> None: ...

    with pytest.raises(TypeError, match="abstract"):
        Base()  # type: ignore[abstract]


def test_a_decorated_function_takes_other_decorators() -> None:
    calls = []

    @functools.lru_cache
    @annotate()
    def cached(x: int) -> int:
        calls.append(x)
        return x

    assert cached(1) == cached(1) == 1
    assert calls == [1]

    @annotate()
    @functools.lru_cache
    def cached_inside(x: int) -> int:
        return x

    assert cached_inside(1) == 1
    inside: Any = cached_inside
    assert inside.cache_info().misses == 1


def test_any_callable_is_decorated() -> None:
    class Callable:
        def __call__(self, x: int) -> int:
            return x

    assert annotate()(functools.partial(int, "10"))(base=2) == 2
    assert annotate()(Callable())(3) == 3
    assert annotate()(len)([1]) == 1
    assert annotate()(dict)(a=1) == {"a": 1}
    with pytest.raises(TypeError, match=r"@annotate\(\) decorates functions, not int"):
        annotate()(5)  # type: ignore[arg-type]


def test_coroutine_functions_stay_coroutine_functions() -> None:
    @annotate()
    async def work(x: int) -> int:
        """Doc."""
        await asyncio.sleep(0)
        if x < 0:
            raise KeyError(x)
        return x + 1

    assert inspect.iscoroutinefunction(work)
    assert (work.__name__, work.__doc__) == ("work", "Doc.")
    assert asyncio.run(work(1)) == 2
    with pytest.raises(KeyError):
        asyncio.run(work(-1))

    assert inspect.iscoroutinefunction(annotate()(functools.partial(work, 1)))


def test_generators_pass_everything_through() -> None:
    seen: list[object] = []

    @annotate()
    def numbers() -> Generator[int, str, str]:
        try:
            seen.append((yield 1))
            try:
                yield 2
            except KeyError as error:
                seen.append(error.args[0])
            yield 3
        finally:
            seen.append("closed")
        return "result"

    assert inspect.isgeneratorfunction(numbers)
    generator = numbers()
    assert (next(generator), generator.send("sent"), generator.throw(KeyError("thrown"))) == (1, 2, 3)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "result"
    assert seen == ["sent", "thrown", "closed"]

    early = numbers()
    next(early)
    early.close()
    assert seen[-1] == "closed"


def test_async_generators_pass_everything_through() -> None:
    seen: list[object] = []

    @annotate()
    async def numbers() -> AsyncGenerator[int, str]:
        try:
            seen.append((yield 1))
            try:
                yield 2
            except KeyError as error:
                seen.append(error.args[0])
            yield 3
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async def use() -> None:
        generator = numbers()
        assert await generator.__anext__() == 1
        assert await generator.asend("sent") == 2
        assert await generator.athrow(KeyError("thrown")) == 3
        assert [rest async for rest in generator] == []
        early = numbers()
        await early.__anext__()
        await early.aclose()
        thrown = numbers()
        await thrown.__anext__()
        with pytest.raises(ValueError, match="up"):
            await thrown.athrow(ValueError("up"))

    assert inspect.isasyncgenfunction(numbers)
    asyncio.run(use())
    assert seen == ["sent", "thrown", "closed", "closed", "closed"]
