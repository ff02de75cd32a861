"""`warplens.torch.name_modules`: forward passes of modules as NVTX ranges with their paths.

Each module gets two hooks. Hooks for all modules at once, and those of the backward pass, would keep torch.compile from
compiling; these do nothing while it traces, so that it makes the same graphs. Modules that are compiled, and those inside, have no
ranges: theirs is that of the compiled region.
"""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext

from torch import jit, nn
from torch.compiler import is_compiling

from warplens.nvtx import pop_range, push_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

DOMAIN = "torch.nn"


def name_modules(*model: Any) -> NamedModules:
    """Record the forward pass of each module of a model as a range, until the end of a `with` block or `remove()`.

        with warplens.torch.name_modules(model):
            train(batch)

    A range has the name of the module's path, `layers.0.attention`; that of the model has its class. Its category is the class, its
    domain `torch.nn`. `stats -r module_sum` sums them up, with the backward pass of each. A module that is used under two names has
    the first one.

    Args:
        model: a module, or several of them; default: all that the program has now.
    """
    compiled = _compiled()
    hooks: list[_Hook] = []
    handles: list[Any] = []
    for root in model or _roots():
        for path, module in _eager(root):
            enter, leave = _Enter(path, module), _Hook(path, module)
            hooks += [enter, leave]
            handles.append(module.register_forward_pre_hook(enter))
            handles.append(module.register_forward_hook(leave, always_call=True))
    return NamedModules(compiled, hooks, handles)


class NamedModules:
    """The hooks of `name_modules`; a context manager that removes them."""

    def __init__(self, compiled: int, hooks: list[_Hook], handles: list[Any]) -> None:
        self._compiled, self._hooks, self._handles = compiled, hooks, handles

    def remove(self) -> None:
        """Remove the hooks.

        If torch.compile has compiled something meanwhile, they stay without an effect: it would compile that again without them.
        """
        handles, self._handles = self._handles, []
        for hook in self._hooks:
            hook.on = False
        if self._compiled == _compiled():
            for handle in handles:
                handle.remove()

    def __enter__(self) -> NamedModules:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


class _Hook:
    """Closes the range of a module behind its forward pass.

    A copy, and one in a file that the program writes, does nothing and needs nothing of ours.
    """

    def __init__(self, path: str, module: Any) -> None:
        self.on = True
        self.path = path
        self.category = _class_name(module)

    def __call__(self, *arguments: Any) -> None:
        if not is_compiling() and self.on:
            pop_range(DOMAIN)

    def __reduce__(self) -> tuple[Any, ...]:
        # A bound method of the standard library that takes anything and returns None.
        return getattr, (nullcontext(), "__exit__")


class _Enter(_Hook):
    """Opens it."""

    def __call__(self, *arguments: Any) -> None:
        if not is_compiling() and self.on:
            push_range(self.path, domain=DOMAIN, category=self.category)


def _class_name(module: Any) -> str:
    return type(getattr(module, "_orig_mod", module)).__name__


def _compiled() -> int:
    """Return how many frames torch.compile has compiled."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return 0 if dynamo is None else int(dynamo.counters["frames"]["total"])


def _roots() -> list[Any]:
    """Return the modules of the program that are in no other module."""
    modules = [item for item in gc.get_objects() if issubclass(type(item), nn.Module)]
    inner = {id(child) for module in modules for child in module.children()}
    return [module for module in modules if id(module) not in inner]


def _eager(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield paths and modules, each once, without those that torch.compile or TorchScript runs."""
    seen = set()
    rest = [("", root)]
    while rest:
        path, module = rest.pop()
        compiled = getattr(module, "_compiled_call_impl", None) is not None
        if id(module) in seen or compiled or isinstance(module, jit.ScriptModule):
            continue
        seen.add(id(module))
        yield path or _class_name(module), module
        if not hasattr(module, "_orig_mod"):
            rest += [(f"{path}.{name}".lstrip("."), child) for name, child in module.named_children()]
